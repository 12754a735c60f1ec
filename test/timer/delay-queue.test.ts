import { describe, expect, test } from 'vitest';
import { DelayQueue } from '../../src/timer/timer-task-list.ts';
import { TimerTable } from '../../src/timer/timer-table.ts';
import { TimerTaskList } from '../../src/timer/timer-task-list.ts';

const table = new TimerTable();

/** A bucket with an entry, or an empty one. */
function bucket(tickMs = 1, size = 1): TimerTaskList {
  const list = new TimerTaskList(table, tickMs);
  for (let i = 0; i < size; i++) list.add(table.allocate(() => undefined, undefined));
  return list;
}

describe('a delay queue', () => {
  test('hands out buckets in order of expiration, when they are due', () => {
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

  test('knows when it has nothing', () => {
    const queue = new DelayQueue();
    expect([queue.peek(), queue.poll(Infinity), queue.expirations()]).toEqual([undefined, undefined, []]);
  });

  test('of two that expire together the finer one comes first', () => {
    const queue = new DelayQueue();
    const [coarse, fine] = [bucket(20), bucket(1)];
    queue.offer(coarse, 40);
    queue.offer(fine, 40);
    expect([queue.poll(40), queue.poll(40)]).toEqual([fine, coarse]);
  });

  test('a bucket knows whether it is queued', () => {
    const queue = new DelayQueue();
    const list = bucket();
    expect(list.isQueued).toBe(false);
    queue.offer(list, 5);
    expect([list.isQueued, list.expirationMs]).toEqual([true, 5]);
    queue.poll(5);
    expect(list.isQueued).toBe(false);
  });

  test('a bucket that was emptied counts as absent, and is dropped when it comes to the top', () => {
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

  test('a bucket that was emptied and filled again keeps its place', () => {
    const queue = new DelayQueue();
    const [first, second] = [bucket(), bucket()];
    queue.offer(second, 2);
    queue.offer(first, 5);
    table.discard(first.first);
    first.add(table.allocate(() => undefined, undefined));
    expect(queue.expirations()).toEqual([2, 5]);
    expect([queue.poll(9), queue.poll(9), queue.poll(9)]).toEqual([second, first, undefined]);
  });
});
