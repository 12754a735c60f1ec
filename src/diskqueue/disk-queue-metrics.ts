import { COMMIT_BUCKETS } from '../log/commit-loop.ts';
import { counter, duration, gauges } from '../metrics/measure.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { CorruptionEvent, MessageLog } from './message-log.ts';

/** Metrics of a disk queue with a metrics provider. */
export class DiskQueueMetrics {
  readonly #puts: (messages: number) => void;
  readonly #damages: () => void;
  readonly #lost: (messages: number) => void;
  readonly #commits: (durationMs: number) => void;
  /** Counts an acknowledged message. */
  readonly acked: () => void;
  /** Removes the gauges, which would keep a closed queue in memory. */
  readonly remove: () => void;

  constructor(metrics: MetricsProvider, queue: string, sizes: () => Pick<MessageLog, 'depth' | 'bytes'>) {
    const labels = { queue };
    const count = (name: string, what: string): ((by?: number) => void) =>
      counter(metrics, name, what, labels);
    this.#puts = count('diskqueue_puts_total', 'Messages that were put.');
    this.acked = count('diskqueue_acks_total', 'Messages that were acknowledged.');
    this.#damages = count('diskqueue_damages_total', 'Damaged spans that were skipped.');
    this.#lost = count('diskqueue_lost_messages_total', 'Messages lost to damage.');
    const help = 'Duration of the write of a batch of messages, including its sync if there was one.';
    this.#commits = duration(metrics, 'diskqueue_commit_duration_seconds', help, COMMIT_BUCKETS, labels);
    this.remove = gauges(metrics, [
      ['diskqueue_depth', 'Messages that are not acknowledged.', () => sizes().depth, labels],
      ['diskqueue_bytes', 'Bytes of the messages that are not acknowledged.', () => sizes().bytes, labels],
    ]);
  }

  committed(messages: number, durationMs: number): void {
    this.#puts(messages);
    this.#commits(durationMs);
  }

  damaged({ firstSequence, lastSequence }: CorruptionEvent): void {
    this.#damages();
    if (firstSequence !== undefined && lastSequence !== undefined) {
      this.#lost(lastSequence - firstSequence + 1);
    }
  }
}
