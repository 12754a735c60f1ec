import { inOwnTurn } from '../core/own-turn.ts';

/** Whose checks are flown. */
export interface Flyer<Answer, Context> {
  /** Starts a check. An answer that is no promise is taken at once. */
  startCheck(): Answer | PromiseLike<Answer>;
  /** Takes the answer of a check that was triggered in `context`. */
  takeAnswer(answer: Answer, context: Context): void;
  /** The check threw, or rejected. */
  checkFailed(error: unknown, context: Context): void;
  /** Whether a better answer is still wanted in a context. */
  isStillWanted(context: Context): boolean;
}

/** Checks that follow one another without a pause, before the host gets a turn. */
const MOST_IN_A_ROW = 100;

/**
 * Runs asynchronous checks one at a time. A trigger during one is followed by one more, however many came: a
 * trigger is never lost to a check that began before it.
 *
 * A check that triggers itself would be followed for ever. So that it does not keep the host from its turns, every
 * hundredth in a row starts in a turn of its own.
 *
 * The idea is Kafka's `tryCompletePending` (KAFKA-6653), where a lock kept checks apart.
 */
export class SingleFlight<Answer, Context> {
  readonly #flyer: Flyer<Answer, Context>;
  #isInFlight = false;
  /** What came during the check that is in flight; let go when it is followed, so that it holds nobody's purgatory. */
  #pending: { readonly context: Context } | undefined;
  #inARow = 0;

  constructor(flyer: Flyer<Answer, Context>) {
    this.#flyer = flyer;
  }

  /** A check that starts after this call will follow; at once, if none is in flight. */
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
      answer = this.#flyer.startCheck();
      if (isPromiseLike(answer)) {
        this.#follow(answer, context);
        return;
      }
    } catch (error) {
      this.#land(() => {
        this.#flyer.checkFailed(error, context);
      });
      return;
    }
    const value = answer;
    this.#land(() => {
      this.#flyer.takeAnswer(value, context);
    });
  }

  #follow(promise: PromiseLike<Answer>, context: Context): void {
    Promise.resolve(promise).then(
      (answer) => {
        this.#land(() => {
          this.#flyer.takeAnswer(answer, context);
        });
      },
      (error: unknown) => {
        this.#land(() => {
          this.#flyer.checkFailed(error, context);
        });
      },
    );
  }

  /** Reports the outcome first: it may make a trigger that came meanwhile needless. */
  #land(report: () => void): void {
    const pending = this.#pending;
    this.#pending = undefined;
    this.#isInFlight = false;
    report();
    if (pending !== undefined && this.#flyer.isStillWanted(pending.context))
      this.#startAgain(pending.context);
  }

  #startAgain(context: Context): void {
    // The report may have triggered it already.
    if (this.#isInFlight) return;
    if (++this.#inARow % MOST_IN_A_ROW === 0) this.#startLater(context);
    else this.#start(context);
  }

  /** Until then it counts as in flight: what triggers it meanwhile is followed by the same check. */
  #startLater(context: Context): void {
    this.#isInFlight = true;
    inOwnTurn(() => {
      this.#isInFlight = false;
      const latest = this.#pending?.context ?? context;
      this.#pending = undefined;
      if (this.#flyer.isStillWanted(latest)) this.#start(latest);
    });
  }
}

export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
