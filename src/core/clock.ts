import { EscapementError } from './errors.ts';
import { hostFunction, hostNow, hostWallNow, hostWoke, isHost, original } from './host.ts';
import { requireFunction, requireMethods } from './validate.ts';

/**
 * Time as everything in this package sees it: one monotonic reading, one wall reading, and one-shot wake-ups.
 * Give a `Clock` to a timer and it does not read the clock of the host.
 */
export interface Clock {
  /** Monotonic milliseconds since an arbitrary origin, never negative, may be fractional. */
  now(): number;
  /** Milliseconds since the Unix epoch. It can jump; nothing is ever scheduled by it. */
  wallNow(): number;
  /**
   * Calls `callback` once, never synchronously, after about `delayMs` milliseconds. It may come late, or a
   * little early: a caller that waits for a deadline reads `now()` again and re-arms.
   */
  setTimeout(callback: () => void, delayMs: number): ClockTimeout;
}

/** A wake-up that was armed with {@link Clock.setTimeout}. */
export interface ClockTimeout {
  /** The callback will not be called. Does nothing after it was called. */
  cancel(): void;
  /** An armed wake-up keeps the process alive. This is the default. */
  ref(): void;
  /** An armed wake-up does not keep the process alive. */
  unref(): void;
}

const METHODS: readonly (keyof Clock)[] = ['now', 'wallNow', 'setTimeout'];

export function requireClock(argument: string, value: unknown): void {
  requireMethods(argument, 'a Clock with now, wallNow and setTimeout', METHODS, value);
}

/** The last time a clock can show: past it a number cannot hold every millisecond. 285 000 years. */
const LAST_TIME_MS = Number.MAX_SAFE_INTEGER;

/**
 * Reads a clock, and refuses what is not a time: every comparison with `NaN` is false, so that a loop which waits for a deadline
 * would not end, and everything would be due at `Infinity`.
 *
 * @throws EscapementError `ERR_CLOCK_INVALID` - the clock is wrong now. It may be right again later.
 */
export function readClock(clock: Clock): number {
  const nowMs = clock.now();
  if (nowMs >= 0 && nowMs <= LAST_TIME_MS && typeof nowMs === 'number') return nowMs;
  throw invalidTime(nowMs);
}

function invalidTime(value: unknown): EscapementError {
  const message = `clock.now() must return a time in milliseconds. Received ${String(value)}`;
  return new EscapementError('ERR_CLOCK_INVALID', message, { op: 'Clock.now' });
}

/** The host's longest timeout, in milliseconds (24.8 days). A longer one would fire at once, with a warning. */
export const MAX_HOST_TIMEOUT_MS = 2 ** 31 - 1;

/** What a host's `setTimeout` returns: an object in Node, where `ref` exists; a number in a browser. */
type HostHandle = Parameters<typeof globalThis.clearTimeout>[0] &
  Partial<Pick<ClockTimeout, 'ref' | 'unref'>>;

/** Timeouts that are not armed yet, in no order. */
const unarmed: HostTimeout[] = [];
/** Whether a microtask will arm them when the turn ends. */
let isAwaited = false;

/**
 * A timeout of the host. The host's own `setTimeout` is called when the turn ends, if the timeout has not been cancelled by then;
 * a fake one at once, so that a test can advance its time.
 *
 * WHY. No timeout can fire before the turn ends, so until then it need not be armed. A timer that is filled and
 * emptied again and again in one turn moves its wake-up each time: that is a few nanoseconds here, and 280 if the host
 * arms and clears a timeout of its own. It is not late for it: the host counts from the beginning of the turn.
 */
export class HostTimeout implements ClockTimeout {
  readonly #callback: () => void;
  readonly #hostDelayMs: number;
  readonly #setTimeout: typeof globalThis.setTimeout;
  #handle: HostHandle | undefined;
  /** Its index in `unarmed`, as long as it is there. */
  #index = 0;
  #hasRef = true;

  /** @param hostDelayMs - whole milliseconds, no more than the host can count. */
  constructor(callback: () => void, hostDelayMs: number, setTimeout: typeof globalThis.setTimeout) {
    this.#callback = callback;
    this.#hostDelayMs = hostDelayMs;
    this.#setTimeout = setTimeout;
    if (!isHost(setTimeout)) {
      this.arm();
      return;
    }
    this.#index = unarmed.push(this) - 1;
    if (isAwaited) return;
    isAwaited = true;
    const { queueMicrotask } = original;
    queueMicrotask(armAll);
  }

  cancel(): void {
    const { clearTimeout } = original;
    if (this.#handle === undefined) this.#leave();
    else if (isHost(this.#setTimeout)) clearTimeout(this.#handle);
    else hostFunction('clearTimeout')(this.#handle);
  }

  ref(): void {
    this.#hasRef = true;
    this.#handle?.ref?.();
  }

  unref(): void {
    this.#hasRef = false;
    this.#handle?.unref?.();
  }

  arm(): void {
    const setTimeout = this.#setTimeout; // called without an object, as browsers require
    this.#handle = setTimeout(this.#callback, this.#hostDelayMs);
    if (!this.#hasRef) this.unref();
  }

  /** The last unarmed timeout takes its index. */
  #leave(): void {
    if (unarmed[this.#index] !== this) return;
    const last = unarmed.pop() as HostTimeout;
    if (last === this) return;
    last.#index = this.#index;
    unarmed[this.#index] = last;
  }
}

function armAll(): void {
  isAwaited = false;
  for (const timeout of unarmed.splice(0)) timeout.arm();
}

/**
 * The host's clock: `performance.now()`, `Date.now()` and `setTimeout`.
 *
 * Each call looks its global up anew, so a test runner's fake timers work whenever they are installed; also those
 * that fake `setTimeout` and leave `performance` as it is (node:test).
 * A wake-up beyond the host's limit of 2^31 - 1 ms comes early, at that limit; the callers here re-arm.
 */
export const systemClock: Clock = {
  now: hostNow,
  wallNow: hostWallNow,
  setTimeout(callback, delayMs) {
    requireFunction('callback', callback); // the host would throw later, or take text for code
    // The host truncates to whole milliseconds: rounding up saves the second wake-up after an early one.
    const hostDelayMs = Math.min(Math.ceil(delayMs), MAX_HOST_TIMEOUT_MS);
    const setTimeout = hostFunction('setTimeout');
    let wake = callback;
    if (!isHost(setTimeout)) {
      const setAtMs = hostNow();
      wake = () => {
        hostWoke(setTimeout, setAtMs, hostDelayMs);
        callback();
      };
    }
    return new HostTimeout(wake, hostDelayMs, setTimeout);
  },
};
