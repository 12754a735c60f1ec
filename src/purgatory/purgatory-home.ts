import {
  conditionHolds,
  homeOf,
  setHome,
  sinceOf,
  stopTimeout,
  type CompletionReason,
  type DelayedOperation,
  type OperationHome,
} from './delayed-operation.ts';
import type { OperationTimeouts } from './operation-timeouts.ts';
import type { PurgatoryMetrics } from './purgatory-metrics.ts';
import type { Watchers } from './watchers.ts';

/** What the operations of a purgatory call: how they leave it. */
export class PurgatoryHome implements OperationHome {
  readonly report: (error: unknown, operation: DelayedOperation) => void;
  readonly #watchers: Watchers;
  readonly #timeouts: OperationTimeouts;
  readonly #metrics: PurgatoryMetrics | undefined;

  constructor(
    watchers: Watchers,
    timeouts: OperationTimeouts,
    metrics: PurgatoryMetrics | undefined,
    report: (error: unknown, operation: DelayedOperation) => void,
  ) {
    this.#watchers = watchers;
    this.#timeouts = timeouts;
    this.#metrics = metrics;
    this.report = report;
  }

  release(operation: DelayedOperation, reason: CompletionReason): void {
    this.letGo(operation);
    this.#metrics?.completed(reason, sinceOf(operation));
  }

  /** Off every key and off the timer, whatever becomes of it. */
  letGo(operation: DelayedOperation): void {
    this.#watchers.remove(operation);
    stopTimeout(operation);
    setHome(operation, undefined);
  }

  /** It is taken out, and never completes. */
  cancel(operation: DelayedOperation): void {
    this.letGo(operation);
    this.#metrics?.cancelled();
  }

  timeoutGone(operation: DelayedOperation): void {
    this.#timeouts.gone(operation);
  }

  /** Only whoever measures missed triggers pays for asking. */
  aboutToExpire(operation: DelayedOperation): void {
    if (this.#metrics === undefined) return;
    try {
      const holds = conditionHolds(operation);
      if (holds && homeOf(operation) === this) this.#metrics.missedTrigger();
    } catch (error) {
      this.report(error, operation);
    }
  }
}
