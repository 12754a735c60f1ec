import { type SystemTimer, timeoutSignal, withTimeout } from 'escapement';
import { expect, test } from 'vitest';
import { manualTimer } from './support/timers.ts';

const TIMEOUT = expect.objectContaining({
  name: 'TimeoutError',
  message: 'The operation was aborted due to timeout',
}) as Error;

test('a signal aborts at its deadline with the error of AbortSignal.timeout', () => {
  const { clock, timer } = manualTimer();
  const signal = timeoutSignal(1_000, timer);
  clock.advance(999);
  expect(signal.aborted).toBe(false);
  clock.advance(1);
  expect(signal.aborted).toBe(true);
  expect(signal.reason).toBeInstanceOf(DOMException);
  expect(signal.reason).toEqual(TIMEOUT);
});

test('a thousand signals arm one wake-up of the clock', () => {
  const { clock, timer } = manualTimer();
  const signals = Array.from({ length: 1_000 }, (_, i) => timeoutSignal(1_000 + i, timer));
  expect(clock.pendingWakeups).toBe(1);
  clock.advance(1_499);
  expect(signals.filter(({ aborted }) => aborted)).toHaveLength(500);
});

test('a signal that is disposed of leaves nothing in the timer and never aborts', () => {
  const { clock, timer } = manualTimer();
  let left: AbortSignal;
  {
    using signal = timeoutSignal(1_000, timer);
    left = signal;
  }
  expect(timer.size).toBe(0);
  expect(clock.pendingWakeups).toBe(0);
  clock.advance(2_000);
  expect(left.aborted).toBe(false);
});

test('the signal is the one that host functions accept', async () => {
  const { clock, timer } = manualTimer();
  const signal = timeoutSignal(5, timer);
  const both = AbortSignal.any([signal, new AbortController().signal]);
  const sleeping = timer.sleep(60_000, undefined, { signal });
  clock.advance(5);
  await expect(sleeping).rejects.toBe(signal.reason);
  expect(both.reason).toBe(signal.reason);
});

test('a timer that is missing is an error', async () => {
  const wrong = expect.objectContaining({
    code: 'ERR_INVALID_ARG_TYPE',
    message: 'timer must be a SystemTimer. Received undefined',
  }) as Error;
  const without = undefined as unknown as SystemTimer;
  expect(() => timeoutSignal(5, without)).toThrow(wrong);
  await expect(withTimeout(Promise.resolve(), 20, without)).rejects.toEqual(wrong);
});

test('a function in place of a promise is an error: it would never be called', async () => {
  const { timer } = manualTimer();
  const load = (() => Promise.resolve()) as unknown as Promise<void>;
  await expect(withTimeout(load, 20, timer)).rejects.toMatchObject({
    code: 'ERR_INVALID_ARG_TYPE',
    message: 'promise must be a promise. Received [function load]',
  });
  expect(timer.size).toBe(0);
});

test('a delay that is not finite and a closed timer are errors', () => {
  const { timer } = manualTimer();
  expect(() => timeoutSignal(NaN, timer)).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }));
  timer.close();
  expect(() => timeoutSignal(1, timer)).toThrow(expect.objectContaining({ code: 'ERR_TIMER_CLOSED' }));
});

test('a promise that resolves in time gives its value, and its deadline is cancelled', async () => {
  const { clock, timer } = manualTimer();
  await expect(withTimeout(Promise.resolve('value'), 1_000, timer)).resolves.toBe('value');
  expect(timer.size).toBe(0);
  expect(clock.pendingWakeups).toBe(0);
});

test('a promise that rejects in time gives its error, and its deadline is cancelled', async () => {
  const { timer } = manualTimer();
  const error = new Error('mine');
  await expect(withTimeout(Promise.reject(error), 1_000, timer)).rejects.toBe(error);
  expect(timer.size).toBe(0);
});

test('a promise that takes longer is given up with a TimeoutError, and its own rejection is not unhandled', async () => {
  const { clock, timer } = manualTimer();
  const { promise, reject } = withResolvers<never>();
  const late = withTimeout(promise, 1_000, timer);
  clock.advance(1_000);
  await expect(late).rejects.toEqual(TIMEOUT);
  reject(new Error('too late'));
  await clock.advanceAsync(1);
});

test('a closed timer rejects, and a later rejection of the promise is not unhandled', async () => {
  const { timer } = manualTimer();
  timer.close();
  const { promise, reject } = withResolvers<never>();
  const closed = withTimeout(promise, 1_000, timer);
  await expect(closed).rejects.toEqual(expect.objectContaining({ code: 'ERR_TIMER_CLOSED' }));
  reject(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
});

test('a delay of 0 gives up in a turn of its own', async () => {
  const { clock, timer } = manualTimer();
  const late = withTimeout(new Promise(() => undefined), 0, timer);
  expect(timer.size).toBe(1);
  clock.advance(0);
  await expect(late).rejects.toEqual(TIMEOUT);
});

/** `Promise.withResolvers` of Node 22. */
function withResolvers<T>(): { promise: Promise<T>; reject: (error: Error) => void } {
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<T>((_, fail) => {
    reject = fail;
  });
  return { promise, reject };
}
