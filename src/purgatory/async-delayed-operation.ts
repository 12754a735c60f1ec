import { inOwnTurn } from '../core/own-turn.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { isThenable } from '../core/validate.ts';
import {
  completeOperation,
  DelayedOperation,
  ownerOf,
  isProbed,
  reportFailedCheck,
  type OperationOwner,
} from './delayed-operation.ts';

/**
 * An operation whose condition is checked asynchronously: in a database, on a remote replica.
 *
 * At most one check is in flight. A trigger that arrives meanwhile is followed by another check when the first one ends, so
 * that after every trigger some check begins. A check that rejects is reported and completes nothing; the timeout remains.
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
  readonly #checks = new CoalescedChecks<boolean, OperationOwner | undefined>({
    startCheck: () => this.tryCompleteAsync(),
    takeAnswer: (holds, owner) => {
      if (holds) this.#completeIn(owner);
    },
    checkFailed: (error, owner) => {
      if (owner === undefined) reportUncaught(error);
      else reportFailedCheck(owner, error, this);
    },
    isStillWanted: (owner) => !this.isCompleted && ownerOf(this) === owner,
  });

  /**
   * Checks whether the condition holds. Never called while another call of it is pending.
   *
   * @returns true if it does: then the operation completes with the reason `'tried'`.
   */
  abstract tryCompleteAsync(): Promise<boolean>;

  /** Starts a check, or requests another one after the one in flight. @returns false: the result is not known yet. */
  override tryComplete(): boolean {
    if (!isProbed(this)) this.#checks.trigger(ownerOf(this));
    return false;
  }

  /** Completes the operation, unless it was cancelled meanwhile or is pending in another purgatory. */
  #completeIn(owner: OperationOwner | undefined): void {
    if (ownerOf(this) !== owner) return;
    try {
      completeOperation(this, 'tried');
    } catch (error) {
      reportUncaught(error);
    }
  }
}

/** The checks that a {@link CoalescedChecks} runs. */
interface Checks<Answer, Context> {
  /** Starts a check. An answer that is not a promise is taken at once. */
  startCheck(): Answer | PromiseLike<Answer>;
  /** Takes the answer of a check that was triggered in `context`. */
  takeAnswer(answer: Answer, context: Context): void;
  /** Handles a check that threw or rejected. */
  checkFailed(error: unknown, context: Context): void;
  /** Whether another check is still wanted in a context. */
  isStillWanted(context: Context): boolean;
}

/** Checks in a row before the host gets a turn. */
const MOST_IN_A_ROW = 100;

/**
 * Runs asynchronous checks one at a time. Triggers during a check are followed by one more check, however many there are: a
 * trigger is never lost to a check that began before it.
 *
 * A check that triggers itself is repeated for ever. So that it does not block the event loop, every hundredth check in a row
 * starts in a turn of its own.
 *
 * Not a `CoalescedRun` of the core, whose runs are asynchronous and can be awaited: that is a promise for each operation. Here a check may end
 * inside its trigger, without a promise; its outcome belongs to a context; and a trigger may be needless when its turn comes.
 *
 * After Kafka's `tryCompletePending` (KAFKA-6653), where a lock kept checks apart.
 */
export class CoalescedChecks<Answer, Context> {
  readonly #checks: Checks<Answer, Context>;
  #isInFlight = false;
  /** The latest trigger during the check in flight; cleared with it, so that no purgatory is kept in memory. */
  #pending: { readonly context: Context } | undefined;
  #inARow = 0;

  constructor(checks: Checks<Answer, Context>) {
    this.#checks = checks;
  }

  /** Runs a check that starts after this call: at once if none is in flight. */
  trigger(context: Context): void {
    if (this.#isInFlight) {
      this.#pending = { context };
      return;
    }
    this.#inARow = 0;
    this.#start(context);
  }

  #start(context: Context): void {
    this.#isInFlight = true;
    let answer: Answer | PromiseLike<Answer>;
    try {
      answer = this.#checks.startCheck();
      if (isThenable(answer)) {
        this.#follow(answer, context);
        return;
      }
    } catch (error) {
      this.#land(() => {
        this.#checks.checkFailed(error, context);
      });
      return;
    }
    const value = answer;
    this.#land(() => {
      this.#checks.takeAnswer(value, context);
    });
  }

  #follow(promise: PromiseLike<Answer>, context: Context): void {
    Promise.resolve(promise).then(
      (answer) => {
        this.#land(() => {
          this.#checks.takeAnswer(answer, context);
        });
      },
      (error: unknown) => {
        this.#land(() => {
          this.#checks.checkFailed(error, context);
        });
      },
    );
  }

  /** Reports the outcome first: it may make a pending trigger needless. */
  #land(report: () => void): void {
    const pending = this.#pending;
    this.#pending = undefined;
    this.#isInFlight = false;
    report();
    if (pending !== undefined && this.#checks.isStillWanted(pending.context))
      this.#startAgain(pending.context);
  }

  #startAgain(context: Context): void {
    // The report may have triggered a check already.
    if (this.#isInFlight) return;
    if (++this.#inARow % MOST_IN_A_ROW === 0) this.#startLater(context);
    else this.#start(context);
  }

  /** Until then the check counts as in flight, so that triggers are followed by the same check. */
  #startLater(context: Context): void {
    this.#isInFlight = true;
    inOwnTurn(() => {
      this.#isInFlight = false;
      const latest = this.#pending?.context ?? context;
      this.#pending = undefined;
      if (this.#checks.isStillWanted(latest)) this.#start(latest);
    });
  }
}
