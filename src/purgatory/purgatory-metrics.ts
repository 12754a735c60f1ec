import type { Clock } from '../core/clock.ts';
import { counter, duration, gauges, measuredNow, type Gauge } from '../metrics/measure.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { CompletionReason } from './delayed-operation.ts';

/** Values of the gauges. */
interface PurgatorySizes {
  readonly watched: number;
  readonly numDelayed: number;
  readonly watchedKeys: number;
}

const REASONS: readonly CompletionReason[] = ['tried', 'forced', 'expired', 'closed'];
/** Upper bounds in seconds, from a microsecond to a second. */
const CHECK_BUCKETS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1];
/** Upper bounds in seconds, from a millisecond to five minutes. */
const WAIT_BUCKETS = [0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300];

/** Metrics of a purgatory that has a metrics provider. */
export class PurgatoryMetrics {
  readonly #clock: Clock;
  readonly #completed: ReadonlyMap<CompletionReason, () => void>;
  readonly #checks: (durationMs: number) => void;
  readonly #waits: (durationMs: number) => void;
  /** Counts an operation that was cancelled. */
  readonly cancelled: () => void;
  /** Counts an operation that expired although its condition held. */
  readonly missedTrigger: () => void;
  /** Removes the gauges, which would keep a closed purgatory in memory. */
  readonly remove: () => void;

  constructor(metrics: MetricsProvider, clock: Clock, purgatory: string, sizes: PurgatorySizes) {
    const labels = { purgatory };
    this.#clock = clock;
    this.#completed = new Map(
      REASONS.map((reason) => {
        const help = 'Completed operations, by reason.';
        return [reason, counter(metrics, 'purgatory_completed_total', help, { ...labels, reason })];
      }),
    );
    this.cancelled = counter(metrics, 'purgatory_cancelled_total', 'Operations that were cancelled.', labels);
    this.missedTrigger = counter(
      metrics,
      'purgatory_missed_triggers_total',
      'Operations that expired although their condition held: a trigger is missing.',
      labels,
    );
    this.#checks = duration(
      metrics,
      'purgatory_check_duration_seconds',
      'Duration of the check of one key.',
      CHECK_BUCKETS,
      labels,
    );
    this.#waits = duration(
      metrics,
      'purgatory_wait_duration_seconds',
      'Time from the addition of an operation to its completion.',
      WAIT_BUCKETS,
      labels,
    );
    const gauge = (name: string, help: string, read: () => number): Gauge => [name, help, read, labels];
    this.remove = gauges(metrics, [
      gauge(
        'purgatory_size',
        'Watch entries: an operation counts once for each of its keys.',
        () => sizes.watched,
      ),
      gauge(
        'purgatory_num_delayed_operations',
        'Operations that have a pending timeout.',
        () => sizes.numDelayed,
      ),
      gauge('purgatory_watched_keys', 'Keys that operations are watched under.', () => sizes.watchedKeys),
    ]);
  }

  now(): number {
    return measuredNow(this.#clock);
  }

  completed(reason: CompletionReason, sinceMs: number): void {
    this.#completed.get(reason)?.();
    this.#waits(this.now() - sinceMs);
  }

  checked(sinceMs: number): void {
    this.#checks(this.now() - sinceMs);
  }
}
