import { EscapementError } from '../core/errors.ts';
import { checkOperation, type DelayedOperation } from './delayed-operation.ts';
import type { PendingOperations } from './pending-operations.ts';
import type { PurgatoryMetrics } from './purgatory-metrics.ts';

/** Most checks of one key in one call while no operation completes: more are endless. */
const MOST_IDLE_CHECKS = 10_000;

/** Checks the operations under a key, and under every key that is triggered meanwhile. */
export class KeyChecks {
  readonly #operations: PendingOperations;
  readonly #metrics: PurgatoryMetrics | undefined;
  readonly #pending = new PendingKeys();
  #isRunning = false;
  /** How often each key was checked since an operation completed. */
  readonly #idleChecks = new Map<unknown, number>();
  #latest: DelayedOperation | undefined;

  constructor(operations: PendingOperations, metrics: PurgatoryMetrics | undefined) {
    this.#operations = operations;
    this.#metrics = metrics;
  }

  /** @returns how many operations it completed; 0 for a nested call, whose key the outermost call checks. */
  check(key: unknown): number {
    if (this.#isRunning) {
      this.#pending.add(key);
      return 0;
    }
    this.#isRunning = true;
    try {
      return this.#checkAll(key);
    } finally {
      this.#isRunning = false;
      this.#forgetIdleChecks();
      this.#latest = undefined;
    }
  }

  #checkAll(first: unknown): number {
    let completed = this.#checkOne(first);
    for (let key = this.#pending.take(); key !== undefined; key = this.#pending.take()) {
      if (this.#isEndless(key)) continue;
      const completedNow = this.#checkOne(key);
      if (completedNow > 0) this.#forgetIdleChecks();
      completed += completedNow;
    }
    return completed;
  }

  /** Counts the check of a key, and reports the first one that is endless. */
  #isEndless(key: unknown): boolean {
    const checks = (this.#idleChecks.get(key) ?? 0) + 1;
    this.#idleChecks.set(key, checks);
    if (checks === MOST_IDLE_CHECKS + 1) this.#reportEndless();
    return checks > MOST_IDLE_CHECKS;
  }

  /** Clearing an empty map would allocate a new table. */
  #forgetIdleChecks(): void {
    if (this.#idleChecks.size > 0) this.#idleChecks.clear();
  }

  #checkOne(key: unknown): number {
    const { watchers } = this.#operations;
    const sinceMs = this.#metrics?.now() ?? NaN;
    let completed = 0;
    watchers.startWalk(key);
    for (let operation = watchers.walk(); operation !== undefined; operation = watchers.walk()) {
      this.#latest = operation;
      if (checkOperation(operation)) completed++;
    }
    this.#metrics?.checked(sinceMs);
    return completed;
  }

  /** For example two operations whose checks trigger each other's keys. Their timeouts remain. */
  #reportEndless(): void {
    const message = `a key was triggered ${MOST_IDLE_CHECKS} times by checks that completed nothing`;
    this.#operations.report(
      new EscapementError('ERR_CHECK_ENDLESS', message, { op: 'DelayedOperationPurgatory.checkAndComplete' }),
      this.#latest as DelayedOperation, // only its checks trigger keys meanwhile
    );
  }
}

/**
 * The keys that are still to be checked, first in, first out.
 *
 * WHY. The completion of one operation often triggers the next: checked where it is triggered, a chain of them would be as deep
 * as it is long (Kafka's stack overflows at about 1 500, KAFKA-17509). So the outermost call checks one key after the other,
 * and a nested trigger only queues its key. A queued key is not queued again: its check begins after both triggers.
 */
export class PendingKeys {
  /** In the order in which they were added. */
  readonly #keys = new Set<unknown>();
  /** Continues where it was, and includes keys that are added meanwhile: a new iterator would step over all that was taken. */
  #line: Iterator<unknown> | undefined;

  add(key: unknown): void {
    this.#keys.add(key);
  }

  /** Removes and returns the first key; undefined, which is not a valid key, if there is none. */
  take(): unknown {
    if (this.#keys.size === 0) {
      this.#line = undefined;
      return undefined;
    }
    this.#line ??= this.#keys.values();
    const { value } = this.#line.next() as IteratorYieldResult<unknown>;
    this.#keys.delete(value);
    return value;
  }
}
