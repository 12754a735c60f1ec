import { expect, test } from 'vitest';
import { History, type Sample } from '../../src/dashboard/history.ts';

const sample = (pending: number): Sample => ({
  ...{ processedPerS: 0.1, failedPerS: 0, pending, active: 0, latencyMs: 0 },
});

const samples = (...queues: string[]): ReadonlyMap<string, Sample> =>
  new Map(queues.map((queue) => [queue, sample(queue.length)]));

test('a history has the last samples, the oldest first, and rounds what floats add', () => {
  const history = new History(3, 10);
  for (let second = 1; second <= 5; second++) history.add(second, samples('a'));
  const last = { atMs: [3, 4, 5], pending: [1, 1, 1], processedPerS: [0.1, 0.1, 0.1] };
  expect(history.read('a', 0)).toMatchObject(last);
  expect(history.read('a', 4)).toMatchObject({ atMs: [4, 5] });
  expect(history.read('b', 0)).toMatchObject({ atMs: [], pending: [] });
});

test('times ascend, also if the clock was ahead for a while', () => {
  const history = new History(10, 10);
  for (const second of [1, 2, 3, 7, 8, 9, 3, 4]) history.add(second, samples('a'));
  expect(history.read('a', 0)).toMatchObject({ atMs: [1, 2, 3, 4] });
});

test('a queue has samples of the times at which it was there, and is forgotten with the last of them', () => {
  const history = new History(3, 10);
  history.add(1, samples('a'));
  history.add(2, samples('a', 'b'));
  history.add(3, samples('b'));
  expect(history.read('a', 0)).toMatchObject({ atMs: [1, 2] });
  expect(history.read('b', 0)).toMatchObject({ atMs: [2, 3] });
  for (let second = 4; second <= 6; second++) history.add(second, samples('b'));
  expect(history.read('a', 0)).toMatchObject({ atMs: [] });
});

test('a queue beyond the maximum has samples when another queue was removed', () => {
  const history = new History(10, 1);
  history.add(1, samples('a', 'b')); // one queue, besides that of all together
  history.add(2, samples('a', 'b', 'cc'));
  expect(history.read('cc', 0)).toMatchObject({ atMs: [] });
  history.add(3, samples('b', 'cc'));
  expect(history.read('a', 0)).toMatchObject({ atMs: [] });
  expect(history.read('b', 0)).toMatchObject({ atMs: [1, 2, 3] });
  expect(history.read('cc', 0)).toMatchObject({ atMs: [3], pending: [2] });
});
