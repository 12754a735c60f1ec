import { ManualClock, systemClock, SystemTimer, type SystemTimerOptions, type TimerId } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { resolveOptions } from '../../src/timer/timer.ts';
import { expectInvalid, RANGE, TYPE, VALUE } from '../core/refused.ts';
import { thrownBy } from './support/errors.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { manualTimer } from './support/timers.ts';

test('the options of a timer have these defaults', () => {
  const before = systemClock.now();
  const { startMs, ...rest } = resolveOptions({});
  expect(rest).toEqual({
    name: 'timer',
    tickMs: 1,
    wheelSize: 64,
    clock: systemClock,
    rounding: 'up',
    autoStart: true,
    executor: undefined,
    maxTasksPerTurn: 10_000,
    asyncContext: false,
    onError: undefined,
    metrics: undefined,
  });
  expect(startMs).toBeGreaterThanOrEqual(before);
  expect(startMs).toBeLessThanOrEqual(systemClock.now());
});

test('valid options are used as they are', () => {
  const clock = new ManualClock({ nowMs: 50 });
  const options = {
    name: 'sessions',
    tickMs: 100,
    wheelSize: 2,
    startMs: 0,
    clock,
    rounding: 'down' as const,
    autoStart: false,
    executor: (run: () => void) => run(),
    maxTasksPerTurn: Infinity,
    onError: () => undefined,
  };
  expect(resolveOptions(options)).toMatchObject(options);
});

test('startMs defaults to the time of the clock, and is compared with it', () => {
  const clock = new ManualClock({ nowMs: 50.5 });
  expect(resolveOptions({ clock }).startMs).toBe(50.5);
  expect(resolveOptions({ clock, startMs: 50.5 }).startMs).toBe(50.5);
  const error = thrownBy(() => resolveOptions({ clock, startMs: 51 }));
  expect(error).toBeInstanceOf(RangeError);
  expect(String(error)).toContain('50.5');
});

test('the clock is read once, and only if the other options are valid', () => {
  let reads = 0;
  const clock = {
    now: () => ++reads,
    wallNow: () => 0,
    setTimeout: () => ({ cancel: () => undefined, ref: () => undefined, unref: () => undefined }),
  };
  resolveOptions({ clock });
  expect(reads).toBe(1);
  thrownBy(() => resolveOptions({ clock, tickMs: 0 }));
  expect(reads).toBe(1);
});

type BadValue = readonly [value: unknown, kind: typeof RANGE, shown: string];

const BAD_DELAYS: readonly BadValue[] = [
  [NaN, RANGE, 'NaN'],
  [Infinity, RANGE, 'Infinity'],
  [-Infinity, RANGE, '-Infinity'],
  ['10', TYPE, "'10' (a string)"],
  ['', TYPE, "'' (a string)"],
  [10n, TYPE, '10n (a bigint)'],
  [undefined, TYPE, 'undefined'],
  [null, TYPE, 'null'],
  [true, TYPE, 'true'],
  [{}, TYPE, '[object Object]'],
  [[5], TYPE, '[object Array]'],
  [new Date(5), TYPE, '[object Date]'],
  [Symbol('s'), TYPE, 'Symbol(s)'],
  [Math.max, TYPE, '[function max]'],
];

/** A timer in which something waits in a bucket, on a coarse wheel and in the due queue. */
function busyTimer(): { timer: SystemTimer; clock: ManualClock; task: TestTask; id: TimerId } {
  const { clock, timer } = manualTimer({ nowMs: 3.5 });
  const task = addTask(timer, 5_000);
  const id = timer.schedule(10, () => undefined);
  timer.schedule(0, () => undefined);
  return { timer, clock, task, id };
}

/** The error that `action` throws or rejects with, after a check that it changed nothing. */
async function refusedBy(timer: SystemTimer, clock: ManualClock, action: () => unknown): Promise<unknown> {
  const look = (): unknown => [timer.inspect(), timer.size, timer.nextExpirationMs(), clock.pendingWakeups];
  const before = look();
  const error: unknown = await Promise.resolve()
    .then(action)
    .then(() => expect.fail('it was accepted'))
    .catch((reason: unknown) => reason);
  expect(look()).toEqual(before);
  checkTimer(timer);
  return error;
}

type Call = (timer: SystemTimer, value: never, id: TimerId) => unknown;

describe.each<[call: string, argument: string, Call]>([
  ['new TimerTask', 'delayMs', (_, delayMs) => new TestTask(delayMs)],
  ['schedule', 'delayMs', (timer, delayMs) => timer.schedule(delayMs, () => undefined)],
  ['reschedule', 'delayMs', (timer, delayMs, id) => timer.reschedule(id, delayMs)],
  ['sleep', 'delayMs', (timer, delayMs) => timer.sleep(delayMs)],
  [
    'add',
    'task.delayMs',
    (timer, delayMs) => timer.add(Object.defineProperty(new TestTask(5), 'delayMs', { value: delayMs })),
  ],
])('%s', (name, argument, call) => {
  test.each(BAD_DELAYS)(`${name} refuses a delay of %o, and nothing changes`, async (bad, kind, shown) => {
    const { timer, clock, id } = busyTimer();
    const error = await refusedBy(timer, clock, () => call(timer, bad as never, id));
    expectInvalid(error, argument, kind, shown);
  });
});

test('a pending task stays where it is when its new delay is refused', async () => {
  const { timer, clock, task } = busyTimer();
  Object.defineProperty(task, 'delayMs', { value: NaN });
  await refusedBy(timer, clock, () => timer.add(task));
  expect([task.pending, task.isCancelled]).toEqual([true, false]);
  clock.advance(5_001);
  expect(task.runs).toBe(1);
});

const CALLS: Readonly<Record<string, readonly Call[]>> = {
  callback: [(timer, callback) => timer.schedule(5, callback)],
  task: [(timer, task) => timer.add(task)],
  id: [(timer, id) => timer.cancel(id), (timer, id) => timer.reschedule(id, 5)],
  options: [(timer, options) => timer.sleep(5, 0, options), (timer, options) => timer.close(options)],
  'options.signal': [(timer, signal) => timer.sleep(5, undefined, { signal })],
};

test.each<[argument: string, value: unknown, shown: string]>([
  ['callback', undefined, 'undefined'],
  ['callback', null, 'null'],
  ['callback', 'run', "'run' (a string)"],
  ['callback', {}, '[object Object]'],
  ['callback', 5, '5'],
  ['task', undefined, 'undefined'],
  ['task', null, 'null'],
  ['task', 5, '5'],
  ['task', () => undefined, '[function anonymous]'],
  ['task', { delayMs: 5, run: () => undefined }, '[object Object]'],
  ['id', undefined, 'undefined'],
  ['id', null, 'null'],
  ['id', '1', "'1' (a string)"],
  ['id', 1n, '1n (a bigint)'],
  ['id', {}, '[object Object]'],
  ['options', null, 'null'],
  ['options', 'drop', "'drop' (a string)"],
  ['options.signal', {}, '[object Object]'],
])('every method refuses %s of %o, and nothing changes', async (argument, value, shown) => {
  for (const call of CALLS[argument] as readonly Call[]) {
    const { timer, clock, id } = busyTimer();
    const error = await refusedBy(timer, clock, () => call(timer, value as never, id));
    expectInvalid(error, argument, TYPE, shown);
  }
});

const BAD_OPTIONS: readonly (readonly [keyof SystemTimerOptions, ...BadValue])[] = [
  ...[0, -1, 0.5, 1.5, NaN, Infinity, -0, 2 ** 53].map(
    (tickMs) => ['tickMs', tickMs, RANGE, String(tickMs)] as const,
  ),
  ['tickMs', '1', TYPE, "'1' (a string)"],
  ['tickMs', null, TYPE, 'null'],
  ...[1, 0, -2, 2.5, NaN, Infinity, 2 ** 20 + 1].map(
    (wheelSize) => ['wheelSize', wheelSize, RANGE, String(wheelSize)] as const,
  ),
  ['wheelSize', '64', TYPE, "'64' (a string)"],
  ['startMs', 101, RANGE, '101'],
  ['startMs', 100.001, RANGE, '100.001'],
  ['startMs', -1, RANGE, '-1'],
  ['startMs', NaN, RANGE, 'NaN'],
  ['startMs', -Infinity, RANGE, '-Infinity'],
  ['startMs', '0', TYPE, "'0' (a string)"],
  ['rounding', 'nearest', VALUE, "'nearest' (a string)"],
  ['rounding', null, VALUE, 'null'],
  ['autoStart', 1, TYPE, '1'],
  ['executor', {}, TYPE, '[object Object]'],
  ['maxTasksPerTurn', 0, RANGE, '0'],
  ['maxTasksPerTurn', 1.5, RANGE, '1.5'],
  ['maxTasksPerTurn', NaN, RANGE, 'NaN'],
  ['maxTasksPerTurn', '5', TYPE, "'5' (a string)"],
  ['onError', 'log', TYPE, "'log' (a string)"],
  ['name', 5, TYPE, '5'],
];

test.each(BAD_OPTIONS)(
  'the option %s refuses %o, and the error shows name and value',
  (option, bad, kind, shown) => {
    const clock = new ManualClock({ nowMs: 100 });
    const error = thrownBy(() => new SystemTimer({ clock, [option]: bad }));
    expectInvalid(error, option, kind, shown);
    expect(clock.pendingWakeups).toBe(0);
  },
);

test.each<[option: string, value: unknown]>([
  ...[null, {}, 5, { now: () => 0, wallNow: () => 0 }].map((value) => ['clock', value] as never),
  ...[null, {}, 5, { counter: () => ({}) }].map((value) => ['metrics', value] as never),
])('the option %s refuses %o', (option, value) => {
  const error = thrownBy(() => new SystemTimer({ clock: new ManualClock(), [option]: value }));
  expectInvalid(error, option, TYPE, '');
});

test.each([
  [null, 'null'],
  [100, '100'],
  ['tickMs', "'tickMs' (a string)"],
])('the constructor refuses %o as options', (options, shown) => {
  const error = thrownBy(() => new SystemTimer(options as never));
  expectInvalid(error, 'options', TYPE, shown);
});

test('an undefined option has its default', () => {
  const clock = new ManualClock();
  const options = { tickMs: undefined, wheelSize: undefined, startMs: undefined, onError: undefined };
  const timer = new SystemTimer({ clock, ...options });
  addTask(timer, 100);
  expect(timer.name).toBe('timer');
  expect(timer.inspect().levels[0]).toMatchObject({ tickMs: 1, wheelSize: 64, currentTimeMs: 0 });
});

test('the limits of options are valid', () => {
  const clock = new ManualClock({ nowMs: 100 });
  for (const options of [
    { tickMs: 1, wheelSize: 2, startMs: 100, maxTasksPerTurn: 1 },
    { tickMs: 2 ** 40, wheelSize: 2 ** 20, startMs: 0, maxTasksPerTurn: Infinity },
    { tickMs: Number.MAX_SAFE_INTEGER, wheelSize: 2 },
  ]) {
    const timer = new SystemTimer({ clock, ...options });
    addTask(timer, 5);
    expect(timer.size).toBe(1);
    checkTimer(timer);
  }
});

test.each(['complete', '', null, true])(
  'close refuses %o for pending, and the timer stays open',
  async (pending) => {
    const { timer, clock, task } = busyTimer();
    const error = await refusedBy(timer, clock, () => timer.close({ pending: pending as 'drop' }));
    expect(error).toMatchObject(VALUE);
    expect(task.pending).toBe(true);
  },
);
