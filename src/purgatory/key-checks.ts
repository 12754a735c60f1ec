import { EscapementError } from '../core/errors.ts';
import { CheckQueue } from './check-queue.ts';
import { checkOperation, type DelayedOperation, type OperationHome } from './delayed-operation.ts';
import type { PurgatoryMetrics } from './purgatory-metrics.ts';
import type { Watchers } from './watchers.ts';

/** Checks in one call, one after the other, that complete nothing, before we call them endless. */
const MOST_IDLE_CHECKS = 10_000;

/** Checks the operations of a key, and of every key that is triggered meanwhile. */
export class KeyChecks {
  readonly #watchers: Watchers;
  readonly #home: OperationHome;
  readonly #metrics: PurgatoryMetrics | undefined;
  readonly #queue = new CheckQueue();
  #isRunning = false;
  #latest: DelayedOperation | undefined;

  constructor(watchers: Watchers, home: OperationHome, metrics: PurgatoryMetrics | undefined) {
    this.#watchers = watchers;
    this.#home = home;
    this.#metrics = metrics;
  }

  /** @returns how many operations it completed; 0 for a call from inside another, which does it then. */
  check(key: unknown): number {
    if (this.#isRunning) {
      this.#queue.add(key);
      return 0;
    }
    this.#isRunning = true;
    try {
      return this.#checkAll(key);
    } finally {
      this.#isRunning = false;
      this.#queue.clear();
      this.#latest = undefined;
    }
  }

  /** Forgets what is in line. */
  clear(): void {
    this.#queue.clear();
  }

  #checkAll(first: unknown): number {
    let completed = 0;
    let idleChecks = 0;
    for (let key = first; key !== undefined; key = this.#queue.take()) {
      const completedNow =
        this.#metrics === undefined ? this.#checkKey(key) : this.#measureKey(key, this.#metrics);
      completed += completedNow;
      idleChecks = completedNow > 0 ? 0 : idleChecks + 1;
      if (idleChecks > MOST_IDLE_CHECKS) {
        this.#reportEndless();
        break;
      }
    }
    return completed;
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
    const message = `${MOST_IDLE_CHECKS} checks triggered one another and completed nothing`;
    this.#home.report(
      new EscapementError('ERR_CHECK_ENDLESS', message, { op: 'DelayedOperationPurgatory.checkAndComplete' }),
      this.#latest,
    );
  }
}
