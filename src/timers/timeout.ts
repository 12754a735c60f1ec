import type { TimerId } from '../timer/system-timer.ts';
import { AsyncResource, type AsyncContext } from '../core/async-context.ts';
import { systemClock } from '../core/clock.ts';
import { RUN } from './due-timeouts.ts';
import { invalidArgument } from './host-error.ts';
import { sharedTimer } from './shared-timer.ts';

/** What a timeout calls; `this` is the timeout. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- as the host declares it
export type TimeoutCallback = (...args: any[]) => void;

/** The shortest delay, as the host has it, in milliseconds. */
const MIN_DELAY_MS = 1;
/** The id of a timeout that does not wait. */
const NOT_WAITING = 0 as TimerId;

let latestNumber = 0;

/** Where the runtime has no contexts: only the number of a timeout. Below zero, where no timeout of a browser has its own. */
class NoContext implements AsyncContext {
  readonly #number = --latestNumber;

  runInAsyncScope<This, Args extends unknown[]>(
    callback: (this: This, ...args: Args) => void,
    self: This,
    ...args: Args
  ): void {
    callback.apply(self, args);
  }

  asyncId(): number {
    return this.#number;
  }
}

const TimeoutContext = AsyncResource ?? NoContext;

/** Those that were asked for their number and wait, by that, in decimal digits: the one form that the host takes. */
const byNumber = new Map<string, Timeout>();

/**
 * What `setTimeout` and `setInterval` return, with the interface of the host's object of this name.
 *
 * WHY an AsyncResource each: it carries the stores of `AsyncLocalStorage` from the call that set the timeout to its
 * callback for some 30 ns; `AsyncResource.bind` and `AsyncLocalStorage.snapshot` take 13 µs.
 */
export class Timeout {
  readonly #shared = sharedTimer();
  readonly #context: AsyncContext = new TimeoutContext('Timeout');
  readonly #delayMs: number;
  readonly #isInterval: boolean;
  readonly #args: unknown[] | undefined;
  /** Undefined once it was cleared: it never waits again. */
  #callback: TimeoutCallback | undefined;
  #id = NOT_WAITING;
  #hasRef: boolean;
  /** Whether it waits, is due, or runs. */
  #isActive = false;
  /** Whether it is one of those that keep the process alive. */
  #isCounted = false;
  #hasNumber = false;
  /** When an interval is due, in milliseconds on the system clock. */
  #dueMs = 0;

  /** @internal */
  constructor(
    callback: TimeoutCallback,
    delay: unknown,
    args: unknown[] | undefined,
    isInterval: boolean,
    hasRef: boolean,
  ) {
    if (typeof callback !== 'function') throw invalidArgument('callback', 'a function', callback);
    this.#callback = callback;
    this.#delayMs = delayOf(delay, isInterval);
    this.#args = args;
    this.#isInterval = isInterval;
    this.#hasRef = hasRef;
    this.#start();
  }

  /** It waits, and keeps the process alive until it has run. This is the default. */
  ref(): this {
    if (!(#callback in this)) return this;
    this.#hasRef = true;
    if (this.#isActive) this.#count();
    return this;
  }

  /** It waits, and does not keep the process alive. */
  unref(): this {
    if (!(#callback in this)) return this;
    this.#hasRef = false;
    this.#discount();
    return this;
  }

  /** Whether it keeps the process alive while it waits. */
  hasRef(): boolean {
    return #callback in this && this.#hasRef;
  }

  /** Starts its delay anew, also after it has run; not after it was cleared. No new object. */
  refresh(): this {
    if (!(#callback in this) || this.#callback === undefined) return this;
    if (this.#id !== NOT_WAITING) {
      this.#restart();
      return this;
    }
    this.#shared.withdraw(this);
    this.#start();
    return this;
  }

  /** `clearTimeout` as a method. */
  close(): this {
    if (#callback in this) Timeout.clear(this);
    return this;
  }

  /** `clearTimeout`, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** A number for the clear functions. */
  [Symbol.toPrimitive](): number {
    this.#hasNumber = true;
    const number = this.#context.asyncId();
    if (this.#isActive) byNumber.set(String(number), this);
    return number;
  }

  /**
   * The callback, where the host has it; null once it was cleared.
   *
   * @deprecated For the host's clear functions, and for type compatibility.
   */
  get _onTimeout(): TimeoutCallback {
    return (this.#callback ?? null) as TimeoutCallback;
  }

  /** Replaces the callback. The host's clear functions set it to null, and that clears the timeout. */
  set _onTimeout(callback: TimeoutCallback | null | undefined) {
    if (typeof callback !== 'function') this.close();
    else if (this.#callback !== undefined) this.#callback = callback;
  }

  /**
   * Whether it neither waits nor runs. The host's clear functions leave one alone that says so.
   *
   * @deprecated For them.
   */
  get _destroyed(): boolean {
    return !this.#isActive;
  }

  #start(): void {
    this.#isActive = true;
    if (this.#hasRef) this.#count();
    else this.#shared.addUnref();
    if (this.#hasNumber) byNumber.set(String(this.#context.asyncId()), this);
    if (this.#isInterval) this.#dueMs = systemClock.now() + this.#delayMs;
    this.#id = this.#shared.timer.schedule(this.#delayMs, expire, this);
  }

  #restart(): void {
    if (this.#isInterval) this.#dueMs = systemClock.now() + this.#delayMs;
    this.#shared.timer.reschedule(this.#id, this.#delayMs);
  }

  /** @internal */
  static clear(timeout: Timeout): void {
    timeout.#callback = undefined;
    if (timeout.#id !== NOT_WAITING) timeout.#shared.timer.cancel(timeout.#id);
    else if (timeout.#isActive) timeout.#shared.withdraw(timeout);
    timeout.#stop();
  }

  /** @internal The delay is over. */
  static expire(timeout: Timeout): void {
    timeout.#id = NOT_WAITING;
    timeout.#shared.expire(timeout);
  }

  /** @internal Unless its callback clears it or starts it anew, it ends, and an interval goes on, whatever that does. */
  [RUN](): void {
    try {
      this.#run();
    } finally {
      if (this.#isActive && this.#id === NOT_WAITING) this.#goOn();
    }
  }

  #goOn(): void {
    if (this.#isInterval) this.#repeat();
    else this.#stop();
  }

  #run(): void {
    const callback = this.#callback as TimeoutCallback;
    if (this.#args === undefined) this.#context.runInAsyncScope(callback, this);
    else this.#context.runInAsyncScope(callback, this, ...this.#args);
  }

  /** Due a whole number of periods after the first: no drift. What was missed meanwhile is left out: no burst. */
  #repeat(): void {
    const nowMs = systemClock.now();
    const periods = Math.max(1, Math.floor((nowMs - this.#dueMs) / this.#delayMs) + 1);
    this.#dueMs += periods * this.#delayMs;
    if (!this.#isCounted) this.#shared.addUnref();
    this.#id = this.#shared.timer.schedule(this.#dueMs - nowMs, expire, this);
  }

  #stop(): void {
    this.#isActive = false;
    this.#id = NOT_WAITING;
    this.#discount();
    if (this.#hasNumber) byNumber.delete(String(this.#context.asyncId()));
  }

  #count(): void {
    if (this.#isCounted) return;
    this.#isCounted = true;
    this.#shared.acquireRef();
  }

  #discount(): void {
    if (!this.#isCounted) return;
    this.#isCounted = false;
    this.#shared.releaseRef();
  }
}

/** One callback for all timeouts: that is what makes them cheap for the timer. */
const expire = (timeout: Timeout): void => {
  Timeout.expire(timeout);
};

/** The timeout that waits under a number, which may be written as a string. */
export function timeoutOf(number: number | string): Timeout | undefined {
  return byNumber.get(String(number));
}

/**
 * As the host: what is no number, or below 1, is 1, and a timeout waits for whole milliseconds, so that those of 1 and of
 * 1.8 run in the order in which they were set. Unlike the host, however long it is, and an interval keeps its fraction.
 */
function delayOf(delay: unknown, isInterval: boolean): number {
  const delayMs = (delay as number) * 1; // unlike Number(delay), refuses a bigint
  if (!(delayMs >= MIN_DELAY_MS)) return MIN_DELAY_MS;
  return Math.min(isInterval ? delayMs : Math.trunc(delayMs), Number.MAX_VALUE);
}
