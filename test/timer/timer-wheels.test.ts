import { describe, expect, test } from 'vitest';
import { TimerWheels } from '../../src/timer/timer-wheels.ts';
import type { Rounding } from '../../src/timer/timer.ts';

function makeWheels(tickMs: number, wheelSize: number, startMs: number, rounding: Rounding = 'up') {
  const wheels = new TimerWheels(tickMs, wheelSize, startMs, rounding);
  const place = (delayMs: number, nowMs: number): number => {
    wheels.catchUp(nowMs);
    const slot = wheels.table.allocate(() => undefined, undefined);
    wheels.place(slot, delayMs, nowMs);
    return slot;
  };
  const due = (): number[] => {
    const slots: number[] = [];
    for (let slot = wheels.due.take(); slot !== 0; slot = wheels.due.take()) slots.push(slot);
    return slots;
  };
  return { wheels, place, due };
}

describe('the wheels', () => {
  test.each<[Rounding, number, number, number]>([
    ['up', 1, 5.000_001, 6],
    ['up', 1, 5, 5],
    ['up', 10, 21, 30],
    ['up', 10, 20, 20],
    ['up', 7, 2 ** 53, 9_007_199_254_740_988],
    ['up', 1, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER],
    ['down', 1, 5.9, 5],
    ['down', 10, 29.9, 20],
    ['down', 7, 2 ** 60, 9_007_199_254_740_988],
  ])('rounding %s to a tick of %d makes %d a deadline of %d', (rounding, tickMs, delayMs, expirationMs) => {
    const { wheels, place } = makeWheels(tickMs, 4, 0, rounding);
    expect(wheels.table.expirationOf(place(delayMs, 0))).toBe(expirationMs);
  });

  test('what is due goes to the due queue, what is not waits in a bucket', () => {
    const { wheels, place, due } = makeWheels(10, 4, 1_000, 'down');
    const slots = [9, 0, -5, 10].map((delayMs) => place(delayMs, 1_000));
    expect([wheels.due.size, wheels.earliest()]).toEqual([3, wheels.due.list]);
    expect(due()).toEqual(slots.slice(0, 3));
    expect(wheels.earliest()?.expirationMs).toBe(1_010);
  });

  test('catching up moves what fell due, in order of expiration', () => {
    const { wheels, place, due } = makeWheels(1, 4, 0);
    const [c, a, b, d] = [60, 3, 17, 100].map((delayMs) => place(delayMs, 0));
    expect([wheels.catchUp(0.9), wheels.catchUp(2)]).toEqual([false, false]);
    expect(wheels.catchUp(70)).toBe(true);
    expect(due()).toEqual([a, b, c]);
    expect([wheels.first.currentTimeMs, wheels.first.overflowWheel?.currentTimeMs]).toEqual([70, 68]);
    expect(wheels.table.size).toBe(4);
    wheels.catchUp(100);
    expect(due()).toEqual([d]);
  });

  test('a coarse bucket that only comes down counts as fallen due', () => {
    const { wheels, place } = makeWheels(1, 4, 0);
    place(6, 0);
    expect([wheels.catchUp(4), wheels.due.size]).toEqual([true, 0]);
    expect(wheels.earliest()).toMatchObject({ expirationMs: 6, tickMs: 1 });
  });

  test('expiring all empties everything, in order', () => {
    const { wheels, place, due } = makeWheels(1, 4, 0);
    const delays = [1e15, 5, 3, 70, 5];
    const slots = delays.map((delayMs) => place(delayMs, 0));
    wheels.movesPerTurn = 1;
    wheels.expireAll();
    expect(due()).toEqual([slots[2], slots[1], slots[4], slots[3], slots[0]]);
    wheels.expireAll();
    expect(wheels.earliest()).toBeUndefined();
  });
});
