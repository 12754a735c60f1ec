import { expect, test } from 'vitest';
import { PendingKeys } from '../../src/purgatory/key-checks.ts';

function drain(queue: PendingKeys): unknown[] {
  const taken: unknown[] = [];
  for (let key = queue.take(); key !== undefined; key = queue.take()) taken.push(key);
  return taken;
}

test('keys come out in the order in which they came in, each once', () => {
  const queue = new PendingKeys();
  for (const key of ['a', NaN, 'b', 'a', NaN, 0]) queue.add(key);
  expect(drain(queue)).toEqual(['a', NaN, 'b', 0]);
  expect(queue.take()).toBeUndefined();
});

test('a key that was taken may come again, also when the queue has been empty', () => {
  const queue = new PendingKeys();
  queue.add('a');
  expect(queue.take()).toBe('a');
  queue.add('b');
  queue.add('a');
  expect(drain(queue)).toEqual(['b', 'a']);
  queue.add('a');
  expect(drain(queue)).toEqual(['a']);
});

test('clear forgets what is in line, also in the middle', () => {
  const queue = new PendingKeys();
  for (const key of ['a', 'b', 'c']) queue.add(key);
  expect(queue.take()).toBe('a');
  queue.clear();
  expect(queue.take()).toBeUndefined();
  queue.add('b');
  expect(drain(queue)).toEqual(['b']);
});

test('a line that never ends costs the same at its end as at its beginning', () => {
  const queue = new PendingKeys();
  for (let i = 0; i < 100; i++) queue.add(i);
  for (let i = 100; i < 1_000_000; i++) {
    queue.add(i);
    queue.take();
  }
  expect(drain(queue)).toHaveLength(100);
});
