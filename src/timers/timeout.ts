import { AsyncResource, type AsyncContext } from '../core/async-context.ts';
import { wrongType } from '../core/errors.ts';
import type { TimerId } from '../timer/system-timer.ts';
import { RUN, sharedTimer, type Due } from './shared-timer.ts';

/** The callback of a timeout; `this` is the timeout. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- as the host declares it
export type TimeoutCallback = (...args: any[]) => void;

/** The shortest delay, as the host has it, in milliseconds. */
const MIN_DELAY_MS = 1;
/** The id of a timeout that is not pending. */
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

/** Pending timeouts that were converted to a number, by that number in decimal digits: the only form that the host accepts. */
const byNumber = new Map<string, Timeout>();

/**
 * The result of `setTimeout` and `setInterval`, with the interface of the host's object of this name.
 *
 * WHY an AsyncResource each: it carries the stores of `AsyncLocalStorage` from the call that set the timeout to its
 * callback for some 30 ns; `AsyncResource.bind` and `AsyncLocalStorage.snapshot` take 13 µs.
 */
export class Timeout {
  readonly #shared = sharedTimer();
  #context: AsyncContext = new TimeoutContext('Timeout');
  readonly #delayMs: number;
  readonly #isInterval: boolean;
  readonly #args: unknown[] | undefined;
  /** Undefined once the timeout was cleared: it is never pending again. */
  #callback: TimeoutCallback | undefined;
  #id = NOT_WAITING;
  #hasRef: boolean;
  /** Its latest place among the timeouts that are due. */
  #due: Due | undefined;
  /** Whether it is pending, is due, or runs. Then it is counted as keeping the process alive, unless it has no ref. */
  #isActive = false;
  #hasNumber = false;
  /** When an interval is due, in milliseconds on the clock of the timer. */
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

  /** Lets the timeout keep the process alive until it has run. This is the default. */
  ref(): this {
    if (!(#callback in this)) return this;
    if (this.#isActive && !this.#hasRef) this.#shared.acquireRef();
    this.#hasRef = true;
    return this;
  }

  /** Lets the process end although the timeout is pending. */
  unref(): this {
    if (!(#callback in this)) return this;
    if (this.#isActive && this.#hasRef) this.#shared.releaseRef();
    this.#hasRef = false;
    return this;
  }

  /** Whether it keeps the process alive while it is pending. */
  hasRef(): boolean {
    return #callback in this && this.#hasRef;
  }

  /** Starts the delay anew, also after the timeout has run, then in the async context of this call; not after it was cleared. */
  refresh(): this {
    if (!(#callback in this) || this.#callback === undefined) return this;
    if (this.#id !== NOT_WAITING) {
      this.#restart();
      return this;
    }
    this.#withdraw();
    if (!this.#isActive) this.#context = new TimeoutContext('Timeout');
    this.#start();
    return this;
  }

  /** Clears the timeout, as `clearTimeout`. */
  close(): this {
    if (#callback in this) Timeout.clear(this);
    return this;
  }

  /** Clears the timeout, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Returns a number for the clear functions. */
  [Symbol.toPrimitive](): number {
    this.#hasNumber = true;
    const number = this.#context.asyncId();
    if (this.#isActive) byNumber.set(String(number), this);
    return number;
  }

  /**
   * The callback, under the host's name; null once the timeout was cleared.
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
   * Whether it is neither pending nor running. The host's clear functions ignore such a timeout.
   *
   * @deprecated For the host's clear functions.
   */
  get _destroyed(): boolean {
    return !this.#isActive;
  }

  #start(): void {
    if (!this.#hasRef) this.#shared.addUnref();
    else if (!this.#isActive) this.#shared.acquireRef();
    this.#isActive = true;
    if (this.#hasNumber) byNumber.set(String(this.#context.asyncId()), this);
    if (this.#isInterval) this.#dueMs = this.#shared.now() + this.#delayMs;
    this.#id = this.#shared.timer.schedule(this.#delayMs, expire, this);
  }

  #restart(): void {
    if (this.#isInterval) this.#dueMs = this.#shared.now() + this.#delayMs;
    this.#shared.timer.reschedule(this.#id, this.#delayMs);
  }

  /** @internal */
  static clear(timeout: Timeout): void {
    timeout.#callback = undefined;
    if (timeout.#id !== NOT_WAITING) timeout.#shared.timer.cancel(timeout.#id);
    else timeout.#withdraw();
    timeout.#stop();
  }

  /** @internal Called when the delay is over. */
  static expire(timeout: Timeout): void {
    timeout.#id = NOT_WAITING;
    timeout.#due = timeout.#shared.expire(timeout);
  }

  /** @internal Runs the callback. Then a timeout ends and an interval continues, even after an error; not if the callback cleared or restarted it. */
  [RUN](): void {
    try {
      this.#run();
    } finally {
      if (this.#isActive && this.#id === NOT_WAITING) this.#continue();
    }
  }

  #continue(): void {
    if (this.#isInterval) this.#repeat();
    else this.#stop();
  }

  #run(): void {
    const callback = this.#callback as TimeoutCallback;
    if (this.#args === undefined) this.#context.runInAsyncScope(callback, this);
    else this.#context.runInAsyncScope(callback, this, ...this.#args);
  }

  /** Schedules an interval a whole number of periods after its first due time: no drift. Missed calls are left out: no burst. */
  #repeat(): void {
    const nowMs = this.#shared.now();
    const periods = Math.max(1, Math.floor((nowMs - this.#dueMs) / this.#delayMs) + 1);
    this.#dueMs += periods * this.#delayMs;
    if (!this.#hasRef) this.#shared.addUnref();
    this.#id = this.#shared.timer.schedule(this.#dueMs - nowMs, expire, this);
  }

  #stop(): void {
    if (this.#isActive && this.#hasRef) this.#shared.releaseRef();
    this.#isActive = false;
    this.#id = NOT_WAITING;
    if (this.#hasNumber) byNumber.delete(String(this.#context.asyncId()));
  }

  /** If it is due, its turn will have nothing to do. */
  #withdraw(): void {
    if (this.#due !== undefined) this.#due.timeout = undefined;
  }
}

/** One callback for all timeouts: the timer stores it once. */
const expire = (timeout: Timeout): void => {
  Timeout.expire(timeout);
};

/** Returns the pending timeout with a number, which may be a string. */
export function timeoutOf(number: number | string): Timeout | undefined {
  return byNumber.get(String(number));
}

/**
 * As the host: a delay that is not a number, or below 1, is 1, and the delay of a timeout is truncated to whole milliseconds, so
 * that those of 1 and of 1.8 run in the order in which they were set. Unlike the host, any length is accepted, and an interval
 * keeps its fraction.
 */
function delayOf(delay: unknown, isInterval: boolean): number {
  const delayMs = (delay as number) * 1; // unlike Number(delay), refuses a bigint
  if (!(delayMs >= MIN_DELAY_MS)) return MIN_DELAY_MS;
  return Math.min(isInterval ? delayMs : Math.trunc(delayMs), Number.MAX_VALUE);
}

/** Returns the host's error for an argument of the wrong type. */
export function invalidArgument(argument: string, requirement: string, value: unknown): TypeError {
  return showCode(wrongType(argument, requirement, value));
}

/** Returns the host's error for `new` where only the host makes instances. */
export function illegalTimerConstructor(): TypeError {
  return showCode(Object.assign(new TypeError('Illegal constructor'), { code: 'ERR_ILLEGAL_CONSTRUCTOR' }));
}

/** Programs match the code in `String(error)`, where the host's errors have it. */
function showCode<E extends TypeError & { readonly code: string }>(error: E): E {
  return Object.defineProperty(error, 'toString', {
    configurable: true,
    writable: true,
    value: () => `${error.name} [${error.code}]: ${error.message}`,
  });
}
