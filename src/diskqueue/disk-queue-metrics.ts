import type { Clock } from '../core/clock.ts';
import {
  counter,
  duration,
  gauge,
  measuredNow,
  metricGroup,
  removeGauges,
  type MetricGroup,
} from '../metrics/metric-group.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { CorruptionEvent } from './message-log.ts';

/** Values of the gauges. */
export interface DiskQueueSizes {
  readonly depth: number;
  readonly bytes: number;
}

/** Upper bounds in seconds, from a tenth of a millisecond to ten seconds. */
const SYNC_BUCKETS = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5, 1, 10];

/** Metrics of a disk queue that has a metrics provider. */
export class DiskQueueMetrics {
  readonly #clock: Clock;
  readonly #group: MetricGroup;
  readonly #puts: (messages: number) => void;
  readonly #damages: () => void;
  readonly #lost: (messages: number) => void;
  readonly #commits: (durationMs: number) => void;
  /** Counts an acknowledged message. */
  readonly acked: () => void;

  constructor(metrics: MetricsProvider, clock: Clock, queue: string, sizes: () => DiskQueueSizes) {
    const group = metricGroup(metrics, { queue });
    this.#clock = clock;
    this.#group = group;
    this.#puts = counter(group, 'diskqueue_puts_total', 'Number of messages that were put.');
    this.acked = counter(group, 'diskqueue_acks_total', 'Number of messages that were acknowledged.');
    this.#damages = counter(group, 'diskqueue_damages_total', 'Number of damaged spans that were skipped.');
    this.#lost = counter(group, 'diskqueue_lost_messages_total', 'Number of messages lost to damage.');
    this.#commits = duration(
      group,
      'diskqueue_commit_duration_seconds',
      'Duration of the write of a batch of messages, including its sync if there was one.',
      SYNC_BUCKETS,
    );
    gauge(group, 'diskqueue_depth', 'Number of messages that are not acknowledged.', () => sizes().depth);
    gauge(group, 'diskqueue_bytes', 'Bytes of the messages that are not acknowledged.', () => sizes().bytes);
  }

  now(): number {
    return measuredNow(this.#clock);
  }

  committed(messages: number, sinceMs: number): void {
    this.#puts(messages);
    this.#commits(this.now() - sinceMs);
  }

  damaged({ firstSequence, lastSequence }: CorruptionEvent): void {
    this.#damages();
    if (firstSequence !== undefined && lastSequence !== undefined) {
      this.#lost(lastSequence - firstSequence + 1);
    }
  }

  /** Removes the gauges, which would keep a closed queue in memory. */
  remove(): void {
    removeGauges(this.#group);
  }
}
