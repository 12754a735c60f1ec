import { MAX_HOST_TIMEOUT_MS, type Clock, type ClockTimeout } from './clock.ts';

/** The deadline of a wake-up that is not armed. */
const NEVER_MS = Infinity;

/**
 * One clock timeout that is moved from deadline to deadline: the only thing here that ever waits on a clock.
 *
 * The clock may wake us early (rounding, a deadline beyond the host's limit): then we re-arm and say nothing.
 * It may wake us late: then the callback learns the time and catches up.
 */
export class Wakeup {
  readonly #clock: Clock;
  readonly #onWake: (nowMs: number) => void;
  readonly #fire = (): void => {
    this.#fired();
  };
  #timeout: ClockTimeout | undefined;
  #deadlineMs = NEVER_MS;
  #hasRef = true;

  constructor(clock: Clock, onWake: (nowMs: number) => void) {
    this.#clock = clock;
    this.#onWake = onWake;
  }

  /** When the wake-up is due; `Infinity` if none is armed. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  get hasRef(): boolean {
    return this.#hasRef;
  }

  /** Arms, moves or (with `Infinity`) disarms. `nowMs` is the caller's own reading of the clock, if it has one. */
  moveTo(deadlineMs: number, nowMs?: number): void {
    if (deadlineMs === this.#deadlineMs) return;
    this.#cancelTimeout();
    this.#deadlineMs = NEVER_MS;
    if (deadlineMs !== NEVER_MS) this.#arm(deadlineMs, nowMs ?? this.#clock.now());
  }

  setRef(hasRef: boolean): void {
    this.#hasRef = hasRef;
    if (hasRef) this.#timeout?.ref();
    else this.#timeout?.unref();
  }

  /** The deadline is noted last: if the clock throws, nothing is armed and nothing says so. */
  #arm(deadlineMs: number, nowMs: number): void {
    const delayMs = Math.min(Math.max(deadlineMs - nowMs, 0), MAX_HOST_TIMEOUT_MS);
    this.#timeout = this.#clock.setTimeout(this.#fire, delayMs);
    this.#deadlineMs = deadlineMs;
    if (!this.#hasRef) this.#timeout.unref();
  }

  #cancelTimeout(): void {
    const timeout = this.#timeout;
    this.#timeout = undefined;
    timeout?.cancel();
  }

  #fired(): void {
    // A clock that calls back after cancel() must neither wake whoever disarmed us nor leave two timeouts armed.
    if (this.#timeout === undefined) return;
    this.#cancelTimeout();
    const deadlineMs = this.#deadlineMs;
    this.#deadlineMs = NEVER_MS;
    const nowMs = this.#clock.now();
    if (nowMs < deadlineMs) this.#arm(deadlineMs, nowMs);
    else this.#onWake(nowMs);
  }
}
