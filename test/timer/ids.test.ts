import { ManualClock, SystemTimer, type TimerId } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { HandClock } from './support/hand-clock.ts';
import { Journal, TestTask } from './support/tasks.ts';

/** Numbers that schedule never returned to anybody. */
const FOREIGN = [
  ...[0, -0, -1, 1.5, 0.5, NaN, Infinity, -Infinity, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), 2 ** 26, 2 ** 27],
  ...[2 ** 31, 2 ** 32, Number.MAX_VALUE, Number.MIN_VALUE, 1e300, -1e300],
  ...Array.from({ length: 100 }, (_, i) => i + 1),
  // One below each of the first slots, in every unit an id might be counted in.
  ...[26, 27, 31, 32, 52].flatMap((bits) => Array.from({ length: 40 }, (_, i) => i - 2 ** bits)),
];

/** Neither operation finds anything under any of these numbers, and neither changes anything. */
function expectForeign(timer: SystemTimer, numbers: readonly number[] = FOREIGN): void {
  const before = [timer.inspect(), timer.size, timer.nextExpirationMs()];
  for (const number of numbers) {
    expect([number, timer.cancel(number as TimerId)]).toEqual([number, false]);
    expect([number, timer.reschedule(number as TimerId, 5)]).toEqual([number, false]);
  }
  expect([timer.inspect(), timer.size, timer.nextExpirationMs()]).toEqual(before);
  checkTimer(timer);
}

describe('a number that is no id finds nothing and changes nothing', () => {
  test('in a fresh timer', () => {
    expectForeign(new SystemTimer({ clock: new ManualClock() }));
  });

  test('in a timer in which tasks and callbacks wait', () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    for (let i = 0; i < 50; i++) {
      timer.add(new TestTask(i * 7));
      timer.schedule(i * 7, () => undefined, undefined);
    }
    expectForeign(timer);
  });

  test('in a timer that has run tasks', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    for (let i = 0; i < 20; i++) timer.schedule(i, () => undefined, undefined);
    clock.nowMs = 10;
    timer.poll();
    expectForeign(timer);
  });

  test('inside a task', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    let runs = 0;
    for (let i = 0; i < 3; i++) {
      timer.add(
        new TestTask(1, () => {
          runs++;
          timer.schedule(5, () => undefined, undefined);
          expectForeign(timer);
        }),
      );
    }
    timer.schedule(10, () => undefined, undefined);
    clock.advance(1);
    expect([runs, timer.size]).toEqual([3, 4]);
  });

  test('near an id that is in use', () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const id = timer.schedule(5, () => undefined, undefined);
    expectForeign(timer, [
      id + 0.5,
      id - 0.5,
      0 - id,
      id + 1,
      id - 1,
      id + 2 ** 26,
      id - 2 ** 26,
      id + 2 ** 53,
    ]);
    expect(timer.cancel(id)).toBe(true);
  });
});

describe('an id of another timer finds nothing here', () => {
  test('although both hand out the same slots', () => {
    const clock = new ManualClock();
    const [one, two] = [new SystemTimer({ clock }), new SystemTimer({ clock })];
    const ids = Array.from({ length: 100 }, () => one.schedule(5, () => undefined, undefined));
    for (let i = 0; i < 100; i++) two.schedule(5, () => undefined, undefined);
    expectForeign(two, ids);
    expect(ids.every((id) => one.cancel(id))).toBe(true);
  });
});

describe('a stale id finds nothing', () => {
  test.each(['ran', 'cancelled', 'ran in close'])('of a callback that %s', (end) => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const journal = new Journal();
    const ids = [3, 1, 2].map((delayMs) => timer.schedule(delayMs, journal.write, delayMs));
    clock.nowMs = 5;
    if (end === 'ran') timer.poll();
    if (end === 'cancelled') for (const id of ids) timer.cancel(id);
    if (end === 'ran in close') timer.close({ pending: 'run' });
    expect(journal.entries).toHaveLength(end === 'cancelled' ? 0 : 3);
    expectForeign(timer, ids);
  });

  test('while its slot is in use again: the new callback is safe', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const stale: TimerId[] = [];
    for (let round = 0; round < 50; round++) {
      const ids = Array.from({ length: 5 }, () => timer.schedule(5, () => undefined, undefined));
      expectForeign(timer, stale);
      stale.push(...ids);
      for (const id of ids) expect(timer.cancel(id)).toBe(true);
    }
    expect(new Set(stale).size).toBe(250);
    expect(timer.size).toBe(0);
  });

  test('while a task has its slot', () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const id = timer.schedule(5, () => undefined, undefined);
    timer.cancel(id);
    const task = new TestTask(5);
    timer.add(task);
    expectForeign(timer, [id]);
    expect(task.pending).toBe(true);
  });

  test('but a rescheduled one is the same as before', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const journal = new Journal();
    const id = timer.schedule(5, journal.write, 'callback');
    for (const delayMs of [100, 0, 1e9, 7]) expect(timer.reschedule(id, delayMs)).toBe(true);
    expect(timer.size).toBe(1);
    clock.advance(7);
    expect(journal.entries).toEqual(['callback']);
    expect(timer.reschedule(id, 1)).toBe(false);
  });
});

test('ids are positive safe integers, each given once', () => {
  const timer = new SystemTimer({ clock: new ManualClock() });
  const seen = new Set<number>();
  for (let i = 0; i < 5_000; i++) {
    const id = timer.schedule(1, () => undefined, undefined);
    expect(Number.isSafeInteger(id) && id > 0 && !seen.has(id)).toBe(true);
    seen.add(id);
    if (i % 3 === 0) timer.cancel(id);
  }
});
