import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType } from '../core/errors.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { oneOf, readOptions, type OptionTable } from '../core/options.ts';
import type { SignalOptions } from '../core/signal-options.ts';
import { invalidDelay, requireFunction, requireSignal } from '../core/validate.ts';
import { SystemTimer } from '../timer/system-timer.ts';
import { ConditionOperation, type Condition } from './condition-operation.ts';
import {
  checkOperation,
  completeOperation,
  type DelayedOperation,
  homeOf,
  isDelayedOperation,
  NOT_WATCHED,
  serialOf,
  setHome,
  setSince,
} from './delayed-operation.ts';
import { KeyChecks } from './key-checks.ts';
import { OperationTimeouts } from './operation-timeouts.ts';
import { PurgatoryHome } from './purgatory-home.ts';
import { INTERNALS, type PurgatoryInternals } from './purgatory-internals.ts';
import { PurgatoryMetrics } from './purgatory-metrics.ts';
import { resolvePurgatoryOptions, type PurgatoryOptions } from './purgatory-options.ts';
import { WatchKeys } from './watch-keys.ts';
import { Watchers } from './watchers.ts';

/** What `close` does with the operations that wait. */
export interface PurgatoryCloseOptions {
  /**
   * - `'complete'`: they complete, with the reason `'closed'`.
   * - `'drop'`: they are taken out, and never complete.
   *
   * @default 'complete'
   */
  readonly pending?: 'complete' | 'drop';
}

/** How long `wait` waits. */
export interface WaitOptions extends SignalOptions {
  /** Milliseconds; `Infinity`: as long as it takes. */
  readonly timeoutMs: number;
}

const CLOSE_OPTIONS = {
  pending: [oneOf('complete', 'drop'), 'complete'],
} satisfies OptionTable<PurgatoryCloseOptions>;
const WAIT_OPTIONS = {
  signal: [requireSignal, undefined],
  timeoutMs: [requireTimeout],
} satisfies OptionTable<WaitOptions>;

/**
 * Where operations wait for a condition or a deadline.
 *
 * HOW. An operation is watched under the keys that its condition depends on. Whoever changes something says so with
 * `checkAndComplete(key)`, and the operations of that key look again. The deadline is a task of a timer.
 *
 *      tryCompleteElseWatch ─► try ─► watch ─► try again ─► start the timeout
 *      checkAndComplete(key) ─► try each operation of the key, in the order they came
 *                                       │ the condition holds                │ the timeout
 *                                       └──► off every key and the timer ◄───┘
 *                                                   └──► onComplete
 *
 * WHY twice: what changes after the first try and before the operation is watched would be missed; the second try
 * sees it. And not once a key, because a condition costs what it costs (KAFKA-1952).
 *
 * After Kafka's class of this name, without its purge: see watchers.ts. Differences are in docs/purgatory.md.
 *
 * @typeParam K - what keys look like.
 * @typeParam T - the operations it takes.
 */
export class DelayedOperationPurgatory<K, T extends DelayedOperation = DelayedOperation> {
  /** For metrics and errors. */
  readonly name: string;
  readonly #keys: WatchKeys<K>;
  readonly #watchers = new Watchers();
  readonly #ownTimer: SystemTimer | undefined;
  readonly #timeouts: OperationTimeouts;
  readonly #metrics: PurgatoryMetrics | undefined;
  readonly #home: PurgatoryHome;
  readonly #checks: KeyChecks;
  #isClosed = false;

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - `name` is not a string, or an option is of another type.
   * `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(name: string, options: PurgatoryOptions<K, T> = {}) {
    const { timer, timerEnabled, keyOf, onError, metrics, clock } = resolvePurgatoryOptions(name, options);
    this.name = name;
    this.#keys = new WatchKeys(keyOf);
    if (timer === undefined && timerEnabled) this.#ownTimer = new SystemTimer({ name, clock });
    this.#timeouts = new OperationTimeouts(timerEnabled ? (timer ?? this.#ownTimer) : undefined);
    if (metrics !== undefined) this.#metrics = new PurgatoryMetrics(metrics, clock, name, this);
    this.#home = new PurgatoryHome(this.#watchers, this.#timeouts, this.#metrics, (error, operation) => {
      this.#report(error, operation as T, onError);
    });
    this.#checks = new KeyChecks(this.#watchers, this.#home, this.#metrics);
  }

  /** Watch entries: an operation counts once for each of its keys. O(1). */
  get watched(): number {
    return this.#watchers.size;
  }

  /** Operations of this purgatory that wait for their timeout. O(1), also when the timer is shared. */
  get numDelayed(): number {
    return this.#timeouts.size;
  }

  /** Keys that operations wait for. O(1). */
  get watchedKeys(): number {
    return this.#watchers.keys;
  }

  /**
   * Tries an operation; if it does not complete, watches it under its keys, tries once more, and starts its timeout.
   * O(keys), and at most two tries.
   *
   * An operation that is completed already is left alone. One that throws while it is tried is reported, and watched.
   *
   * @param watchKeys - what its condition depends on; a key given twice counts once.
   * @returns true if it is completed; false if it waits, or was cancelled by its own try.
   * @throws RangeError `ERR_OUT_OF_RANGE` - no keys.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not an operation, not keys. What `keyOf` throws is thrown too.
   * @throws EscapementError `ERR_ALREADY_WATCHED` - it waits already, here or elsewhere.
   * @throws EscapementError `ERR_PURGATORY_CLOSED` - after `close`. In each of these cases nothing has changed.
   */
  tryCompleteElseWatch(operation: T, watchKeys: Iterable<K>): boolean {
    if (this.#isClosed) throw this.#closedError('tryCompleteElseWatch');
    if (!isDelayedOperation(operation)) throw wrongType('operation', 'a DelayedOperation', operation);
    const keys = this.#keys.all(watchKeys);
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- whoever makes the keys may have closed it
    if (this.#isClosed) throw this.#closedError('tryCompleteElseWatch');
    if (homeOf(operation) !== undefined) throw this.#watchedError();
    return operation.isCompleted || this.#tryElseWatch(operation, keys, 'tryCompleteElseWatch');
  }

  /**
   * Checks the operations that are watched under a key, in the order in which they were watched: call it when
   * something has changed that they may wait for. O(operations under the key).
   *
   * Called from inside an operation's code it only notes the key: the outermost call checks it, when it is done with
   * those before.
   *
   * @returns how many operations this call completed; 0 from inside another one, and after `close`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a key.
   */
  checkAndComplete(key: K): number {
    const plain = this.#keys.plain(key);
    return this.#isClosed ? 0 : this.#checks.check(plain);
  }

  /**
   * Takes out every operation under a key: off its other keys and off the timer too. They never complete, unless
   * somebody forces them. Whoever waits for one by `wait` is rejected with `ERR_OPERATION_CANCELLED`.
   *
   * @returns them, in the order in which they were watched; those of `wait` are not among them.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a key.
   */
  cancelForKey(key: K): T[] {
    const plain = this.#keys.plain(key);
    if (this.#isClosed) return [];
    const operations = this.#watchers.under(plain);
    for (const operation of operations) this.#home.cancel(operation);
    for (const operation of operations) if (operation instanceof ConditionOperation) operation.abandon();
    return withoutConditions<T>(operations);
  }

  /**
   * Takes one operation out: off its keys and off the timer. It never completes, unless somebody forces it. For a
   * client that has gone. O(keys).
   *
   * @returns true if it waited here.
   */
  cancel(operation: T): boolean {
    if (!isDelayedOperation(operation)) throw wrongType('operation', 'a DelayedOperation', operation);
    if (this.#isClosed || homeOf(operation) !== this.#home) return false;
    this.#home.cancel(operation);
    return true;
  }

  /**
   * Waits until a condition holds, looked at as an operation's is: twice when it comes, and after every
   * `checkAndComplete` of one of its keys.
   *
   * @param condition - returns what is waited for, or `undefined` as long as it is not there; or a promise of that.
   * @returns what the condition returned. Rejects with `ERR_OPERATION_EXPIRED`, with the signal's reason, with
   * whatever the condition throws, with `ERR_OPERATION_CANCELLED` or `ERR_PURGATORY_CLOSED`, and for bad arguments as
   * `tryCompleteElseWatch` throws. Nothing stays watched.
   */
  wait<V>(watchKeys: Iterable<K>, condition: Condition<V>, options: WaitOptions): Promise<V> {
    return new Promise<V>((resolve, reject) => {
      if (this.#isClosed) throw this.#closedError('wait');
      requireFunction('condition', condition);
      const { signal, timeoutMs } = readOptions('DelayedOperationPurgatory.wait', options, WAIT_OPTIONS);
      signal?.throwIfAborted();
      const keys = this.#keys.all(watchKeys);
      // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- as above
      if (this.#isClosed) throw this.#closedError('wait');
      const operation = new ConditionOperation<V>(condition, timeoutMs, signal, { resolve, reject });
      try {
        this.#tryElseWatch(operation, keys, 'wait');
      } catch (error) {
        operation.fail(error);
      }
    });
  }

  /**
   * Stops for good. What waits completes with the reason `'closed'`, or is dropped; whoever waits by `wait` is
   * rejected with `ERR_PURGATORY_CLOSED`. A timer of its own is closed. Idempotent; also from inside an operation.
   *
   * @returns the operations that waited, in the order in which they were watched; those of `wait` are not among them.
   */
  close(options: PurgatoryCloseOptions = {}): T[] {
    const { pending } = readOptions('DelayedOperationPurgatory.close', options, CLOSE_OPTIONS);
    if (this.#isClosed) return [];
    this.#isClosed = true;
    this.#checks.clear();
    const operations = this.#watchers.all();
    for (const operation of operations) {
      // What was completed before may have completed this one as well.
      if (homeOf(operation) !== this.#home) continue;
      if (pending === 'complete' || operation instanceof ConditionOperation)
        completeOperation(operation, 'closed');
      else this.#home.letGo(operation);
    }
    this.#watchers.clear();
    this.#ownTimer?.close();
    this.#metrics?.remove();
    return withoutConditions<T>(operations);
  }

  /** `close()`, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      watched: this.watched,
      watchedKeys: this.watchedKeys,
      numDelayed: this.numDelayed,
      closed: this.#isClosed,
    }));
  }

  /** @internal For the integrity checker. */
  [INTERNALS](): PurgatoryInternals {
    return { watchers: this.#watchers, home: this.#home };
  }

  #tryElseWatch(operation: DelayedOperation, keys: readonly unknown[], method: string): boolean {
    setHome(operation, this.#home);
    if (this.#metrics !== undefined) setSince(operation, this.#metrics.now());
    checkOperation(operation);
    // Its own check may have completed it, taken it out, or put it somewhere; also in here, under other keys.
    if (homeOf(operation) !== this.#home || serialOf(operation) !== NOT_WATCHED) return operation.isCompleted;
    if (this.#isClosed) {
      setHome(operation, undefined);
      throw this.#closedError(method);
    }
    const serial = this.#watchers.add(operation, keys);
    checkOperation(operation);
    if (serialOf(operation) !== serial) return operation.isCompleted;
    this.#startTimeout(operation);
    // Somebody's own timer may run what is due at once.
    return operation.isCompleted;
  }

  /** A shared timer may have been closed: then the operation is not watched either. */
  #startTimeout(operation: DelayedOperation): void {
    try {
      this.#timeouts.start(operation);
    } catch (error) {
      this.#home.letGo(operation);
      throw error;
    }
  }

  /** A handler that throws is an error in user code like any other. */
  #report(error: unknown, operation: T, onError: (error: unknown, operation: T) => void): void {
    try {
      // Nobody has made the operation behind a wait: whoever waits is told.
      if (operation instanceof ConditionOperation) operation.fail(error);
      else onError(error, operation);
    } catch (handlerError) {
      reportUncaught(handlerError);
    }
  }

  #closedError(method: string): EscapementError {
    return new EscapementError('ERR_PURGATORY_CLOSED', `purgatory '${this.name}' is closed`, {
      op: `DelayedOperationPurgatory.${method}`,
    });
  }

  #watchedError(): EscapementError {
    return new EscapementError('ERR_ALREADY_WATCHED', 'the operation waits already, here or elsewhere', {
      op: 'DelayedOperationPurgatory.tryCompleteElseWatch',
    });
  }
}

/** What users put in; the operations behind `wait` are ours. */
function withoutConditions<T extends DelayedOperation>(operations: readonly DelayedOperation[]): T[] {
  return operations.filter((operation) => !(operation instanceof ConditionOperation)) as T[];
}

function requireTimeout(argument: string, value: unknown): void {
  if (typeof value !== 'number' || !(value > -Infinity)) throw invalidDelay(argument, value);
}
