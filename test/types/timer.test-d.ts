import { expectTypeOf, test } from 'vitest';
import {
  EscapementError,
  ManualClock,
  SystemTimer,
  systemClock,
  TimerTask,
  type Clock,
  type ClockTimeout,
  type EscapementErrorCode,
  type MetricsProvider,
  type Timer,
  type TimerId,
  type TimerSnapshot,
} from 'escapement';
import { checkTimer } from 'escapement/testing';

test('the clocks of the package are a Clock', () => {
  expectTypeOf(systemClock).toEqualTypeOf<Clock>();
  expectTypeOf<ManualClock>().toExtend<Clock>();
  expectTypeOf<ManualClock['advanceAsync']>().toEqualTypeOf<(ms: number) => Promise<void>>();
  expectTypeOf<ReturnType<Clock['setTimeout']>>().toEqualTypeOf<ClockTimeout>();
});

test('a SystemTimer is a Timer, and its methods have their documented types', () => {
  const timer = new SystemTimer({ clock: new ManualClock() });
  expectTypeOf(timer).toExtend<Timer>();
  expectTypeOf(timer).toExtend<Disposable>();
  expectTypeOf(timer.inspect()).toEqualTypeOf<TimerSnapshot>();
  expectTypeOf(timer.close()).toEqualTypeOf<TimerTask[]>();
  expectTypeOf(timer.nextExpirationMs()).toEqualTypeOf<number | undefined>();
  expectTypeOf(timer.poll()).toEqualTypeOf<number>();
  expectTypeOf(checkTimer).toBeCallableWith(timer);
});

test('schedule ties the argument to the callback', () => {
  const timer = new SystemTimer({ clock: new ManualClock() });
  const id = timer.schedule(5, (request: { url: string }) => request.url, { url: '/' });
  expectTypeOf(id).toEqualTypeOf<TimerId>();
  expectTypeOf(id).toExtend<number>();
  // @ts-expect-error -- the argument is no request
  timer.schedule(5, (request: { url: string }) => request.url, 5);
  // @ts-expect-error -- any number is not an id
  timer.cancel(5);
});

test('schedule needs no argument for a callback that takes none', async () => {
  const timer = new SystemTimer({ clock: new ManualClock() });
  expectTypeOf(timer.schedule(5, () => undefined)).toEqualTypeOf<TimerId>();
  timer.schedule(5, (name?: string) => name);
  // @ts-expect-error -- the callback needs an argument
  timer.schedule(5, (name: string) => name);
  await new Promise<void>((resolve) => timer.schedule(5, resolve));
});

test('sleep resolves with its value, or with nothing', () => {
  const timer = new SystemTimer({ clock: new ManualClock() });
  expectTypeOf(timer.sleep(5)).toEqualTypeOf<Promise<void>>();
  expectTypeOf(timer.sleep(5, 'v', { signal: AbortSignal.abort() })).toEqualTypeOf<Promise<string>>();
});

test('a TimerTask needs a run method', () => {
  class Complete extends TimerTask {
    override run(): void {
      expectTypeOf(this.delayMs).toEqualTypeOf<number>();
    }
  }
  expectTypeOf(new Complete(5).pending).toEqualTypeOf<boolean>();
  // @ts-expect-error -- abstract
  new TimerTask(5);
  // @ts-expect-error -- the names that a timer uses itself are taken
  class Clash extends Complete {
    override _entry = 5;
  }
  expectTypeOf<Clash>().toExtend<object>();
});

test('an error has a known code, and a gauge of a provider can be removed', () => {
  expectTypeOf(new EscapementError('ERR_TIMER_CLOSED', 'm').code).toEqualTypeOf<EscapementErrorCode>();
  expectTypeOf(new EscapementError('ERR_TIMER_CLOSED', 'm').op).toEqualTypeOf<string | undefined>();
  expectTypeOf<ReturnType<MetricsProvider['observableGauge']>>().toEqualTypeOf<{ remove(): void }>();
});
