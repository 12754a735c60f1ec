import { hostFunction, hostNow, hostWoke, isHost } from './host.ts';
import { LazyTimeout } from './lazy-timeout.ts';

/**
 * Time as everything in this package sees it: one monotonic reading, one wall reading, and one-shot wake-ups.
 * Give a `Clock` to a timer and it never looks at the host again.
 */
export interface Clock {
  /** Monotonic milliseconds since an arbitrary origin, never negative, may be fractional. */
  now(): number;
  /** Milliseconds since the Unix epoch. It can jump; nothing is ever scheduled by it. */
  wallNow(): number;
  /**
   * Calls `callback` once, never synchronously, after about `delayMs` milliseconds. It may come late, or a
   * little early: whoever waits for a moment reads `now()` again and re-arms.
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

/** The host's longest timeout, in milliseconds (24.8 days). A longer one would fire at once, with a warning. */
export const MAX_HOST_TIMEOUT_MS = 2 ** 31 - 1;

/** What a host's `setTimeout` returns: an object in Node, where `ref` exists; a number in a browser. */
type HostHandle = Parameters<typeof globalThis.clearTimeout>[0] &
  Partial<Pick<ClockTimeout, 'ref' | 'unref'>>;

/** A timeout that a fake `setTimeout` has made, which must know of it at once. */
class HostTimeout implements ClockTimeout {
  readonly #handle: HostHandle;

  constructor(handle: HostHandle) {
    this.#handle = handle;
  }

  cancel(): void {
    hostFunction('clearTimeout')(this.#handle);
  }

  ref(): void {
    this.#handle.ref?.();
  }

  unref(): void {
    this.#handle.unref?.();
  }
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
  wallNow: () => Date.now(),
  setTimeout(callback, delayMs) {
    // The host truncates to whole milliseconds: rounding up saves the second wake-up after an early one.
    const hostDelayMs = Math.min(Math.ceil(delayMs), MAX_HOST_TIMEOUT_MS);
    const setTimeout = hostFunction('setTimeout');
    if (isHost(setTimeout)) return new LazyTimeout(callback, hostDelayMs);
    const setAtMs = hostNow();
    const wake = (): void => {
      hostWoke(setTimeout, setAtMs, hostDelayMs);
      callback();
    };
    return new HostTimeout(setTimeout(wake, hostDelayMs));
  },
};
