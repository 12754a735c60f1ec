import type { Clock } from '../core/clock.ts';
import { guarded, measuredNow, observeDuration } from '../metrics/guarded.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { CorruptionEvent } from './message-log.ts';

/** What the gauges read. */
export interface DiskQueueSizes {
  readonly depth: number;
  readonly bytes: number;
}

/** Upper bounds in seconds, from a tenth of a millisecond to ten seconds. */
const SYNC_BUCKETS = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5, 1, 10];

/** What a queue on disk measures, if somebody wants to know. */
export class DiskQueueMetrics {
  readonly #clock: Clock;
  readonly #puts: { inc(by?: number): void };
  readonly #acks: { inc(by?: number): void };
  readonly #damages: { inc(by?: number): void };
  readonly #lost: { inc(by?: number): void };
  readonly #syncs: { observe(value: number): void };
  readonly #gauges: { remove(): void }[] = [];

  constructor(metrics: MetricsProvider, clock: Clock, queue: string, sizes: () => DiskQueueSizes) {
    const labels = { queue };
    this.#clock = clock;
    this.#puts = metrics.counter('diskqueue_puts_total', 'Messages that were put.', labels);
    this.#acks = metrics.counter('diskqueue_acks_total', 'Messages that were acknowledged.', labels);
    this.#damages = metrics.counter('diskqueue_damages_total', 'Damage that was stepped over.', labels);
    this.#lost = metrics.counter('diskqueue_lost_messages_total', 'Messages that damage has cost.', labels);
    this.#syncs = metrics.histogram(
      'diskqueue_commit_duration_seconds',
      'How long the write of a batch of messages took, with its sync if there was one.',
      SYNC_BUCKETS,
      labels,
    );
    try {
      this.#readSizes(metrics, labels, sizes);
    } catch (error) {
      this.remove(); // nobody else would: there is no queue to close
      throw error;
    }
  }

  now(): number {
    return measuredNow(this.#clock);
  }

  committed(messages: number, sinceMs: number): void {
    guarded(() => {
      this.#puts.inc(messages);
    });
    observeDuration(this.#syncs, this.now() - sinceMs);
  }

  acked(): void {
    guarded(() => {
      this.#acks.inc();
    });
  }

  damaged({ firstSequence, lastSequence }: CorruptionEvent): void {
    guarded(() => {
      this.#damages.inc();
      if (firstSequence !== undefined && lastSequence !== undefined) {
        this.#lost.inc(lastSequence - firstSequence + 1);
      }
    });
  }

  /** Takes the gauges back: a closed queue must not be held by its metrics. */
  remove(): void {
    for (const gauge of this.#gauges.splice(0)) {
      guarded(() => {
        gauge.remove();
      });
    }
  }

  #readSizes(metrics: MetricsProvider, labels: Record<string, string>, sizes: () => DiskQueueSizes): void {
    const gauge = (name: string, help: string, read: () => number): void => {
      this.#gauges.push(metrics.observableGauge(name, help, read, labels));
    };
    gauge('diskqueue_depth', 'Messages that are not acknowledged.', () => sizes().depth);
    gauge('diskqueue_bytes', 'Bytes of the messages that are not acknowledged.', () => sizes().bytes);
  }
}
