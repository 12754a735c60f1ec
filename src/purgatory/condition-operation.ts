import { EscapementError } from '../core/errors.ts';
import {
  completeOperation,
  DelayedOperation,
  homeOf,
  isProbed,
  type CompletionReason,
} from './delayed-operation.ts';
import { isPromiseLike, SingleFlight } from './single-flight.ts';

/** What somebody waits for: undefined as long as it is not there. */
export type Condition<V> = () => V | undefined | Promise<V | undefined>;

/** The two ends of the promise. */
export interface Settle<V> {
  readonly resolve: (value: V) => void;
  readonly reject: (reason: unknown) => void;
}

const OP = 'DelayedOperationPurgatory.wait';

/** The operation behind `DelayedOperationPurgatory.wait`: a promise that waits for a condition. */
export class ConditionOperation<V> extends DelayedOperation {
  readonly #condition: Condition<V>;
  readonly #settle: Settle<V>;
  readonly #signal: AbortSignal | undefined;
  readonly #flight: SingleFlight<V | undefined, undefined>;
  /** Settles the promise, once it is known how. */
  #end: (() => void) | undefined;

  constructor(
    condition: Condition<V>,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    settle: Settle<V>,
  ) {
    super(timeoutMs);
    this.#condition = condition;
    this.#settle = settle;
    this.#signal = signal;
    this.#flight = new SingleFlight<V | undefined, undefined>({
      startCheck: condition,
      takeAnswer: (value) => {
        if (value === undefined || homeOf(this) === undefined) return;
        this.#end = () => {
          settle.resolve(value);
        };
        completeOperation(this, 'tried');
      },
      checkFailed: (error) => {
        this.fail(error);
      },
      isStillWanted: () => homeOf(this) !== undefined,
    });
    signal?.addEventListener('abort', this);
  }

  override tryComplete(): boolean {
    if (isProbed(this)) return this.#holdsNow();
    this.#flight.trigger(undefined);
    return false;
  }

  override onComplete(reason: CompletionReason): void {
    this.#signal?.removeEventListener('abort', this);
    if (reason === 'expired') this.#settle.reject(this.#expired());
    else if (this.#end !== undefined) this.#end();
    else
      this.#settle.reject(
        new EscapementError('ERR_PURGATORY_CLOSED', 'the purgatory was closed', { op: OP }),
      );
  }

  override onExpiration(): void {
    // The promise was rejected in onComplete.
  }

  /** Nobody waits any longer: the condition threw, or the signal fired. */
  fail(reason: unknown): void {
    this.#end ??= () => {
      this.#settle.reject(reason);
    };
    completeOperation(this, 'forced');
  }

  /** It was taken out with its key, and will never complete. */
  abandon(): void {
    this.#signal?.removeEventListener('abort', this);
    this.#settle.reject(new EscapementError('ERR_OPERATION_CANCELLED', 'its key was cancelled', { op: OP }));
  }

  /** Asked when it expires, if somebody measures missed triggers. A promise tells nothing at once. */
  #holdsNow(): boolean {
    try {
      const answer = this.#condition();
      return answer !== undefined && !isPromiseLike(answer);
    } catch {
      return false;
    }
  }

  /** The signal fired. */
  handleEvent(): void {
    this.fail(this.#signal?.reason);
  }

  #expired(): EscapementError {
    const message = `the condition did not hold within ${this.delayMs} ms`;
    return new EscapementError('ERR_OPERATION_EXPIRED', message, { op: OP });
  }
}
