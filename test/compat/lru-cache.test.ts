import { LRUCache } from 'lru-cache';
import { systemClock } from 'escapement';
import { expect, test } from 'vitest';
import { swapTimers } from './swapped-timers.ts';

test('lru-cache on our timers and our clock purges what is too old by itself', async () => {
  const timers = swapTimers();
  const disposed: string[] = [];
  const cache = new LRUCache<string, number>({
    max: 100,
    ttl: 20,
    ttlAutopurge: true,
    perf: systemClock,
    dispose: (_, key, reason) => disposed.push(`${key} ${reason}`),
  });
  cache.set('a', 1).set('c', 3, { ttl: 60 }).set('b', 2, { ttl: 40 });
  expect(timers.setTimeout).toHaveBeenCalledTimes(3);
  expect([cache.size, timers.waiting()]).toEqual([3, 3]);
  await expect.poll(() => timers.waiting()).toBe(0); // the cache holds its reading of the clock for a millisecond
  expect(disposed.sort()).toEqual(['a expire', 'b expire', 'c expire']);
  expect(cache.size).toBe(0);
});

test('what is set again in an lru-cache lives on, and what is deleted is not purged twice', async () => {
  const timers = swapTimers();
  const ttl = 50;
  const disposed: string[] = [];
  let cache = new LRUCache<string, number>({ max: 1 });
  const expired = new Promise<void>((resolve) => {
    cache = new LRUCache<string, number>({
      max: 100,
      ttl,
      ttlAutopurge: true,
      perf: systemClock,
      dispose: (_, key, reason) => {
        disposed.push(`${key} ${reason}`);
        if (reason === 'expire') resolve();
      },
    });
  });
  cache.set('a', 1).set('b', 2);
  const setAtMs = systemClock.now();
  while (systemClock.now() < setAtMs + 10) continue; // in one turn, in which nothing expires
  const setAgainAt = systemClock.now();
  cache.set('a', 10);
  cache.delete('b');
  await expired;
  expect(systemClock.now() - setAgainAt).toBeGreaterThanOrEqual(ttl);
  expect(cache.get('a')).toBeUndefined();
  expect(disposed).toEqual(['a set', 'b delete', 'a expire']);
  await expect.poll(() => timers.waiting()).toBe(0);
});

test('the timeouts of lru-cache keep no process alive: it calls unref', () => {
  const timers = swapTimers();
  const cache = new LRUCache<string, number>({ max: 10, ttl: 60_000, ttlAutopurge: true });
  cache.set('a', 1);
  const [{ value: timeout } = { value: undefined }] = timers.setTimeout.mock.results;
  expect((timeout as NodeJS.Timeout).hasRef()).toBe(false);
  cache.clear();
});
