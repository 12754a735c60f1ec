import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { TYPE } from '../core/refused.ts';
import {
  ACKS,
  bytes,
  DATA,
  drain,
  FORMATS,
  isPending,
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

const FULL = { name: 'EscapementError', code: 'ERR_QUEUE_FULL', op: 'DiskQueue.put' };
const SIZE = { name: 'EscapementError', code: 'ERR_MESSAGE_SIZE', op: 'DiskQueue.put' };

describe.each(FORMATS)('%s', (format) => {
  test('maxBytesTotal counts messages that are being put and in flight', async () => {
    const queue = await openQueue({ format, maxBytesTotal: 10 });
    const puts = [queue.put(bytes('12345')), queue.put(bytes('6789'))];
    expect(await rejection(queue.put(bytes('ab')))).toMatchObject(FULL);
    await Promise.all(puts);
    await queue.put(bytes('0'));
    const deliveries = await receiveMany(queue, 3);
    expect(await rejection(queue.put(bytes('a')))).toMatchObject(FULL);
    expect(queue.depth).toBe(3);
    deliveries[1]?.ack();
    await queue.put(bytes('abcd')); // at once: nothing was waited for since
    expect(await rejection(queue.put(bytes('e')))).toMatchObject(FULL);
    deliveries[0]?.nack();
    expect(await rejection(queue.put(bytes('e')))).toMatchObject(FULL);
    expect(await drain(queue, 2)).toEqual(['12345', 'abcd']);
  });

  test('a full queue has capacity for empty messages', async () => {
    const queue = await openQueue({ format, maxBytesTotal: 3 });
    await putAll(queue, ['abc', '', '']);
    expect(await drain(queue)).toEqual(['abc', '', '']);
  });

  test('maxBytesTotal does not count messages that an earlier run has acknowledged, in any order', async () => {
    const first = await openQueue({ format });
    await putAll(first, ['12345', '6789', '0', 'abc']);
    for (const delivery of (await receiveMany(first, 4)).slice(1, 3)) delivery.ack();
    const queue = await reopened(first, { maxBytesTotal: 10 });
    if (format === 'checked') {
      expect(queue.bytes).toBe(8);
      await queue.put(bytes('de'));
      expect(await rejection(queue.put(bytes('f')))).toMatchObject(FULL);
      expect(await drain(queue)).toEqual(['12345', 'abc', 'de']);
    } else {
      expect(queue.bytes).toBe(13); // nothing before the first message was acknowledged: all of them come again
      expect(await drain(queue)).toEqual(['12345', '6789', '0', 'abc']);
    }
  });

  test('with maxBytesTotal below what an earlier run has left, nothing fits until enough is acknowledged', async () => {
    const first = await openQueue({ format });
    await putAll(first, ['12345', '6789']);
    const queue = await reopened(first, { maxBytesTotal: 4 });
    expect(await rejection(queue.put(bytes('a')))).toMatchObject(FULL);
    await drain(queue, 1);
    expect(await rejection(queue.put(bytes('a')))).toMatchObject(FULL);
    await drain(queue, 1);
    await queue.put(bytes('abcd'));
  });

  test('empty releases all capacity but that of messages being put', async () => {
    const queue = await openQueue({ format, maxBytesTotal: 4 });
    await queue.put(bytes('123'));
    const emptying = queue.empty();
    const put = queue.put(bytes('a'));
    await Promise.all([emptying, put]);
    await queue.put(bytes('bcd'));
    expect(await rejection(queue.put(bytes('e')))).toMatchObject(FULL);
    expect(await drain(queue)).toEqual(['a', 'bcd']);
  });

  test('putBeyondLimit ignores the limit, and counts', async () => {
    const queue = await openQueue({ format, maxBytesTotal: 4, maxMessageSize: 9 });
    await queue.put(bytes('1234'));
    await queue.putBeyondLimit(bytes('5678'));
    expect(await rejection(queue.putBeyondLimit(bytes('0123456789')))).toMatchObject(SIZE);
    await drain(queue, 1);
    expect(await rejection(queue.put(bytes('a')))).toMatchObject(FULL);
    await drain(queue, 1);
    await queue.put(bytes('abcd'));
  });

  const options = { format, maxBytesTotal: 10, whenFull: 'wait' } as const;

  test('puts wait for capacity in order: a small message does not pass a large one', async () => {
    const queue = await openQueue(options);
    await putAll(queue, ['12345', '67890']);
    const order: string[] = [];
    const puts = ['abcdefg', 'x', 'y'].map((message) =>
      queue.put(bytes(message)).then(() => order.push(message)),
    );
    await drain(queue, 1);
    await settled();
    expect(order).toEqual([]);
    await drain(queue, 1);
    await Promise.all(puts);
    expect(order).toEqual(['abcdefg', 'x', 'y']);
    expect(await drain(queue)).toEqual(['abcdefg', 'x', 'y']);
  });

  test('a put at the time when capacity is released comes after the waiting ones', async () => {
    const queue = await openQueue(options);
    await queue.put(bytes('1234567890'));
    const delivery = await queue.receive();
    const waited = queue.put(bytes('first'));
    expect(await isPending(waited)).toBe(true);
    delivery.ack();
    await Promise.all([queue.put(bytes('next')), waited]);
    expect(await drain(queue)).toEqual(['first', 'next']);
  });

  test('an acknowledgement admits as many waiting puts as fit', async () => {
    const queue = await openQueue(options);
    await queue.put(bytes('1234567890'));
    const puts = Array.from('abcdefghijk', (message) => queue.put(bytes(message)));
    await drain(queue, 1);
    await Promise.all(puts.slice(0, 10));
    expect(await isPending(puts[10] as Promise<void>)).toBe(true);
    await drain(queue, 1);
    await puts[10];
    expect(await drain(queue)).toEqual(Array.from('bcdefghijk'));
  });

  test('empty admits waiting puts', async () => {
    const queue = await openQueue(options);
    await queue.put(bytes('1234567890'));
    const put = queue.put(bytes('abc'));
    await queue.empty();
    await put;
    expect(await drain(queue)).toEqual(['abc']);
  });

  test('an aborted put has written nothing, and does not hold up those behind it', async () => {
    const queue = await openQueue(options);
    await putAll(queue, ['12345', '6789']);
    const controller = new AbortController();
    const withdrawn = queue.put(bytes('abcdefg'), { signal: controller.signal });
    const behind = queue.put(bytes('x'));
    expect(await isPending(behind)).toBe(true);
    controller.abort('enough');
    expect(await rejection(withdrawn)).toBe('enough');
    await behind;
    await queue.flush();
    expect(await drain(queue)).toEqual(['12345', '6789', 'x']);
    expect(queue.bytes).toBe(0);
  });

  test('the capacity of puts aborted in one turn goes to the waiting ones, in order', async () => {
    const queue = await openQueue(options);
    await queue.put(bytes('1234567890'));
    const controllers = Array.from({ length: 4 }, () => new AbortController());
    const puts = controllers.map(({ signal }, i) => queue.put(bytes(`put ${i}`), { signal }));
    const delivery = await queue.receive();
    controllers[0]?.abort();
    controllers[2]?.abort();
    delivery.ack();
    await Promise.allSettled(puts);
    expect(await drain(queue)).toEqual(['put 1', 'put 3']);
    expect(queue.bytes).toBe(0);
  });

  test('an aborted signal rejects the put, unless the put has capacity already', async () => {
    const queue = await openQueue(options);
    expect(await rejection(queue.put(bytes('a'), { signal: AbortSignal.abort('never') }))).toBe('never');
    const controller = new AbortController();
    const first = queue.put(bytes('1234567890'), { signal: controller.signal });
    controller.abort();
    await first;
    const second = new AbortController();
    const waited = queue.put(bytes('b'), { signal: second.signal });
    (await queue.receive()).ack();
    second.abort();
    await waited;
    expect(await drain(queue)).toEqual(['b']);
    expect(await rejection(queue.put(bytes('a'), { signal: 5 } as never))).toMatchObject(TYPE);
  });

  test('a message larger than the limit is rejected', async () => {
    const queue = await openQueue(options);
    expect(await rejection(queue.put(bytes('12345678901')))).toMatchObject(FULL);
    await queue.put(bytes('1234567890'));
    expect(await rejection(queue.put(bytes('12345678901')))).toMatchObject(FULL);
  });

  test('a message outside of minMessageSize and maxMessageSize rejects with ERR_MESSAGE_SIZE, and nothing is written', async () => {
    const dataPath = temporaryFolder();
    const queue = await openQueue({ format, dataPath, minMessageSize: 2, maxMessageSize: 4 });
    const error = await rejection(queue.put(bytes('12345')));
    expect(error).toMatchObject(SIZE);
    expect((error as Error).message).toContain('Received 5');
    for (const message of ['', 'a']) expect(await rejection(queue.put(bytes(message)))).toMatchObject(SIZE);
    expect([queue.depth, readdirSync(dataPath).filter((name) => !name.endsWith('.lock'))]).toEqual([0, []]);
    await putAll(queue, ['12', '1234']);
    expect(await drain(queue)).toEqual(['12', '1234']);
  });

  test('maxMessageSize is 1 MiB by default', async () => {
    const queue = await openQueue({ format });
    await queue.put(Buffer.alloc(1024 * 1024, 1));
    expect(await rejection(queue.put(Buffer.alloc(1024 * 1024 + 1)))).toMatchObject(SIZE);
    const { data } = await queue.receive();
    expect([data.length, data.every((byte) => byte === 1)]).toEqual([1024 * 1024, true]);
  });

  test('maxMessageSize limits put only, not stored messages', async () => {
    const long = 'x'.repeat(300_000);
    const first = await openQueue({ format });
    await putAll(first, ['a', long, 'b']);
    const queue = await reopened(first, { minMessageSize: 3, maxMessageSize: 5 });
    expect(await drain(queue)).toEqual(['a', long, 'b']);
  });

  test('a message larger than maxBytesPerFile gets its own file', async ({ dataPath }) => {
    const queue = await openQueue({ format, dataPath, maxBytesPerFile: 500 });
    const messages = ['a', 'x'.repeat(2_000), 'y'.repeat(3_000), 'b', 'c'];
    await putAll(queue, messages);
    const sizes = readdirSync(dataPath)
      .filter((name) => name.includes(DATA[format]))
      .sort()
      .map((name) => statSync(join(dataPath, name)).size);
    expect(sizes).toHaveLength(4);
    expect(sizes.map((size) => size > 500)).toEqual([false, true, true, false]);
    expect(await drain(await reopened(queue))).toEqual(messages);
  });

  test('files are no larger than maxBytesPerFile, which may differ between runs', async ({ dataPath }) => {
    const messages = Array.from({ length: 200 }, (_, i) => 'm'.repeat(i % 90));
    for (const [i, maxBytesPerFile] of [400, 256, 1_000, 300].entries()) {
      const queue = await openQueue({ format, dataPath, maxBytesPerFile });
      await putAll(queue, messages.slice(i * 50, (i + 1) * 50));
      await queue.close();
      for (const name of readdirSync(dataPath)) {
        if (name.endsWith(ACKS.checked)) continue;
        expect(statSync(join(dataPath, name)).size).toBeLessThanOrEqual(1_000);
      }
    }
    expect(await drain(await openQueue({ format, dataPath }))).toEqual(messages);
  });

  test('files are removed when everything in them is acknowledged', async ({ dataPath }) => {
    const queue = await openQueue({ format, dataPath, maxBytesPerFile: 256 });
    for (let i = 0; i < 100; i++) {
      await putAll(queue, ['some message', 'another one']);
      await drain(queue, 2);
    }
    await queue.flush();
    expect(readdirSync(dataPath).length).toBeLessThan(6);
  });

  test.each(['always', 'interval', 'os'] as const)(
    'with %s the caller may change its buffer when put has settled',
    async (durability) => {
      const queue = await openQueue({ format, durability });
      const buffer = Buffer.alloc(100);
      for (let i = 0; i < 30; i++) {
        buffer.fill(i);
        await queue.put(buffer);
        buffer.fill(0xff);
      }
      buffer.fill(0xfe);
      const again = await reopened(queue);
      for (const [i, { data }] of (await receiveMany(again, 30)).entries()) {
        expect(data.every((byte) => byte === i)).toBe(true);
      }
    },
  );

  test('the data of a put may be any view of bytes', async () => {
    const queue = await openQueue({ format });
    const memory = bytes('0123456789');
    await queue.put(memory.subarray(2, 5));
    await queue.put(new Uint8Array(memory.buffer, memory.byteOffset + 5, 2));
    await queue.put(new Uint8Array(new SharedArrayBuffer(2)));
    const deliveries = await receiveMany(queue, 3);
    expect(deliveries.map(text)).toEqual(['234', '56', '\0\0']);
  });

  const memory = new ArrayBuffer(2);
  test.each([
    ...[undefined, null, 'text', 5, [1, 2]],
    ...[memory, new Uint16Array(memory), new DataView(memory)],
  ])('the data of a put must not be %o', async (data) => {
    const queue = await openQueue({ format });
    const error = await rejection(queue.put(data as never));
    expect(error).toMatchObject(TYPE);
    expect((error as Error).message).toContain('data');
    expect(queue.depth).toBe(0);
  });
});
