import { statSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { TYPE } from '../core/refused.ts';
import {
  bytes,
  drain,
  FORMATS,
  isPending,
  longTexts,
  openQueue,
  putAll,
  receiveMany,
  rejection,
  reopened,
  settled,
  temporaryFolder,
  text,
  test,
} from './support/queues.ts';

describe.each(FORMATS)('%s', (format) => {
  test('a snapshot has what is in flight, the files, and where reading goes on', async ({ dataPath }) => {
    const queue = await openQueue({ format, dataPath, maxBytesPerFile: 256 });
    await putAll(queue, longTexts('abcdef'));
    const { segments } = queue.inspect();
    expect(segments.length).toBeGreaterThan(1);
    expect(segments.map(({ file }) => statSync(file).isFile())).not.toContain(false);
    const counted = segments.reduce((sum, { messages = NaN }) => sum + messages, 0);
    expect(counted).toBe({ checked: 6, nsq: NaN }[format]);
    const [a, b, c] = await receiveMany(queue, 3);
    a?.ack();
    b?.nack();
    expect(queue.inspect()).toMatchObject({ depth: 5, bytes: queue.bytes, inFlight: 1 });
    const { cursor } = queue.inspect();
    expect(segments.map(({ file }) => file)).toContain(cursor?.file);
    expect(cursor?.offset).toBeGreaterThan(0);
    c?.ack();
    expect(queue.inspect().inFlight).toBe(0);
    await receiveMany(queue, 1);
    await queue.empty();
    expect(queue.inspect()).toMatchObject({ depth: 0, inFlight: 0 });
  });

  test('depth keeps its last value after close', async () => {
    const queue = await openQueue({ format });
    await putAll(queue, 'ab');
    await queue.close();
    expect(queue.depth).toBe(2);
  });

  test('settling after close does nothing, and the messages are delivered again after a reopen', async () => {
    const dataPath = temporaryFolder();
    const first = await openQueue({ format, dataPath });
    await putAll(first, 'abc');
    const deliveries = await receiveMany(first, 3);
    deliveries[0]?.ack();
    const closing = first.close();
    deliveries[1]?.ack();
    deliveries[2]?.nack();
    await closing;
    deliveries[2]?.ack();
    const second = await openQueue({ format, dataPath });
    deliveries[1]?.ack();
    expect(await drain(second)).toEqual(['b', 'c']);
  });

  const which = { checked: 'in any order', nsq: 'before the first message without one' }[format];
  test.each(['flush', 'close'] as const)(`acknowledgements ${which} are durable after %s`, async (how) => {
    const first = await openQueue({ format });
    await putAll(first, 'abcdefgh');
    const deliveries = await receiveMany(first, 8);
    for (const i of [6, 0, 3, 2]) deliveries[i]?.ack();
    await first[how]();
    const second = await reopened(first);
    expect(second.depth).toBe({ checked: 4, nsq: 7 }[format]);
    expect(await drain(second)).toEqual(Array.from({ checked: 'befh', nsq: 'bcdefgh' }[format]));
  });

  test('nack delivers a message again in its old place', async () => {
    const queue = await openQueue({ format });
    await putAll(queue, 'abcdef');
    const deliveries = await receiveMany(queue, 4);
    for (const i of [2, 0, 3]) deliveries[i]?.nack();
    expect(await drain(queue, 5)).toEqual(Array.from('acdef'));
    deliveries[1]?.nack();
    expect(await drain(queue)).toEqual(['b']);
  });

  test('a message after nack is the one that was put, even if the delivered copy was changed', async () => {
    const queue = await openQueue({ format });
    const long = 'x'.repeat(100_000); // memory of its own, not of Buffer's pool
    await putAll(queue, ['short', long]);
    const [a, b] = await receiveMany(queue, 2);
    a?.data.fill(0);
    structuredClone(b?.data.buffer, { transfer: [b?.data.buffer as ArrayBuffer] });
    a?.nack();
    b?.nack();
    expect(await drain(queue)).toEqual(['short', long]);
    expect(queue.depth).toBe(0);
  });

  test('an aborted receive rejects with the reason of the signal, at once if it was aborted before', async () => {
    const queue = await openQueue({ format });
    await queue.put(bytes('a'));
    const reason = new Error('enough');
    expect(await rejection(queue.receive({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(await drain(queue)).toEqual(['a']);
    const controller = new AbortController();
    const waiting = queue.receive({ signal: controller.signal });
    expect(await isPending(waiting)).toBe(true);
    controller.abort(reason);
    expect(await rejection(waiting)).toBe(reason);
  });

  test('receive rejects a signal that is not an AbortSignal', async () => {
    const queue = await openQueue({ format });
    expect(await rejection(queue.receive({ signal: 5 as never }))).toMatchObject(TYPE);
  });

  test('a loop acknowledges a message when it requests the next one', async () => {
    const queue = await openQueue({ format });
    await putAll(queue, 'abc');
    const depths: number[] = [];
    for await (const data of queue) {
      depths.push(queue.depth);
      if (text({ data }) === 'c') break;
    }
    expect(depths).toEqual([3, 2, 1]);
  });

  test.each(['break', 'throw'])('a loop that ends with %s leaves the current message', async (how) => {
    const queue = await openQueue({ format });
    await putAll(queue, 'abc');
    const loop = async (): Promise<void> => {
      for await (const data of queue) {
        if (text({ data }) !== 'b') continue;
        if (how === 'break') break;
        throw new Error('b');
      }
    };
    await loop().catch(() => undefined);
    expect(queue.depth).toBe(2);
    expect(await drain(queue)).toEqual(['b', 'c']);
  });

  test('an iterator whose next is called twice without await holds both messages, and returns both', async () => {
    const queue = await openQueue({ format });
    await putAll(queue, 'abcd');
    const loop = queue[Symbol.asyncIterator]();
    const [a, b] = await Promise.all([loop.next(), loop.next()]);
    expect([a, b].map(({ value }) => text({ data: value as Uint8Array }))).toEqual(['a', 'b']);
    await loop.next();
    expect(queue.depth).toBe(2);
    await loop.next();
    await loop.return?.();
    expect(queue.depth).toBe(1);
    expect(await drain(queue)).toEqual(['d']);
  });

  test('a loop that ends while it waits takes no message', async () => {
    const queue = await openQueue({ format });
    const loop = queue[Symbol.asyncIterator]();
    const waiting = loop.next();
    await settled();
    await loop.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await queue.put(bytes('a'));
    expect(await loop.next()).toEqual({ done: true, value: undefined });
    expect(await drain(queue)).toEqual(['a']);
  });

  test('a loop that ends while a message is on its way to it returns the message', async () => {
    const queue = await openQueue({ format });
    await queue.put(bytes('a'));
    const held = await queue.receive();
    const loop = queue[Symbol.asyncIterator]();
    const waiting = loop.next();
    held.nack(); // given
    await loop.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await drain(queue)).toEqual(['a']);
  });

  test('a pending receive is served although a peek has begun to read', async () => {
    const queue = await openQueue({ format, maxBytesPerFile: 256 });
    const all = longTexts('abcdefghijklmnop');
    await putAll(queue, all); // in several files, so one read is not enough
    const peeked = queue.peek();
    const received = await Promise.all(all.map(() => queue.receive()));
    await peeked;
    expect(received.map(text)).toEqual(all);
  });

  test('peek returns a copy of the next message, which stays', async () => {
    const queue = await openQueue({ format });
    expect(await queue.peek()).toBeUndefined();
    await putAll(queue, 'ab');
    for (let i = 0; i < 3; i++) {
      const peeked = await queue.peek();
      expect(text({ data: peeked as Uint8Array })).toBe('a');
      peeked?.fill(0);
    }
    const a = await queue.receive();
    expect(text({ data: (await queue.peek()) as Uint8Array })).toBe('b');
    a.nack();
    expect(text({ data: (await queue.peek()) as Uint8Array })).toBe('a');
    expect(await drain(queue)).toEqual(['a', 'b']);
    expect(await queue.peek()).toBeUndefined();
  });

  test('many concurrent peeks work beside receivers', async () => {
    const queue = await openQueue({ format });
    await putAll(queue, 'abc');
    const calls = [queue.peek(), queue.receive(), queue.peek(), queue.receive()] as const;
    const [peeked, first, again, second] = await Promise.all(calls);
    expect([first, second].map(text)).toEqual(['a', 'b']);
    for (const data of [peeked, again]) expect('abc').toContain(text({ data: data as Uint8Array }));
    expect(text({ data: (await queue.peek()) as Uint8Array })).toBe('c');
  });
});
