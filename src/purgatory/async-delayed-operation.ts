import { reportUncaught } from '../core/report-uncaught.ts';
import {
  completeOperation,
  DelayedOperation,
  homeOf,
  isProbed,
  reportFailedCheck,
  type OperationHome,
} from './delayed-operation.ts';
import { SingleFlight } from './single-flight.ts';

/**
 * An operation whose condition takes a promise to look at: a database, a remote replica.
 *
 * One check is in flight at most. A trigger that arrives meanwhile is remembered, and followed by another check
 * that starts when the first is over: whatever the trigger told of, some check begins after it. A check that
 * rejects is reported and completes nothing; the timeout still stands.
 *
 * @example
 * ```ts
 * class Paid extends AsyncDelayedOperation {
 *   override async tryCompleteAsync() {
 *     return (await db.order(this.id)).isPaid;
 *   }
 *   override onComplete(reason: CompletionReason) { … }
 *   override onExpiration() {}
 * }
 * ```
 */
export abstract class AsyncDelayedOperation extends DelayedOperation {
  readonly #flight = new SingleFlight<boolean, OperationHome | undefined>({
    startCheck: () => this.tryCompleteAsync(),
    takeAnswer: (holds, home) => {
      if (holds) this.#completeIn(home);
    },
    checkFailed: (error, home) => {
      if (home === undefined) reportUncaught(error);
      else reportFailedCheck(home, error, this);
    },
    isStillWanted: (home) => !this.isCompleted && homeOf(this) === home,
  });

  /**
   * Looks whether the condition holds. Never called while another call of it is pending.
   *
   * @returns true if it does: the operation is completed then, with the reason `'tried'`.
   */
  abstract tryCompleteAsync(): Promise<boolean>;

  /** Starts a check, or has the one in flight followed by another. @returns false: it is too early to tell. */
  override tryComplete(): boolean {
    if (!isProbed(this)) this.#flight.trigger(homeOf(this));
    return false;
  }

  /** Unless it was cancelled meanwhile, or is waiting elsewhere. */
  #completeIn(home: OperationHome | undefined): void {
    if (homeOf(this) !== home) return;
    try {
      completeOperation(this, 'tried');
    } catch (error) {
      reportUncaught(error);
    }
  }
}
