import { EscapementError } from '../core/errors.ts';
import { PendingKeys } from './pending-keys.ts';
import { checkOperation, type DelayedOperation, type OperationHome } from './delayed-operation.ts';
import type { PurgatoryMetrics } from './purgatory-metrics.ts';
import type { Watchers } from './watchers.ts';

/** Checks of one key in one call, without anything being completed anywhere, before we call them endless. */
const MOST_IDLE_CHECKS = 10_000;

/** Checks the operations of a key, and of every key that is triggered meanwhile. */
export class KeyChecks {
  readonly #watchers: Watchers;
  readonly #home: OperationHome;
  readonly #metrics: PurgatoryMetrics | undefined;
  readonly #pending = new PendingKeys();
  #isRunning = false;
  /** How often each key was checked since something was completed. */
  readonly #idleChecks = new Map<unknown, number>();
  #latest: DelayedOperation | undefined;

  constructor(watchers: Watchers, home: OperationHome, metrics: PurgatoryMetrics | undefined) {
    this.#watchers = watchers;
    this.#home = home;
    this.#metrics = metrics;
  }

  /** @returns how many operations it completed; 0 for a call from inside another, which does it then. */
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
      this.#pending.clear();
      this.#forgetIdleChecks();
      this.#latest = undefined;
    }
  }

  /** Forgets what is in line. */
  clear(): void {
    this.#pending.clear();
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

  #checkOne(key: unknown): number {
    return this.#metrics === undefined ? this.#checkKey(key) : this.#measureKey(key, this.#metrics);
  }

  /** Counts the check of a key, and reports the first that is one too many. */
  #isEndless(key: unknown): boolean {
    const checks = (this.#idleChecks.get(key) ?? 0) + 1;
    this.#idleChecks.set(key, checks);
    if (checks === MOST_IDLE_CHECKS + 1) this.#reportEndless();
    return checks > MOST_IDLE_CHECKS;
  }

  /** Emptying an empty map would make a new table all the same. */
  #forgetIdleChecks(): void {
    if (this.#idleChecks.size > 0) this.#idleChecks.clear();
  }

  #measureKey(key: unknown, metrics: PurgatoryMetrics): number {
    const sinceMs = metrics.now();
    const completed = this.#checkKey(key);
    metrics.checked(sinceMs);
    return completed;
  }

  #checkKey(key: unknown): number {
    const watchers = this.#watchers;
    let completed = 0;
    watchers.startWalk(key);
    for (let operation = watchers.walk(); operation !== undefined; operation = watchers.walk()) {
      this.#latest = operation;
      if (checkOperation(operation)) completed++;
    }
    return completed;
  }

  /** Two operations whose checks trigger each other's keys, say. The timeouts of all of them still stand. */
  #reportEndless(): void {
    if (this.#latest === undefined) return;
    const message = `a key was triggered ${MOST_IDLE_CHECKS} times by checks that completed nothing`;
    this.#home.report(
      new EscapementError('ERR_CHECK_ENDLESS', message, { op: 'DelayedOperationPurgatory.checkAndComplete' }),
      this.#latest,
    );
  }
}
