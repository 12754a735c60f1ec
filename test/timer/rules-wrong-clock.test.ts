import { describe, expect, test } from 'vitest';
import { ManualClock, SystemTimer, type Clock, type ClockTimeout } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { thrownBy } from './support/errors.ts';

/** Virtual time that is wrong while the test wants it to be; its wake-ups come all the same. */
class WrongClock implements Clock {
  readonly manual = new ManualClock({ nowMs: 1_000 });
  wrong: { readonly now: () => unknown } | undefined;

  now(): number {
    return this.wrong === undefined ? this.manual.now() : (this.wrong.now() as number);
  }

  wallNow(): number {
    return this.manual.wallNow();
  }

  setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    return this.manual.setTimeout(callback, delayMs);
  }
}

const INVALID = { name: 'EscapementError', code: 'ERR_CLOCK_INVALID' };
const broken = new Error('no clock');
const WRONG: readonly (readonly [string, () => unknown])[] = [
  ...[NaN, Infinity, -Infinity, -1, 2 ** 53, undefined, null, '5', 5n].map(
    (value) => [`returns ${String(value)} (${typeof value})`, () => value] as const,
  ),
  [
    'throws',
    () => {
      throw broken;
    },
  ],
];

function open(options: { autoStart?: boolean } = {}): {
  clock: WrongClock;
  timer: SystemTimer;
  ran: string[];
  errors: unknown[];
} {
  const clock = new WrongClock();
  const errors: unknown[] = [];
  const timer = new SystemTimer({
    ...options,
    clock,
    onError: (error) => errors.push(error),
  });
  return { clock, timer, ran: [], errors };
}

describe.each(WRONG)('a clock that %s', (_, now) => {
  const isExpected = (error: unknown): void => {
    if (error !== broken) expect(error).toMatchObject(INVALID);
  };

  test('is refused by every call that reads it, which changes nothing; then the timer goes on', async () => {
    const { clock, timer, ran } = open({ autoStart: false });
    const add = (name: string): unknown => timer.schedule(10, (each) => ran.push(each), name);
    add('a');
    const id = timer.schedule(20, (each) => ran.push(each), 'b');
    clock.wrong = { now };
    const calls = [
      () => timer.poll(),
      () => add('c'),
      () => timer.reschedule(id, 5),
      () => timer.inspect(),
      () => new SystemTimer({ clock }),
    ];
    for (const call of calls) isExpected(thrownBy(call));
    isExpected(await timer.advanceClock(5).catch((error: unknown) => error));
    checkTimer(timer);
    expect([timer.size, timer.nextExpirationMs(), ran]).toEqual([2, 1_010, []]);
    clock.wrong = undefined;
    clock.manual.advance(20);
    expect(timer.poll()).toBe(2);
    expect(ran).toEqual(['a', 'b']);
  });

  test('when it wakes the timer: one error, nothing runs, and what is due runs soon after it is right', () => {
    const { clock, timer, ran, errors } = open();
    timer.schedule(10, (each) => ran.push(each), 'a');
    clock.wrong = { now };
    clock.manual.advance(10_000);
    expect([ran, errors.length, clock.manual.pendingWakeups]).toEqual([[], 1, 1]);
    isExpected(errors[0]);
    checkTimer(timer);
    clock.wrong = undefined;
    clock.manual.advance(1_000);
    expect([ran, errors.length, clock.manual.pendingWakeups]).toEqual([['a'], 1, 0]);
    checkTimer(timer);
  });

  test('from inside a task: the others still run, and the timer goes on', () => {
    const { clock, timer, ran, errors } = open();
    timer.schedule(10, () => (clock.wrong = { now }), undefined);
    timer.schedule(10, (each) => ran.push(each), 'a');
    timer.schedule(20, (each) => ran.push(each), 'b');
    clock.manual.advance(15);
    expect([ran, errors.length]).toEqual([['a'], 1]);
    clock.wrong = undefined;
    clock.manual.advance(1_000);
    expect(ran).toEqual(['a', 'b']);
    checkTimer(timer);
  });

  test('is not needed to cancel; a timer that has nothing to wait for wakes nobody', () => {
    const { clock, timer, errors } = open();
    const first = timer.schedule(10, () => undefined, undefined);
    const second = timer.schedule(20, () => undefined, undefined);
    clock.wrong = { now };
    expect([timer.cancel(first), errors.length]).toEqual([true, 1]);
    expect([timer.cancel(second), clock.manual.pendingWakeups]).toEqual([true, 0]);
    checkTimer(timer);
  });

  test('a task that is added when it is right again moves the wake-up to where it belongs', () => {
    const { clock, timer, ran } = open();
    timer.schedule(10, (each) => ran.push(each), 'a');
    timer.schedule(100, (each) => ran.push(each), 'b');
    clock.wrong = { now };
    clock.manual.advance(10);
    clock.wrong = undefined;
    timer.schedule(5, (each) => ran.push(each), 'c');
    checkTimer(timer);
    clock.manual.advance(90);
    expect(ran).toEqual(['a', 'c', 'b']);
  });
});

test('a caller of advanceClock gets its answer when the clock is right again', async () => {
  const { clock, timer, errors } = open({ autoStart: false });
  const fellDue = timer.advanceClock(10);
  clock.wrong = { now: () => NaN };
  clock.manual.advance(10);
  expect(errors).toMatchObject([INVALID]);
  clock.wrong = undefined;
  clock.manual.advance(1_000);
  expect(await fellDue).toBe(false);
});
