import {
  ManualClock,
  systemClock,
  SystemTimer,
  type SystemTimerOptions,
  type TimerId,
  TimerTask,
} from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { resolveOptions } from '../../src/timer/timer.ts';
import { thrownBy } from './support/errors.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { manualTimer } from './support/timers.ts';

describe('the options of a timer', () => {
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
});

type BadValue = readonly [
  value: unknown,
  type: typeof RangeError | typeof TypeError,
  code: string,
  shown: string,
];

const RANGE = [RangeError, 'ERR_OUT_OF_RANGE'] as const;
const TYPE = [TypeError, 'ERR_INVALID_ARG_TYPE'] as const;
const VALUE = [TypeError, 'ERR_INVALID_ARG_VALUE'] as const;

const BAD_DELAYS: readonly BadValue[] = [
  [NaN, ...RANGE, 'NaN'],
  [Infinity, ...RANGE, 'Infinity'],
  [-Infinity, ...RANGE, '-Infinity'],
  ['10', ...TYPE, "'10' (a string)"],
  ['', ...TYPE, "'' (a string)"],
  [10n, ...TYPE, '10n (a bigint)'],
  [undefined, ...TYPE, 'undefined'],
  [null, ...TYPE, 'null'],
  [true, ...TYPE, 'true'],
  [{}, ...TYPE, '[object Object]'],
  [[5], ...TYPE, '[object Array]'],
  [new Date(5), ...TYPE, '[object Date]'],
  [Symbol('s'), ...TYPE, 'Symbol(s)'],
  [Math.max, ...TYPE, '[function max]'],
];

/** A timer in which something waits in a bucket, on a coarse wheel and in the due queue. */
function busyTimer(): { timer: SystemTimer; clock: ManualClock; task: TestTask; id: TimerId } {
  const { clock, timer } = manualTimer({ nowMs: 3.5 });
  const task = addTask(timer, 5_000);
  const id = timer.schedule(10, () => undefined);
  timer.schedule(0, () => undefined);
  return { timer, clock, task, id };
}

/** The error that `action` throws, after a check that it changed nothing. */
function refusedBy(timer: SystemTimer, clock: ManualClock, action: () => unknown): unknown {
  const look = (): unknown => [timer.inspect(), timer.size, timer.nextExpirationMs(), clock.pendingWakeups];
  const before = look();
  const error = thrownBy(action);
  expect(look()).toEqual(before);
  checkTimer(timer);
  return error;
}

function expectError(error: unknown, argument: string, [, type, code, shown]: BadValue): void {
  expect(error).toBeInstanceOf(type);
  expect(error).toHaveProperty('code', code);
  expect((error as Error).message).toMatch(new RegExp(`^(options\\.)?${argument} must be `));
  expect((error as Error).message).toContain(`Received ${shown}`);
}

describe.each(BAD_DELAYS)('a delay of %o', (...bad) => {
  const delayMs = bad[0] as number;

  test('a task refuses such a delay in its constructor', () =>
    expectError(
      thrownBy(() => new TestTask(delayMs)),
      'delayMs',
      bad,
    ));

  test('add refuses such a delay of a subclass', () => {
    const { timer, clock } = busyTimer();
    const task = new TestTask(5);
    Object.defineProperty(task, 'delayMs', { value: delayMs });
    const error = refusedBy(timer, clock, () => timer.add(task));
    expectError(error, 'task.delayMs', bad);
    expect(task.pending).toBe(false);
  });

  test('schedule refuses such a delay', () => {
    const { timer, clock } = busyTimer();
    const error = refusedBy(timer, clock, () => timer.schedule(delayMs, () => undefined));
    expectError(error, 'delayMs', bad);
  });

  test('reschedule refuses such a delay, and the deadline stays', () => {
    const { timer, clock, id } = busyTimer();
    expectError(
      refusedBy(timer, clock, () => timer.reschedule(id, delayMs)),
      'delayMs',
      bad,
    );
    expect(timer.cancel(id)).toBe(true);
  });

  test('sleep rejects for such a delay', async () => {
    const { timer, clock } = busyTimer();
    const { size } = timer;
    const error: unknown = await timer.sleep(delayMs).catch((reason: unknown) => reason);
    expectError(error, 'delayMs', bad);
    expect([timer.size, clock.pendingWakeups]).toEqual([size, 1]);
    checkTimer(timer);
  });
});

test('a pending task stays where it is when its new delay is refused', () => {
  const { timer, clock, task } = busyTimer();
  Object.defineProperty(task, 'delayMs', { value: NaN });
  refusedBy(timer, clock, () => timer.add(task));
  expect([task.pending, task.isCancelled]).toEqual([true, false]);
  clock.advance(5_001);
  expect(task.runs).toBe(1);
});

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  ['run', "'run' (a string)"],
  [{}, '[object Object]'],
  [5, '5'],
])('schedule refuses %o as a callback', (callback, shown) => {
  const { timer, clock } = busyTimer();
  const error = refusedBy(timer, clock, () => timer.schedule(5, callback as () => void));
  expectError(error, 'callback', [callback, ...TYPE, shown]);
});

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  [5, '5'],
  [() => undefined, '[function anonymous]'],
  [{ delayMs: 5, run: () => undefined }, '[object Object]'],
])('add refuses %o as a task', (task, shown) => {
  const { timer, clock } = busyTimer();
  const error = refusedBy(timer, clock, () => timer.add(task as unknown as TimerTask));
  expectError(error, 'task', [task, ...TYPE, shown]);
});

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  ['1', "'1' (a string)"],
  [1n, '1n (a bigint)'],
  [{}, '[object Object]'],
])('cancel and reschedule refuse %o as an id', (id, shown) => {
  const { timer, clock } = busyTimer();
  for (const action of [
    () => timer.cancel(id as unknown as TimerId),
    () => timer.reschedule(id as unknown as TimerId, 5),
  ]) {
    expectError(refusedBy(timer, clock, action), 'id', [id, ...TYPE, shown]);
  }
});

const BAD_OPTIONS: readonly (readonly [keyof SystemTimerOptions, ...BadValue])[] = [
  ...[0, -1, 0.5, 1.5, NaN, Infinity, -0, 2 ** 53].map(
    (tickMs) => ['tickMs', tickMs, ...RANGE, String(tickMs)] as const,
  ),
  ['tickMs', '1', ...TYPE, "'1' (a string)"],
  ['tickMs', null, ...TYPE, 'null'],
  ...[1, 0, -2, 2.5, NaN, Infinity, 2 ** 20 + 1].map(
    (wheelSize) => ['wheelSize', wheelSize, ...RANGE, String(wheelSize)] as const,
  ),
  ['wheelSize', '64', ...TYPE, "'64' (a string)"],
  ['startMs', 101, ...RANGE, '101'],
  ['startMs', 100.001, ...RANGE, '100.001'],
  ['startMs', -1, ...RANGE, '-1'],
  ['startMs', NaN, ...RANGE, 'NaN'],
  ['startMs', -Infinity, ...RANGE, '-Infinity'],
  ['startMs', '0', ...TYPE, "'0' (a string)"],
  ['rounding', 'nearest', ...VALUE, "'nearest' (a string)"],
  ['rounding', null, ...VALUE, 'null'],
  ['autoStart', 1, ...TYPE, '1'],
  ['executor', {}, ...TYPE, '[object Object]'],
  ['maxTasksPerTurn', 0, ...RANGE, '0'],
  ['maxTasksPerTurn', 1.5, ...RANGE, '1.5'],
  ['maxTasksPerTurn', NaN, ...RANGE, 'NaN'],
  ['maxTasksPerTurn', '5', ...TYPE, "'5' (a string)"],
  ['onError', 'log', ...TYPE, "'log' (a string)"],
  ['name', 5, ...TYPE, '5'],
];

describe('a wrong option', () => {
  test.each(BAD_OPTIONS)('the option %s refuses %o, and the error shows name and value', (option, ...bad) => {
    const clock = new ManualClock({ nowMs: 100 });
    const error = thrownBy(() => new SystemTimer({ clock, [option]: bad[0] }));
    expectError(error, option, bad);
    expect(clock.pendingWakeups).toBe(0);
  });

  test.each([null, {}, 5, { now: () => 0, wallNow: () => 0 }])('the option clock refuses %o', (clock) => {
    const error = thrownBy(() => new SystemTimer({ clock: clock as never }));
    expectError(error, 'clock', [clock, ...TYPE, '']);
  });

  test.each([null, {}, 5, { counter: () => ({}) }])('the option metrics refuses %o', (metrics) => {
    const clock = new ManualClock();
    const error = thrownBy(() => new SystemTimer({ clock, metrics: metrics as never }));
    expectError(error, 'metrics', [metrics, ...TYPE, '']);
  });

  test.each([
    [null, 'null'],
    [100, '100'],
    ['tickMs', "'tickMs' (a string)"],
  ])('the constructor refuses %o as options', (options, shown) =>
    expectError(
      thrownBy(() => new SystemTimer(options as never)),
      'options',
      [options, ...TYPE, shown],
    ),
  );

  test('an undefined option has its default', () => {
    const clock = new ManualClock();
    const options = { tickMs: undefined, wheelSize: undefined, startMs: undefined, onError: undefined };
    const timer = new SystemTimer({ clock, ...options } as object);
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
});

describe('a wrong argument of close', () => {
  test.each(['complete', '', null, true])(
    'close refuses %o for pending, and the timer stays open',
    (pending) => {
      const { timer, clock, task } = busyTimer();
      const error = refusedBy(timer, clock, () => timer.close({ pending: pending as 'drop' }));
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toHaveProperty('code', 'ERR_INVALID_ARG_VALUE');
      expect(task.pending).toBe(true);
    },
  );

  test.each([
    [null, 'null'],
    ['drop', "'drop' (a string)"],
  ])('close refuses %o as options, and the timer stays open', (options, shown) => {
    const { timer, clock, task } = busyTimer();
    const error = refusedBy(timer, clock, () => timer.close(options as never));
    expectError(error, 'options', [options, ...TYPE, shown]);
    expect(task.pending).toBe(true);
  });
});

test('sleep rejects for options that are not an object, and nothing is pending', async () => {
  const { timer, clock } = busyTimer();
  const { size } = timer;
  const error: unknown = await timer.sleep(5, 0, null as never).catch((reason: unknown) => reason);
  expectError(error, 'options', [null, ...TYPE, 'null']);
  expect([timer.size, clock.pendingWakeups]).toEqual([size, 1]);
});

test('sleep rejects for a signal that is not an AbortSignal, and nothing is pending', async () => {
  const { timer } = busyTimer();
  const { size } = timer;
  const error: unknown = await timer
    .sleep(5, undefined, { signal: {} as AbortSignal })
    .catch((reason: unknown) => reason);
  expectError(error, 'options.signal', [{}, ...TYPE, '[object Object]']);
  expect(timer.size).toBe(size);
});
