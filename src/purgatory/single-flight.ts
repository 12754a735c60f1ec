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

/**
 * Runs asynchronous checks one at a time. A trigger during one is followed by one more, however many came: a
 * trigger is never lost to a check that began before it.
 *
 * The idea is Kafka's `tryCompletePending` (KAFKA-6653), where a lock kept checks apart.
 */
export class SingleFlight<Answer, Context> {
  readonly #flyer: Flyer<Answer, Context>;
  #context: Context | undefined;
  #isInFlight = false;
  #isTriggered = false;

  constructor(flyer: Flyer<Answer, Context>) {
    this.#flyer = flyer;
  }

  /** A check that starts after this call will follow; at once, if none is in flight. */
  trigger(context: Context): void {
    this.#context = context;
    if (this.#isInFlight) this.#isTriggered = true;
    else this.#start(context);
  }

  #start(context: Context): void {
    this.#isInFlight = true;
    this.#isTriggered = false;
    let answer: Answer | PromiseLike<Answer>;
    try {
      answer = this.#flyer.startCheck();
    } catch (error) {
      this.#isInFlight = false;
      this.#flyer.checkFailed(error, context);
      return;
    }
    if (isPromiseLike(answer)) {
      this.#follow(answer, context);
      return;
    }
    this.#isInFlight = false;
    this.#flyer.takeAnswer(answer, context);
  }

  #follow(promise: PromiseLike<Answer>, context: Context): void {
    Promise.resolve(promise).then(
      (answer) => {
        this.#isInFlight = false;
        this.#flyer.takeAnswer(answer, context);
        this.#startAgain();
      },
      (error: unknown) => {
        this.#isInFlight = false;
        this.#flyer.checkFailed(error, context);
        this.#startAgain();
      },
    );
  }

  #startAgain(): void {
    const context = this.#context as Context;
    if (this.#isTriggered && !this.#isInFlight && this.#flyer.isStillWanted(context)) this.#start(context);
  }
}

export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
