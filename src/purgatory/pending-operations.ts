import type { Timer } from '../timer/timer.ts';
import {
  conditionHolds,
  isTimed,
  setOwner,
  setTimed,
  sinceOf,
  stopTimeout,
  type CompletionReason,
  type DelayedOperation,
  type OperationOwner,
} from './delayed-operation.ts';
import type { PurgatoryMetrics } from './purgatory-metrics.ts';
import { Watchers } from './watchers.ts';

/** The pending operations of one purgatory: under their keys, and on a timer that may be shared. */
export class PendingOperations implements OperationOwner {
  readonly watchers = new Watchers();
  readonly report: (error: unknown, operation: DelayedOperation) => void;
  readonly #timer: Timer | undefined;
  readonly #metrics: PurgatoryMetrics | undefined;
  #timed = 0;

  /** @param timer - without one no operation times out. */
  constructor(
    timer: Timer | undefined,
    metrics: PurgatoryMetrics | undefined,
    report: (error: unknown, operation: DelayedOperation) => void,
  ) {
    this.#timer = timer;
    this.#metrics = metrics;
    this.report = report;
  }

  /** Number of operations that have a pending timeout. */
  get timed(): number {
    return this.#timed;
  }

  /** Starts the timeout of an operation. If the timer throws, a shared one may be closed, the operation is not pending. */
  startTimeout(operation: DelayedOperation): void {
    if (this.#timer === undefined || operation.delayMs === Infinity) return;
    setTimed(operation, true);
    this.#timed++;
    try {
      // Last, because another timer may run what is due at once.
      this.#timer.add(operation);
    } catch (error) {
      this.timeoutEnded(operation);
      this.remove(operation);
      throw error;
    }
  }

  timeoutEnded(operation: DelayedOperation): void {
    if (!isTimed(operation)) return;
    setTimed(operation, false);
    this.#timed--;
  }

  release(operation: DelayedOperation, reason: CompletionReason): void {
    this.remove(operation);
    this.#metrics?.completed(reason, sinceOf(operation));
  }

  /** Removes an operation from every key and from the timer. */
  remove(operation: DelayedOperation): void {
    this.watchers.remove(operation);
    stopTimeout(operation);
    setOwner(operation, undefined);
  }

  /** Removes an operation, which never completes. */
  cancel(operation: DelayedOperation): void {
    this.remove(operation);
    this.#metrics?.cancelled();
  }

  /** Without metrics the condition is not checked once more. */
  beforeExpiry(operation: DelayedOperation): void {
    if (this.#metrics === undefined) return;
    try {
      if (conditionHolds(operation)) this.#metrics.missedTrigger();
    } catch (error) {
      this.report(error, operation);
    }
  }
}
