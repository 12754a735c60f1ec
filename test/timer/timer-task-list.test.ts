import { expect, test } from 'vitest';
import { NO_SLOT, TimerTable } from '../../src/timer/timer-table.ts';
import { DelayQueue, DueQueue, TimerTaskList } from '../../src/timer/timer-task-list.ts';

const table = new TimerTable();

/** A bucket with an entry, or an empty one. */
function bucket(tickMs = 1, size = 1): TimerTaskList {
  const list = new TimerTaskList(table, tickMs);
  for (let i = 0; i < size; i++) list.add(table.allocate(() => undefined, undefined));
  return list;
}

test('a delay queue returns due buckets in order of expiration', () => {
  const queue = new DelayQueue();
  const buckets = [50, 10, 30, 20, 40].map((expirationMs) => {
    const list = bucket();
    queue.offer(list, expirationMs);
    return list;
  });
  expect(queue.peek()).toBe(buckets[1]);
  expect(queue.poll(9.999)).toBeUndefined();
  expect(queue.poll(10)).toBe(buckets[1]);
  expect(queue.expirations()).toEqual([20, 30, 40, 50]);
  expect([queue.poll(100), queue.poll(100), queue.poll(100)].map((list) => list?.expirationMs)).toEqual([
    20, 30, 40,
  ]);
  expect(queue.poll(49)).toBeUndefined();
});

test('of two buckets that expire together the finer one is first in the delay queue', () => {
  const queue = new DelayQueue();
  const [coarse, fine] = [bucket(20), bucket(1)];
  queue.offer(coarse, 40);
  queue.offer(fine, 40);
  expect([queue.poll(40), queue.poll(40)]).toEqual([fine, coarse]);
});

test('an emptied bucket counts as absent, and is dropped when it comes to the top of the delay queue', () => {
  const queue = new DelayQueue();
  const [first, second, third] = [bucket(), bucket(), bucket()];
  queue.offer(first, 1);
  queue.offer(second, 2);
  queue.offer(third, 3);
  table.discard(first.first);
  table.discard(second.first);
  expect(queue.expirations()).toEqual([3]);
  expect(queue.buckets).toHaveLength(3);
  expect(queue.peek()).toBe(third);
  expect([first.isQueued, second.isQueued, queue.buckets.length]).toEqual([false, false, 1]);
});

test('a bucket that was emptied and filled again stays in the delay queue', () => {
  const queue = new DelayQueue();
  const [first, second] = [bucket(), bucket()];
  queue.offer(second, 2);
  queue.offer(first, 5);
  table.discard(first.first);
  first.add(table.allocate(() => undefined, undefined));
  expect(queue.expirations()).toEqual([2, 5]);
  expect([queue.poll(9), queue.poll(9), queue.poll(9)]).toEqual([second, first, undefined]);
});

function makeQueue() {
  const table = new TimerTable();
  const due = new DueQueue(table);
  const add = (sinceMs = 0): number => {
    const slot = table.allocate(() => undefined, undefined);
    due.add(slot, sinceMs);
    return slot;
  };
  return { table, due, add };
}

test('a due queue is first in, first out', () => {
  const { due, add } = makeQueue();
  expect([due.isEmpty, due.take()]).toEqual([true, NO_SLOT]);
  const slots = [add(), add(), add()];
  expect([due.size, due.isEmpty]).toEqual([3, false]);
  expect([due.take(), due.take(), due.take(), due.take()]).toEqual([...slots, NO_SLOT]);
  expect(due.isEmpty).toBe(true);
});

test('a due queue has been due since its first entry fell due', () => {
  const { table, due, add } = makeQueue();
  const first = add(5);
  add(7);
  expect(due.list.expirationMs).toBe(5);
  table.discard(first);
  due.take();
  add(9);
  expect(due.list.expirationMs).toBe(9);
});

test('a due queue returns no entry behind the fence', () => {
  const { table, due, add } = makeQueue();
  const [a, b] = [add(), add()];
  due.raiseFence();
  const c = add();
  expect([due.size, due.fenceSlot === NO_SLOT]).toEqual([3, false]);
  expect(due.take()).toBe(a);
  table.discard(b);
  expect(due.take()).toBe(NO_SLOT);
  expect([due.size, due.isEmpty]).toEqual([1, false]);
  due.lowerFence();
  expect(due.fenceSlot).toBe(NO_SLOT);
  expect([due.take(), due.take()]).toEqual([c, NO_SLOT]);
});

test('a due queue with nothing but the fence is empty', () => {
  const { due, add } = makeQueue();
  due.raiseFence();
  expect([due.size, due.isEmpty, due.take()]).toEqual([0, true, NO_SLOT]);
  add(8);
  expect(due.list.expirationMs).toBe(8);
  due.lowerFence();
  due.lowerFence();
  expect(due.size).toBe(1);
});

test('the fence is not an entry', () => {
  const { table, due, add } = makeQueue();
  add();
  due.raiseFence();
  expect(table.size).toBe(1);
  expect(table.slotOf(table.idOf(due.fenceSlot))).toBe(NO_SLOT);
  due.lowerFence();
  expect(table.size).toBe(1);
});
