import type { Clock } from '../core/clock.ts';
import {
  counter,
  duration,
  gauge,
  labelled,
  measuredNow,
  metricGroup,
  removeGauges,
  type MetricGroup,
} from '../metrics/metric-group.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { CompletionReason } from './delayed-operation.ts';

/** Values of the gauges. */
export interface PurgatorySizes {
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
  readonly #group: MetricGroup;
  readonly #completed: ReadonlyMap<CompletionReason, () => void>;
  readonly #checks: (durationMs: number) => void;
  readonly #waits: (durationMs: number) => void;
  /** Counts an operation that was cancelled with its key. */
  readonly cancelled: () => void;
  /** Counts an operation that expired although its condition held. */
  readonly missedTrigger: () => void;

  constructor(metrics: MetricsProvider, clock: Clock, purgatory: string, sizes: PurgatorySizes) {
    const group = metricGroup(metrics, { purgatory });
    this.#clock = clock;
    this.#group = group;
    this.#completed = new Map(
      REASONS.map((reason) => [
        reason,
        counter(
          labelled(group, { reason }),
          'purgatory_completed_total',
          'Number of completed operations, by reason.',
        ),
      ]),
    );
    this.cancelled = counter(
      group,
      'purgatory_cancelled_total',
      'Number of operations that were cancelled with their key.',
    );
    this.missedTrigger = counter(
      group,
      'purgatory_missed_triggers_total',
      'Number of operations that expired although their condition held: a trigger is missing.',
    );
    this.#checks = duration(
      group,
      'purgatory_check_duration_seconds',
      'Duration of the check of one key.',
      CHECK_BUCKETS,
    );
    this.#waits = duration(
      group,
      'purgatory_wait_duration_seconds',
      'Time from the addition of an operation to its completion.',
      WAIT_BUCKETS,
    );
    gauge(
      group,
      'purgatory_size',
      'Number of watch entries: an operation counts once for each of its keys.',
      () => sizes.watched,
    );
    gauge(
      group,
      'purgatory_num_delayed_operations',
      'Number of operations that have a pending timeout.',
      () => sizes.numDelayed,
    );
    gauge(
      group,
      'purgatory_watched_keys',
      'Number of keys that operations are watched under.',
      () => sizes.watchedKeys,
    );
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

  /** Removes the gauges, which would keep a closed purgatory in memory. */
  remove(): void {
    removeGauges(this.#group);
  }
}
