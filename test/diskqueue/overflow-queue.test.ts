import { OverflowQueue } from 'escapement/diskqueue';
import { expect, test } from 'vitest';
import { throwing } from '../timer/support/errors.ts';
import { FakeBackend } from './support/fake-backend.ts';
import {
  bytes,
  drain,
  isPending,
  openQueue,
  putAll,
  receiveMany,
  rejection,
  settled,
  temporaryFolder,
  text,
} from './support/queues.ts';

const CLOSED = { name: 'EscapementError', code: 'ERR_QUEUE_CLOSED' };

function overflowing(memorySize: number): { queue: OverflowQueue; backend: FakeBackend } {
  const backend = new FakeBackend();
  return { queue: new OverflowQueue({ memorySize, backend }), backend };
}

const left = (backend: FakeBackend): string[] => backend.messages.map(text);

test('messages in flight count as messages in memory', async () => {
  const { queue, backend } = overflowing(2);
  await putAll(queue, 'ab');
  expect([queue.depth, backend.depth]).toEqual([2, 0]);
  const [a] = await receiveMany(queue, 2);
  await queue.put(bytes('c'));
  expect([queue.depth, left(backend)]).toEqual([3, ['c']]);
  a?.ack();
  expect(await drain(queue, 1)).toEqual(['c']);
  await queue.put(bytes('d'));
  expect([queue.depth, left(backend)]).toEqual([2, []]);
});

test('while the backend has messages to deliver, all puts go there', async () => {
  const { queue, backend } = overflowing(2);
  await putAll(queue, 'abc');
  expect(await drain(queue, 2)).toEqual(['a', 'b']);
  await putAll(queue, 'de');
  expect(left(backend)).toEqual(['c', 'd', 'e']);
  expect(await drain(queue)).toEqual(['c', 'd', 'e']);
  await putAll(queue, 'f');
  expect(left(backend)).toEqual([]);
  expect(await drain(queue)).toEqual(['f']);
});

test('a message in memory is a copy', async () => {
  const { queue } = overflowing(2);
  const buffer = bytes('a');
  await queue.put(buffer);
  buffer.fill('x');
  expect(await drain(queue)).toEqual(['a']);
});

test.each([[['a', 'c', 'd']], [['d', 'c', 'a']], [['d', 'a']], [['d', 'c']], [['c']], [['a']]])(
  'after a nack of %j, a from memory, c and d from the backend are delivered before the later e and f',
  async (back) => {
    const { queue, backend } = overflowing(2);
    await putAll(queue, 'abcd');
    const deliveries = new Map((await receiveMany(queue, 4)).map((delivery) => [text(delivery), delivery]));
    deliveries.get('b')?.ack();
    await putAll(queue, 'ef');
    expect(left(backend)).toEqual(['c', 'd', 'f']); // so e is in memory
    for (const message of back) deliveries.get(message)?.nack();
    expect(await drain(queue, back.length + 2)).toEqual([...back.sort(), 'e', 'f']);
  },
);

test('a message after nack is the one that was put, even if the delivered copy was changed', async () => {
  const { queue } = overflowing(1);
  await putAll(queue, 'ab');
  for (const delivery of await receiveMany(queue, 2)) {
    delivery.data.fill(0);
    delivery.nack();
  }
  expect(await drain(queue)).toEqual(['a', 'b']);
});

test('a failed put of the backend rejects the put, and the message is not stored', async () => {
  const { queue, backend } = overflowing(1);
  await queue.put(bytes('a'));
  backend.failures.push('put');
  expect(await rejection(queue.put(bytes('lost')))).toMatchObject({ message: 'the fake fails to put' });
  expect(queue.depth).toBe(1);
  await queue.put(bytes('b'));
  expect(await drain(queue)).toEqual(['a', 'b']);
});

test('a failed receive of the backend rejects pending receives, and the message stays', async () => {
  const { queue, backend } = overflowing(0);
  await queue.put(bytes('a'));
  backend.failures.push('receive');
  const results = await Promise.allSettled([queue.receive(), queue.receive()]);
  const reason = { message: 'the fake fails to receive' };
  for (const result of results) expect(result).toMatchObject({ reason });
  expect(await drain(queue)).toEqual(['a']);
});

test('a receive of the backend that throws instead of returning a promise is tried again by the next call', async () => {
  const { queue, backend } = overflowing(0);
  await putAll(queue, 'ab');
  const receive = backend.receive.bind(backend);
  backend.receive = throwing(new Error('no promise'));
  const [first, second] = [queue.receive(), queue.receive()];
  expect(await rejection(first)).toMatchObject({ message: 'no promise' });
  expect(await rejection(second)).toMatchObject({ message: 'no promise' });
  backend.receive = receive;
  expect(await drain(queue)).toEqual(['a', 'b']);
});

test('a failed empty of the backend rejects empty, and the backend’s messages are delivered again', async () => {
  const { queue, backend } = overflowing(1);
  await putAll(queue, 'abc');
  const deliveries = await receiveMany(queue, 2);
  backend.failures.push('empty');
  expect(await rejection(queue.empty())).toMatchObject({ message: 'the fake fails to empty' });
  for (const delivery of deliveries) delivery.ack();
  expect(queue.depth).toBe(2);
  expect(await drain(queue)).toEqual(['b', 'c']);
  await putAll(queue, 'd');
  expect(left(backend)).toEqual([]);
});

test('empty drops a message that is on its way from the backend', async () => {
  for (const receiveTurns of [1, 3, 5]) {
    const emptyTurns = 6 - receiveTurns;
    const { queue, backend } = overflowing(0);
    await putAll(queue, 'ab');
    backend.delays.push(receiveTurns);
    const waiting = queue.receive();
    await Promise.resolve();
    backend.delays.push(emptyTurns);
    await queue.empty();
    await putAll(queue, 'xy');
    expect(text(await waiting)).toBe('x');
    expect(await drain(queue, 1)).toEqual(['y']);
    expect(queue.depth).toBe(1);
  }
});

test('close moves the messages in memory to the backend, in order, behind its own, and closes it', async () => {
  const { queue, backend } = overflowing(3);
  await putAll(queue, 'abcdef');
  const deliveries = await receiveMany(queue, 5);
  deliveries[1]?.ack();
  deliveries[3]?.ack();
  await queue.close();
  for (const delivery of deliveries) delivery.ack(); // too late
  expect(left(backend)).toEqual(['e', 'f', 'a', 'c']);
  expect(backend.isClosed).toBe(true);
});

test.each(['reject', 'wait'] as const)(
  'close loses no message although the disk queue is full: %s',
  async (whenFull) => {
    const dataPath = temporaryFolder();
    const backend = await openQueue({ dataPath, maxBytesTotal: 2, whenFull });
    const queue = new OverflowQueue({ memorySize: 3, backend });
    await putAll(queue, 'abcde');
    const tooMuch = rejection(queue.put(bytes('f')));
    await settled();
    await queue.close();
    const code = whenFull === 'wait' ? 'ERR_QUEUE_CLOSED' : 'ERR_QUEUE_FULL';
    expect(await tooMuch).toHaveProperty('code', code);
    const again = await openQueue({ dataPath, maxBytesTotal: 5 });
    expect(await rejection(again.put(bytes('x')))).toMatchObject({ code: 'ERR_QUEUE_FULL' });
    expect(await drain(again)).toEqual(['d', 'e', 'a', 'b', 'c']);
  },
);

test('close rejects pending and later calls, and does nothing the second time', async () => {
  const { queue, backend } = overflowing(1);
  const waiting = queue.receive();
  const closing = queue.close();
  expect(await rejection(waiting)).toMatchObject({ ...CLOSED, op: 'OverflowQueue.receive' });
  for (const operation of ['put', 'receive', 'empty', 'delete'] as const) {
    const promise = operation === 'put' ? queue.put(bytes('a')) : queue[operation]();
    expect(await rejection(promise)).toMatchObject({ ...CLOSED, op: `OverflowQueue.${operation}` });
  }
  await Promise.all([closing, queue.close()]);
  await queue.close();
  expect(backend.calls.filter((call) => call === 'close')).toHaveLength(1);
});

test('close completes the pending puts of the backend', async () => {
  const { queue, backend } = overflowing(1);
  backend.delays.push(5, 5);
  await queue.put(bytes('a'));
  const puts = putAll(queue, 'bc');
  await queue.close();
  await puts;
  expect(left(backend)).toEqual(['b', 'c', 'a']);
});

test('close rejects with the number of messages that the backend has rejected, and closes it all the same', async () => {
  const { queue, backend } = overflowing(3);
  await putAll(queue, 'abc');
  backend.failures.push('put', 'put', 'close');
  const error = await rejection(queue.close());
  expect(error).toBeInstanceOf(AggregateError);
  expect((error as AggregateError).errors).toHaveLength(3);
  expect((error as Error).message).toContain('2 messages');
  expect(left(backend)).toEqual(['c']);
});

test('close closes a backend whose put throws instead of returning a promise', async () => {
  const { queue, backend } = overflowing(1);
  await queue.put(bytes('a'));
  backend.put = throwing(new Error('no promise'));
  expect(await rejection(queue.close())).toBeInstanceOf(AggregateError);
  expect(backend.isClosed).toBe(true);
});

test('close reports lost messages although the close of the backend throws instead of returning a promise', async () => {
  const { queue, backend } = overflowing(1);
  await queue.put(bytes('a'));
  backend.failures.push('put');
  backend.close = throwing(new Error('no promise'));
  const errors = [{ message: 'the fake fails to put' }, { message: 'no promise' }];
  expect(await rejection(queue.close())).toMatchObject({ errors });
});

test('close rejects with the error with which the backend fails to close', async () => {
  const { queue, backend } = overflowing(3);
  await putAll(queue, 'abc');
  backend.failures.push('close');
  expect(await rejection(queue.close())).toMatchObject({ message: 'the fake fails to close' });
  expect(left(backend)).toEqual(['a', 'b', 'c']);
});

test('delete deletes the backend, and drops the messages in memory', async () => {
  const { queue, backend } = overflowing(1);
  await putAll(queue, 'abc');
  await queue.delete();
  expect(backend.calls).toContain('delete');
  expect([queue.depth, backend.depth]).toEqual([0, 0]);
  await queue.close();
  expect(await rejection(queue.put(bytes('a')))).toMatchObject(CLOSED);
});

test('put takes only bytes that the backend would take', async () => {
  const backend = await openQueue({ maxMessageSize: 3 });
  const queue = new OverflowQueue({ memorySize: 5, backend });
  expect(await rejection(queue.put('text' as never))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  expect(await rejection(queue.put(bytes('long')))).toMatchObject({ code: 'ERR_MESSAGE_SIZE' });
  expect(queue.depth).toBe(0);
  await queue.put(bytes('abc'));
  await queue.close();
});

test('loops end when the queue is closed, and at once after it', async () => {
  await using queue = new OverflowQueue({ memorySize: 5, backend: new FakeBackend() });
  await queue.put(bytes('a'));
  const seen: string[] = [];
  for await (const data of queue) {
    seen.push(text({ data }));
    setImmediate(() => void queue.close());
  }
  for await (const data of queue) seen.push(text({ data }));
  expect(seen).toEqual(['a']);
  expect(await rejection(queue.put(bytes('b')))).toMatchObject({ code: 'ERR_QUEUE_CLOSED' });
});

test('a put that waits for capacity in the backend is cancelled by its signal', async () => {
  const backend = await openQueue({ maxBytesTotal: 3, whenFull: 'wait' });
  const queue = new OverflowQueue({ memorySize: 1, backend });
  await putAll(queue, ['a', 'bcd']);
  const controller = new AbortController();
  const put = queue.put(bytes('e'), { signal: controller.signal });
  expect(await isPending(put)).toBe(true);
  controller.abort('enough');
  expect(await rejection(put)).toBe('enough');
  expect(await rejection(queue.put(bytes('e'), { signal: controller.signal }))).toBe('enough');
  expect(await drain(queue)).toEqual(['a', 'bcd']);
});
