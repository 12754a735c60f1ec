import { MAX_HOST_TIMEOUT_MS, readClock, type Clock, type ClockTimeout } from './clock.ts';
import { reportUncaught } from './report-uncaught.ts';

/** The deadline of a wake-up that is not armed. */
const NEVER_MS = Infinity;

/** When a clock that was wrong is read again, in milliseconds. */
const RETRY_MS = 1_000;

/**
 * One clock timeout that is moved from deadline to deadline.
 *
 * The clock may wake us early (rounding, a deadline beyond the host's limit): then it is re-armed, and the owner is not called.
 * It may wake us late: then the callback receives the time and catches up.
 * It may return an invalid time: then the error is reported once, and the clock is read again every second until it is valid.
 * The callback runs then, whatever the deadline was.
 */
export class Wakeup {
  readonly #clock: Clock;
  readonly #onWake: (nowMs: number) => void;
  #timeout: ClockTimeout | undefined;
  #deadlineMs = NEVER_MS;
  #hasRef = true;
  #isRetrying = false;
  readonly #onClockError: (error: unknown) => void;

  constructor(
    clock: Clock,
    onWake: (nowMs: number) => void,
    onClockError: (error: unknown) => void = reportUncaught,
  ) {
    this.#clock = clock;
    this.#onWake = onWake;
    this.#onClockError = onClockError;
  }

  /** When the wake-up is due; `Infinity` if none is armed. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Whether the clock was wrong, and is to be read again: until then no deadline is armed. */
  get isRetrying(): boolean {
    return this.#isRetrying;
  }

  get hasRef(): boolean {
    return this.#hasRef;
  }

  /** Arms, moves or (with `Infinity`) disarms. `nowMs` is the caller's own reading of the clock, if it has one. */
  moveTo(deadlineMs: number, nowMs?: number): void {
    if (deadlineMs === this.#deadlineMs && !this.#isRetrying) return;
    const wasRetrying = this.#isRetrying;
    this.#disarm();
    if (deadlineMs === NEVER_MS) return;
    const armedMs = nowMs ?? this.#read(wasRetrying);
    if (armedMs !== undefined) this.#arm(deadlineMs, armedMs);
  }

  setRef(hasRef: boolean): void {
    this.#hasRef = hasRef;
    if (hasRef) this.#timeout?.ref();
    else this.#timeout?.unref();
  }

  /** The deadline is noted last: if the clock throws, no wake-up is armed and `deadlineMs` is Infinity. */
  #arm(deadlineMs: number, nowMs: number): void {
    const delayMs = Math.min(Math.max(deadlineMs - nowMs, 0), MAX_HOST_TIMEOUT_MS);
    this.#timeout = this.#clock.setTimeout(this.#fire, delayMs);
    this.#deadlineMs = deadlineMs;
    if (!this.#hasRef) this.#timeout.unref();
  }

  #disarm(): void {
    const timeout = this.#timeout;
    this.#timeout = undefined;
    this.#deadlineMs = NEVER_MS;
    this.#isRetrying = false;
    timeout?.cancel();
  }

  readonly #fire = (): void => {
    // A clock that calls back after cancel() must neither wake an owner that has disarmed this wake-up nor leave two timeouts armed.
    if (this.#timeout === undefined) return;
    const wasRetrying = this.#isRetrying;
    const deadlineMs = wasRetrying ? 0 : this.#deadlineMs;
    this.#disarm();
    const nowMs = this.#read(wasRetrying);
    if (nowMs === undefined) return;
    if (nowMs < deadlineMs) this.#arm(deadlineMs, nowMs);
    else this.#onWake(nowMs);
  };

  /** @returns undefined if the clock is wrong: a timeout is armed to read it again. */
  #read(isReported: boolean): number | undefined {
    try {
      return readClock(this.#clock);
    } catch (error) {
      this.#timeout = this.#clock.setTimeout(this.#fire, RETRY_MS);
      this.#isRetrying = true;
      if (!this.#hasRef) this.#timeout.unref();
      if (!isReported) this.#onClockError(error);
      return undefined;
    }
  }
}
