import { EscapementError, type EscapementErrorCode } from '../core/errors.ts';
import { isThenable } from '../core/validate.ts';
import { CoalescedChecks } from './async-delayed-operation.ts';
import {
  completeOperation,
  DelayedOperation,
  ownerOf,
  isProbed,
  type CompletionReason,
} from './delayed-operation.ts';

/** Returns the awaited value, or undefined as long as the condition does not hold; or a promise of that. */
export type Condition<V> = () => V | undefined | Promise<V | undefined>;

/** The functions that settle the promise. */
interface Settle<V> {
  readonly resolve: (value: V) => void;
  readonly reject: (reason: unknown) => void;
}

const OP = 'DelayedOperationPurgatory.wait';

/** The operation of one call of `DelayedOperationPurgatory.wait`: it settles a promise. */
export class ConditionOperation<V> extends DelayedOperation {
  readonly #condition: Condition<V>;
  readonly #settle: Settle<V>;
  readonly #signal: AbortSignal | undefined;
  readonly #checks: CoalescedChecks<V | undefined, undefined>;
  /** Settles the promise; undefined until the outcome is known. */
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
    this.#checks = new CoalescedChecks<V | undefined, undefined>({
      startCheck: condition,
      takeAnswer: (value) => {
        if (value === undefined) return;
        this.#end = () => {
          settle.resolve(value);
        };
        completeOperation(this, 'tried');
      },
      checkFailed: (error) => {
        this.fail(error);
      },
      isStillWanted: () => ownerOf(this) !== undefined,
    });
    signal?.addEventListener('abort', this);
  }

  override tryComplete(): boolean {
    if (isProbed(this)) return this.#holdsNow();
    this.#checks.trigger(undefined);
    return false;
  }

  override onComplete(reason: CompletionReason): void {
    this.#signal?.removeEventListener('abort', this);
    if (reason === 'expired')
      this.#reject('ERR_OPERATION_EXPIRED', `the condition did not hold within ${this.delayMs} ms`);
    else if (this.#end !== undefined) this.#end();
    else this.#reject('ERR_PURGATORY_CLOSED', 'the purgatory was closed');
  }

  override onExpiration(): void {
    // The promise was rejected in onComplete.
  }

  /** Rejects the promise: the condition threw, or the signal was aborted. */
  fail(reason: unknown): void {
    this.#end ??= () => {
      this.#settle.reject(reason);
    };
    completeOperation(this, 'forced');
  }

  /** Rejects the promise of an operation that was cancelled with its key. */
  abandon(): void {
    this.#signal?.removeEventListener('abort', this);
    this.#reject('ERR_OPERATION_CANCELLED', 'the key of the wait was cancelled');
  }

  /** Called at expiry by a purgatory that counts missed triggers. A promise has no result yet. */
  #holdsNow(): boolean {
    try {
      const answer = this.#condition();
      return answer !== undefined && !isThenable(answer);
    } catch {
      return false;
    }
  }

  /** Called when the signal is aborted. */
  handleEvent(): void {
    this.fail(this.#signal?.reason);
  }

  #reject(code: EscapementErrorCode, message: string): void {
    this.#settle.reject(new EscapementError(code, message, { op: OP }));
  }
}
