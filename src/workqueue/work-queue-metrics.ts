import type { Clock } from '../core/clock.ts';
import { SECOND_MS } from '../core/units.ts';
import { counter, duration, gauges, measuredNow, type Gauge } from '../metrics/measure.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { ItemEntry } from './item-table.ts';

/** The parts of the depth. */
interface QueueSizes {
  readonly ready: { readonly size: number };
  readonly heldAgain: number;
}

/** Kubernetes' buckets, in seconds: ten, from 10 ns to 10 s, by factors of ten. */
const BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10];

/**
 * Metrics of a work queue that has a metrics provider: those of Kubernetes, with their names and meanings. The gauges are computed
 * when they are read, where client-go has a ticker of 500 ms.
 */
export class WorkQueueMetrics {
  readonly #clock: Clock;
  readonly #adds: () => void;
  readonly #latency: (durationMs: number) => void;
  readonly #work: (durationMs: number) => void;
  /** Counts an add with a delay or a rate limit. */
  readonly retried: () => void;
  /** When each entry was added, for the first time if it was added more than once. */
  readonly #addedAtMs = new Map<ItemEntry<unknown>, number>();
  /** When each entry was taken: the first one has been held longest. */
  readonly #heldSinceMs = new Map<ItemEntry<unknown>, number>();
  /** Removes the gauges, which would keep a closed queue in memory. */
  readonly remove: () => void;

  constructor(metrics: MetricsProvider, clock: Clock, name: string, sizes: () => QueueSizes) {
    const labels = { name };
    this.#clock = clock;
    this.#adds = counter(metrics, 'workqueue_adds_total', 'Accepted adds.', labels);
    this.retried = counter(metrics, 'workqueue_retries_total', 'Adds with a delay or a rate limit.', labels);
    const waited = 'Time that items waited before they were handed out.';
    this.#latency = duration(metrics, 'workqueue_queue_duration_seconds', waited, BUCKETS, labels);
    const worked = 'Duration of the processing of an item.';
    this.#work = duration(metrics, 'workqueue_work_duration_seconds', worked, BUCKETS, labels);
    const gauge = (metric: string, help: string, read: () => number): Gauge => [metric, help, read, labels];
    this.remove = gauges(metrics, [
      gauge(
        'workqueue_depth',
        'Items to be processed, including those added again during processing.',
        () => {
          const { ready, heldAgain } = sizes();
          return ready.size + heldAgain;
        },
      ),
      gauge(
        'workqueue_unfinished_work_seconds',
        'Total time that items have been in processing: its slope is the number of stuck workers.',
        () => this.#unfinishedS(),
      ),
      gauge(
        'workqueue_longest_running_processor_seconds',
        'Longest time that an item has been in processing.',
        () => this.#longestS(),
      ),
    ]);
  }

  added(entry: ItemEntry<unknown>): void {
    this.#addedAtMs.set(entry, measuredNow(this.#clock));
    this.#adds();
  }

  taken(entry: ItemEntry<unknown>): void {
    const nowMs = measuredNow(this.#clock);
    const addedAtMs = this.#addedAtMs.get(entry) as number;
    this.#addedAtMs.delete(entry);
    this.#heldSinceMs.set(entry, nowMs);
    this.#latency(nowMs - addedAtMs);
  }

  finished(entry: ItemEntry<unknown>): void {
    const nowMs = measuredNow(this.#clock);
    const sinceMs = this.#heldSinceMs.get(entry) as number;
    this.#heldSinceMs.delete(entry);
    this.#work(nowMs - sinceMs);
  }

  /** Called for an item that was not processed: it waits again, from now on unless it was added again meanwhile. */
  putBack(entry: ItemEntry<unknown>): void {
    this.#heldSinceMs.delete(entry);
    if (!this.#addedAtMs.has(entry)) this.#addedAtMs.set(entry, measuredNow(this.#clock));
  }

  #unfinishedS(): number {
    const nowMs = measuredNow(this.#clock);
    let sumMs = 0;
    for (const sinceMs of this.#heldSinceMs.values()) sumMs += nowMs - sinceMs;
    return sumMs / SECOND_MS;
  }

  #longestS(): number {
    const [sinceMs] = this.#heldSinceMs.values();
    return sinceMs === undefined ? 0 : (measuredNow(this.#clock) - sinceMs) / SECOND_MS;
  }
}
