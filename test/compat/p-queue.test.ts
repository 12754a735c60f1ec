import PQueue, { TimeoutError } from 'p-queue';
import { expect, test } from 'vitest';
import { swapTimers } from './swapped-timers.ts';

const never = (): Promise<never> => new Promise(() => undefined);

test('a task of p-queue that takes too long is rejected, and the next one starts', async () => {
  const timers = swapTimers();
  const queue = new PQueue({ concurrency: 1, timeout: 30 });
  const startMs = performance.now();
  const slow = queue.add(never);
  const next = queue.add(() => 'next');
  await expect(slow).rejects.toBeInstanceOf(TimeoutError);
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(30);
  expect(await next).toBe('next');
  expect(timers.setTimeout).toHaveBeenCalled();
  await queue.onIdle();
  expect(timers.waiting()).toBe(0);
});

test('a task of p-queue in time clears its timeout', async () => {
  const timers = swapTimers();
  const queue = new PQueue({ timeout: 60_000 });
  expect(await queue.addAll([() => 1, () => 2, () => 3])).toEqual([1, 2, 3]);
  expect(timers.setTimeout).toHaveBeenCalledTimes(3);
  expect(timers.waiting()).toBe(0);
});

test('p-queue keeps a rate of two every 40 ms', async () => {
  const timers = swapTimers();
  const queue = new PQueue({ interval: 40, intervalCap: 2 });
  const startMs = performance.now();
  const times: number[] = [];
  await queue.addAll(Array.from({ length: 6 }, () => () => times.push(performance.now() - startMs)));
  expect(times).toHaveLength(6);
  expect(times[2]).toBeGreaterThanOrEqual(39);
  expect(times[4]).toBeGreaterThanOrEqual(79);
  expect(timers.setInterval.mock.calls.length + timers.setTimeout.mock.calls.length).toBeGreaterThan(0);
  await queue.onIdle();
  queue.pause();
  queue.clear();
});

test('an aborted task of p-queue is rejected with its reason, and not by its timeout', async () => {
  const timers = swapTimers();
  const queue = new PQueue({ timeout: 50 });
  const controller = new AbortController();
  const task = queue.add(never, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(task).rejects.toThrow('enough');
  await queue.onIdle();
  // It does not clear the timeout of a task that was aborted; it ends by itself.
  await expect.poll(() => timers.waiting()).toBe(0);
});
