import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RingQueue } from '../../src/core/ring-queue.ts';

describe('RingQueue', () => {
  test('is first in, first out', () => {
    const queue = new RingQueue<number>();
    for (let i = 0; i < 100; i++) queue.push(i);
    expect([queue.size, queue.first]).toEqual([100, 0]);
    for (let i = 0; i < 100; i++) expect(queue.shift()).toBe(i);
    expect([queue.size, queue.first, queue.shift(), queue.size]).toEqual([0, undefined, undefined, 0]);
  });

  test('takes values in front, also when it is full and when it is empty', () => {
    const queue = new RingQueue<number>();
    for (let i = 0; i < 50; i++) queue.unshift(i);
    queue.push(-1);
    expect([...queue]).toEqual([...Array.from({ length: 50 }, (_, i) => 49 - i), -1]);
  });

  test('undefined is a value', () => {
    const queue = new RingQueue<number | undefined>();
    queue.push(undefined);
    queue.push(1);
    expect([queue.size, queue.shift(), queue.size, queue.shift()]).toEqual([2, undefined, 1, 1]);
  });

  test('grows and shrinks by the hundred thousand, and keeps its order', () => {
    const queue = new RingQueue<number>();
    let [pushed, taken] = [0, 0];
    for (const [pushes, takes] of [
      [100_000, 99_990],
      [30_000, 5],
      [200_000, 230_000],
      [16_385, 16_385],
    ] as const) {
      for (let i = 0; i < pushes; i++) queue.push(pushed++);
      for (let i = 0; i < takes; i++) if (queue.shift() !== taken++) expect.fail(`${taken} is out of order`);
      expect(queue.size).toBe(pushed - taken);
    }
  });

  test('behaves like an array', () => {
    const operation = fc.constantFrom('push' as const, 'push' as const, 'unshift' as const, 'shift' as const);
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200, size: 'max' }), (operations) => {
        const [queue, model] = [new RingQueue<number>(), [] as number[]];
        for (const [i, what] of operations.entries()) {
          if (what === 'shift') expect(queue.shift()).toBe(model.shift());
          else {
            queue[what](i);
            model[what](i);
          }
          expect([queue.size, queue.first]).toEqual([model.length, model[0]]);
        }
        expect([...queue]).toEqual(model);
      }),
    );
  });
});
