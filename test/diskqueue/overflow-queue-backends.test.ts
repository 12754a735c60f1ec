import { DiskQueue, DummyBackendQueue, OverflowQueue } from 'escapement/diskqueue';
import { expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { bytes, drain, isPending, putAll, rejection } from './support/queues.ts';

const CLOSED = { name: 'EscapementError', code: 'ERR_QUEUE_CLOSED' };

test('a dummy backend drops and counts what is put', async () => {
  const queue = new DummyBackendQueue();
  await putAll(queue, 'abc');
  expect([queue.depth, queue.dropped]).toEqual([0, 3]);
  await queue.empty();
  expect(queue.dropped).toBe(3);
  expect(await rejection(queue.put('text' as never))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  expect(await rejection(queue.put(bytes('a'), { signal: AbortSignal.abort('gone') }))).toBe('gone');
  expect(queue.dropped).toBe(3);
});

test('a receive of a dummy backend waits until its signal fires or the queue is closed', async () => {
  const queue = new DummyBackendQueue();
  const controller = new AbortController();
  const aborted = queue.receive({ signal: controller.signal });
  const waiting = queue.receive();
  expect(await isPending(Promise.race([aborted, waiting]))).toBe(true);
  controller.abort('gone');
  expect(await rejection(aborted)).toBe('gone');
  expect(await rejection(queue.receive({ signal: AbortSignal.abort('before') }))).toBe('before');
  const closing = queue.close();
  expect(await rejection(waiting)).toMatchObject(CLOSED);
  await closing;
});

test.each(['close', 'delete'] as const)(
  'after %s of a dummy backend all calls reject, and a second one does nothing',
  async (end) => {
    const queue = new DummyBackendQueue();
    await queue[end]();
    await queue[end]();
    for (const promise of [queue.put(bytes('a')), queue.receive(), queue.empty()]) {
      expect(await rejection(promise)).toMatchObject(CLOSED);
    }
  },
);

test('an ephemeral queue drops what does not fit in memory, and keeps the order of the rest', async () => {
  const backend = new DummyBackendQueue();
  const queue = new OverflowQueue({ memorySize: 3, backend });
  await putAll(queue, 'abcde');
  expect([queue.depth, backend.dropped]).toEqual([3, 2]);
  expect(await drain(queue, 1)).toEqual(['a']);
  await putAll(queue, 'fg');
  expect(await drain(queue)).toEqual(['b', 'c', 'f']);
  expect(backend.dropped).toBe(3);
});

const backend = new DummyBackendQueue();

test.each([
  [undefined, 'ERR_INVALID_ARG_TYPE'],
  [{ backend }, 'ERR_INVALID_ARG_TYPE'],
  [{ memorySize: '3', backend }, 'ERR_INVALID_ARG_TYPE'],
  [{ memorySize: -1, backend }, 'ERR_OUT_OF_RANGE'],
  [{ memorySize: 1.5, backend }, 'ERR_OUT_OF_RANGE'],
  [{ memorySize: Infinity, backend }, 'ERR_OUT_OF_RANGE'],
  [{ memorySize: 3 }, 'ERR_INVALID_ARG_TYPE'],
  [{ memorySize: 3, backend: {} }, 'ERR_INVALID_ARG_TYPE'],
  [{ memorySize: 3, backend: DiskQueue }, 'ERR_INVALID_ARG_TYPE'],
])('the options %o are refused', (options, code) => {
  expect(thrownBy(() => new OverflowQueue(options as never))).toMatchObject({ code });
});
