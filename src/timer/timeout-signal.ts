import { requireMethods } from '../core/validate.ts';
import type { SystemTimer } from './system-timer.ts';

/*
 * Deadlines in the forms that promises and `fetch` take, on a timer of yours. The host's `AbortSignal.timeout` arms a timeout of the
 * host for each signal, and keeps it armed when the work is done long before.
 */

/** What arms and cancels a deadline: a {@link SystemTimer}. */
export type DeadlineTimer = Pick<SystemTimer, 'schedule' | 'cancel'>;

/** A signal whose deadline can be cancelled: `using signal = timeoutSignal(…)` does it at the end of the block. */
export interface TimeoutSignal extends AbortSignal {
  /** Cancels the deadline. The signal never aborts then. Idempotent. */
  [Symbol.dispose](): void;
}

/**
 * Returns a signal that aborts after `delayMs` milliseconds with a `TimeoutError`, as `AbortSignal.timeout` does.
 *
 * It costs a signal and an entry in the timer. Until its deadline the timer refers to it: dispose of it when the work is done. A timer
 * that is closed drops the deadline.
 *
 * @throws TypeError `ERR_INVALID_ARG_TYPE` - `timer` is not a timer. Otherwise what `timer.schedule` throws.
 *
 * @example
 * ```ts
 * using signal = timeoutSignal(5_000, timer);
 * const response = await fetch(url, { signal });
 * ```
 */
export function timeoutSignal(delayMs: number, timer: DeadlineTimer): TimeoutSignal {
  requireTimer(timer);
  const controller = new AbortController();
  const id = timer.schedule(delayMs, abort, controller);
  const dispose = (): void => void timer.cancel(id);
  return Object.defineProperty(controller.signal, Symbol.dispose, { value: dispose }) as TimeoutSignal;
}

/**
 * Resolves or rejects as a promise does, or rejects with a `TimeoutError` if that takes longer than `delayMs` milliseconds. Then the
 * outcome of the promise is ignored. When the promise settles, the deadline is cancelled: nothing of it is left in the timer. A wrong
 * argument or a closed timer rejects too, with what {@link timeoutSignal} throws.
 *
 * @example
 * ```ts
 * const rows = await withTimeout(database.query(text), 2_000, timer);
 * ```
 */
export function withTimeout<T>(promise: PromiseLike<T>, delayMs: number, timer: DeadlineTimer): Promise<T> {
  return new Promise((resolve, reject) => {
    requireMethods('promise', 'a promise', ['then'], promise);
    const settled = Promise.resolve(promise);
    settled.then(resolve, reject); // first: it has a handler even if the timer is closed
    requireTimer(timer);
    const id = timer.schedule(delayMs, rejectLate, reject);
    const cancel = (): void => void timer.cancel(id);
    settled.then(cancel, cancel);
  });
}

function requireTimer(timer: unknown): void {
  requireMethods('timer', 'a SystemTimer', ['schedule', 'cancel'], timer);
}

const abort = (controller: AbortController): void => {
  controller.abort(timeoutError());
};

const rejectLate = (reject: (error: unknown) => void): void => {
  reject(timeoutError());
};

function timeoutError(): DOMException {
  return new DOMException('The operation was aborted due to timeout', 'TimeoutError');
}
