import type { Clock } from '../core/clock.ts';
import { guarded, measuredNow, observeDuration } from '../metrics/guarded.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { CompletionReason } from './delayed-operation.ts';

/** What the gauges read. */
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

/** What a purgatory measures, if somebody wants to know. */
export class PurgatoryMetrics {
  readonly #clock: Clock;
  readonly #completed: ReadonlyMap<CompletionReason, { inc(by?: number): void }>;
  readonly #cancelled: { inc(by?: number): void };
  readonly #missed: { inc(by?: number): void };
  readonly #checks: { observe(value: number): void };
  readonly #waits: { observe(value: number): void };
  readonly #gauges: { remove(): void }[] = [];

  constructor(metrics: MetricsProvider, clock: Clock, purgatory: string, sizes: PurgatorySizes) {
    const labels = { purgatory };
    this.#clock = clock;
    this.#completed = new Map(
      REASONS.map((reason) => [
        reason,
        metrics.counter('purgatory_completed_total', 'Operations completed, by reason.', {
          ...labels,
          reason,
        }),
      ]),
    );
    this.#cancelled = metrics.counter(
      'purgatory_cancelled_total',
      'Operations taken out with their key.',
      labels,
    );
    this.#missed = metrics.counter(
      'purgatory_missed_triggers_total',
      'Operations that expired although their condition held: a trigger is missing.',
      labels,
    );
    this.#checks = metrics.histogram(
      'purgatory_check_duration_seconds',
      'How long the check of one key took.',
      CHECK_BUCKETS,
      labels,
    );
    this.#waits = metrics.histogram(
      'purgatory_wait_duration_seconds',
      'How long operations waited, from add to completion.',
      WAIT_BUCKETS,
      labels,
    );
    try {
      this.#readSizes(metrics, labels, sizes);
    } catch (error) {
      this.remove(); // nobody else would: there is no purgatory to close
      throw error;
    }
  }

  #readSizes(metrics: MetricsProvider, labels: Record<string, string>, sizes: PurgatorySizes): void {
    const gauge = (name: string, help: string, read: () => number): void => {
      this.#gauges.push(metrics.observableGauge(name, help, read, labels));
    };
    gauge(
      'purgatory_size',
      'Watch entries: an operation counts once for each of its keys.',
      () => sizes.watched,
    );
    gauge(
      'purgatory_num_delayed_operations',
      'Operations that wait for their timeout.',
      () => sizes.numDelayed,
    );
    gauge('purgatory_watched_keys', 'Keys that operations wait for.', () => sizes.watchedKeys);
  }

  now(): number {
    return measuredNow(this.#clock);
  }

  completed(reason: CompletionReason, sinceMs: number): void {
    guarded(() => {
      this.#completed.get(reason)?.inc();
    });
    observeDuration(this.#waits, this.now() - sinceMs);
  }

  checked(sinceMs: number): void {
    observeDuration(this.#checks, this.now() - sinceMs);
  }

  cancelled(): void {
    guarded(() => {
      this.#cancelled.inc();
    });
  }

  missedTrigger(): void {
    guarded(() => {
      this.#missed.inc();
    });
  }

  /** Takes the gauges back: a closed purgatory must not be held by its metrics. */
  remove(): void {
    for (const gauge of this.#gauges.splice(0)) {
      guarded(() => {
        gauge.remove();
      });
    }
  }
}
