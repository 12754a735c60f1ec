import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType } from '../core/errors.ts';
import { guarded } from '../core/report-uncaught.ts';
import { oneOf, readOptions, type OptionTable } from '../core/options.ts';
import type { SignalOptions } from '../core/signal-options.ts';
import { invalidTimeout, requireFunction, requireSignal, requireString } from '../core/validate.ts';
import { SystemTimer } from '../timer/system-timer.ts';
import { ConditionOperation, type Condition } from './condition-operation.ts';
import {
  checkOperation,
  completeOperation,
  type DelayedOperation,
  isDelayedOperation,
  NOT_WATCHED,
  ownerOf,
  serialOf,
  setOwner,
  setSince,
} from './delayed-operation.ts';
import { KeyChecks } from './key-checks.ts';
import { PendingOperations } from './pending-operations.ts';
import { PurgatoryMetrics } from './purgatory-metrics.ts';
import { PURGATORY_OPTIONS, WatchKeys, type PurgatoryOptions } from './purgatory-options.ts';

/** The name of the method that returns the internals of a purgatory, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.purgatory.internals');

/** Options of `close`. */
export interface PurgatoryCloseOptions {
  /**
   * What happens to pending operations.
   *
   * - `'complete'`: they complete with the reason `'closed'`.
   * - `'drop'`: they are removed, and never complete.
   *
   * @default 'complete'
   */
  readonly pending?: 'complete' | 'drop' | undefined;
}

/** Options of `wait`. */
export interface WaitOptions extends SignalOptions {
  /** Milliseconds until the wait is rejected; `Infinity`: never. */
  readonly timeoutMs: number;
}

/** The state of a purgatory, for people: a copy. */
export interface PurgatorySnapshot {
  /** Name of the purgatory. */
  readonly name: string;
  /** Number of watchers: an operation counts once for each of its keys. */
  readonly watched: number;
  /** Number of operations that have a pending timeout. */
  readonly numDelayed: number;
  /** Number of keys that operations are watched under. */
  readonly watchedKeys: number;
  /**
   * At most a hundred keys, as a `Map` has them (see `keyOf`): those with the most operations, of the first thousand keys, or of fewer if
   * these have more than 20 000 operations.
   */
  readonly keys: readonly WatchedKeySnapshot[];
}

/** A key that operations are watched under. */
export interface WatchedKeySnapshot {
  /** The key. */
  readonly key: unknown;
  /** Number of operations under it; counting ends at a thousand. */
  readonly operations: number;
}

const CLOSE_OPTIONS = {
  pending: [oneOf('complete', 'drop'), 'complete'],
} satisfies OptionTable<PurgatoryCloseOptions>;
const WAIT_OPTIONS = {
  signal: [requireSignal, undefined],
  timeoutMs: [requireTimeout],
} satisfies OptionTable<WaitOptions>;

/**
 * Operations that are pending until a condition holds or a deadline passes.
 *
 * HOW. An operation is watched under the keys that its condition depends on. The program calls `checkAndComplete(key)` when a
 * condition may have changed, and the operations under that key are checked again. The deadline is a task of a timer.
 *
 *      tryCompleteElseWatch ─► try ─► watch ─► try again ─► start the timeout
 *      checkAndComplete(key) ─► try each operation under the key, in order of arrival
 *                                       │ the condition holds                │ the timeout
 *                                       └─► removed from keys and timer ◄────┘
 *                                                   └──► onComplete
 *
 * WHY twice: a change after the first try and before the operation is watched would be missed without the second try. And not
 * once for each key, because a check may be expensive (KAFKA-1952).
 *
 * After Kafka's class of this name, without its purge: see watchers.ts. Differences are in docs/purgatory.md.
 *
 * @typeParam K - the keys.
 * @typeParam T - the operations.
 */
export class DelayedOperationPurgatory<K, T extends DelayedOperation = DelayedOperation> {
  /** Name of the purgatory in metrics and errors. */
  readonly name: string;
  readonly #keys: WatchKeys<K>;
  readonly #ownTimer: SystemTimer | undefined;
  readonly #metrics: PurgatoryMetrics | undefined;
  readonly #pending: PendingOperations;
  readonly #checks: KeyChecks;
  #isClosed = false;

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - `name` is not a string, or an option is of another type.
   * `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(name: string, options: PurgatoryOptions<K, T> = {}) {
    requireString('name', name);
    const resolved = readOptions('DelayedOperationPurgatory', options, PURGATORY_OPTIONS);
    const { timer, timerEnabled, keyOf, onError, metrics, clock } = resolved;
    this.name = name;
    this.#keys = new WatchKeys(keyOf);
    if (timer === undefined && timerEnabled) this.#ownTimer = new SystemTimer({ name, clock });
    if (metrics !== undefined) this.#metrics = new PurgatoryMetrics(metrics, clock, name, this);
    const usedTimer = timerEnabled ? (timer ?? this.#ownTimer) : undefined;
    this.#pending = new PendingOperations(usedTimer, this.#metrics, (error, operation) => {
      this.#report(error, operation as T, onError);
    });
    this.#checks = new KeyChecks(this.#pending, this.#metrics);
  }

  /** Number of watchers: an operation counts once for each of its keys. O(1). */
  get watched(): number {
    return this.#pending.watchers.size;
  }

  /** Number of operations of this purgatory that have a pending timeout. O(1), also with a shared timer. */
  get numDelayed(): number {
    return this.#pending.timed;
  }

  /** Number of keys that operations are watched under. O(1). */
  get watchedKeys(): number {
    return this.#pending.watchers.keys;
  }

  /** Returns a copy of the state, for inspection. It takes less than a millisecond, however many operations there are. */
  inspect(): PurgatorySnapshot {
    const { name, watched, numDelayed, watchedKeys } = this;
    return { name, watched, numDelayed, watchedKeys, keys: this.#pending.watchers.largest() };
  }

  /**
   * Tries an operation; if it does not complete, watches it under its keys, tries once more, and starts its timeout.
   * O(keys), and at most two tries.
   *
   * Nothing happens to an operation that has completed. If a try throws, the error is reported, and the operation is watched.
   *
   * @param watchKeys - the keys that its condition depends on; a key given twice counts once.
   * @returns true if it has completed; false if it is pending, or was cancelled by its own try.
   * @throws RangeError `ERR_OUT_OF_RANGE` - no keys.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not an operation, or a frozen one; not keys. An error of `keyOf` is thrown, too.
   * @throws EscapementError `ERR_ALREADY_WATCHED` - it is pending already, in this or another purgatory.
   * @throws EscapementError `ERR_PURGATORY_CLOSED` - after `close`. In each of these cases nothing has changed.
   */
  tryCompleteElseWatch(operation: T, watchKeys: Iterable<K>): boolean {
    if (!isDelayedOperation(operation) || Object.isFrozen(operation))
      throw wrongType('operation', 'a DelayedOperation that is not frozen', operation);
    const keys = this.#keys.all(watchKeys); // first: the iterable may close the purgatory
    if (this.#isClosed) throw this.#closedError('tryCompleteElseWatch');
    if (ownerOf(operation) !== undefined) throw this.#watchedError();
    return operation.isCompleted || this.#tryElseWatch(operation, keys, 'tryCompleteElseWatch');
  }

  /**
   * Checks the operations that are watched under a key, in the order in which they were watched: to be called when
   * their conditions may have changed. O(operations under the key).
   *
   * A call from inside an operation's code only queues the key: the outermost call checks it after those before.
   *
   * @returns how many operations this call completed; 0 for a nested call, and after `close`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a key.
   */
  checkAndComplete(key: K): number {
    const plain = this.#keys.plain(key);
    return this.#isClosed ? 0 : this.#checks.check(plain);
  }

  /**
   * Cancels every operation under a key: they are removed from their other keys and from the timer, too. They never complete,
   * unless `forceComplete` is called. Pending calls of `wait` reject with `ERR_OPERATION_CANCELLED`.
   *
   * @returns the operations, in the order in which they were watched; those of `wait` are not among them.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a key.
   */
  cancelForKey(key: K): T[] {
    const plain = this.#keys.plain(key);
    if (this.#isClosed) return [];
    const operations = this.#pending.watchers.under(plain);
    for (const operation of operations) this.#pending.cancel(operation);
    for (const operation of operations) if (operation instanceof ConditionOperation) operation.abandon();
    return withoutConditions<T>(operations);
  }

  /**
   * Cancels one operation: it is removed from its keys and from the timer, and never completes, unless `forceComplete` is
   * called. For a client that has disconnected. O(keys).
   *
   * @returns true if it was pending here.
   */
  cancel(operation: T): boolean {
    if (!isDelayedOperation(operation)) throw wrongType('operation', 'a DelayedOperation', operation);
    if (this.#isClosed || ownerOf(operation) !== this.#pending) return false;
    this.#pending.cancel(operation);
    return true;
  }

  /**
   * Waits until a condition holds. It is checked as that of an operation: twice at first, and after every `checkAndComplete` of
   * one of its keys.
   *
   * @param condition - returns the awaited value, or `undefined` as long as the condition does not hold; or a promise of that.
   * @returns the awaited value. Rejects with `ERR_OPERATION_EXPIRED`, with the signal's reason, with an error of the condition,
   * with `ERR_OPERATION_CANCELLED` or `ERR_PURGATORY_CLOSED`, and for invalid arguments as `tryCompleteElseWatch` throws.
   * Nothing stays watched.
   */
  wait<V>(watchKeys: Iterable<K>, condition: Condition<V>, options: WaitOptions): Promise<V> {
    return new Promise<V>((resolve, reject) => {
      requireFunction('condition', condition);
      const { signal, timeoutMs } = readOptions('DelayedOperationPurgatory.wait', options, WAIT_OPTIONS);
      const keys = this.#keys.all(watchKeys); // first: the iterable may close the purgatory, or abort the signal
      if (this.#isClosed) throw this.#closedError('wait');
      signal?.throwIfAborted();
      const operation = new ConditionOperation<V>(condition, timeoutMs, signal, { resolve, reject });
      try {
        this.#tryElseWatch(operation, keys, 'wait');
      } catch (error) {
        operation.fail(error);
      }
    });
  }

  /**
   * Closes the purgatory. Pending operations complete with the reason `'closed'`, or are dropped; pending calls of `wait` reject
   * with `ERR_PURGATORY_CLOSED`. A timer of its own is closed. Idempotent; an operation may call it, too.
   *
   * @returns the operations that were pending, in the order in which they were watched; those of `wait` are not among them.
   */
  close(options: PurgatoryCloseOptions = {}): T[] {
    const { pending } = readOptions('DelayedOperationPurgatory.close', options, CLOSE_OPTIONS);
    if (this.#isClosed) return [];
    this.#isClosed = true;
    const operations = this.#pending.watchers.all();
    for (const operation of operations) {
      if (pending === 'complete' || operation instanceof ConditionOperation)
        completeOperation(operation, 'closed');
      else this.#pending.remove(operation);
    }
    this.#ownTimer?.close();
    this.#metrics?.remove();
    return withoutConditions<T>(operations);
  }

  /** `close()`, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      watched: this.watched,
      watchedKeys: this.watchedKeys,
      numDelayed: this.numDelayed,
      closed: this.#isClosed,
    }));
  }

  /** @internal For the integrity checker. */
  [INTERNALS](): PendingOperations {
    return this.#pending;
  }

  #tryElseWatch(operation: DelayedOperation, keys: readonly unknown[], method: string): boolean {
    setOwner(operation, this.#pending);
    if (this.#metrics !== undefined) setSince(operation, this.#metrics.now());
    checkOperation(operation);
    // Its own check may have completed it, cancelled it, or had it watched: here, under other keys, or in another purgatory.
    if (ownerOf(operation) !== this.#pending || serialOf(operation) !== NOT_WATCHED)
      return operation.isCompleted;
    if (this.#isClosed) {
      setOwner(operation, undefined);
      throw this.#closedError(method);
    }
    const serial = this.#pending.watchers.add(operation, keys);
    checkOperation(operation);
    if (serialOf(operation) !== serial) return operation.isCompleted;
    this.#pending.startTimeout(operation);
    // A timer of another class may run what is due at once.
    return operation.isCompleted;
  }

  /** Calls `onError`; for an operation of `wait`, rejects the promise. What `onError` throws is an uncaught exception. */
  #report(error: unknown, operation: T, onError: (error: unknown, operation: T) => void): void {
    guarded(() => {
      if (operation instanceof ConditionOperation) operation.fail(error);
      else onError(error, operation);
    });
  }

  #closedError(method: string): EscapementError {
    return new EscapementError('ERR_PURGATORY_CLOSED', `purgatory '${this.name}' is closed`, {
      op: `DelayedOperationPurgatory.${method}`,
    });
  }

  #watchedError(): EscapementError {
    const message = 'the operation is pending already, in this or another purgatory';
    const op = 'DelayedOperationPurgatory.tryCompleteElseWatch';
    return new EscapementError('ERR_ALREADY_WATCHED', message, { op });
  }
}

/** Leaves out the operations of `wait`, which are internal. */
function withoutConditions<T extends DelayedOperation>(operations: readonly DelayedOperation[]): T[] {
  return operations.filter((operation) => !(operation instanceof ConditionOperation)) as T[];
}

function requireTimeout(argument: string, value: unknown): void {
  if (typeof value !== 'number' || !(value > -Infinity)) throw invalidTimeout(argument, value);
}
