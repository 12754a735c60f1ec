import type { Clock } from '../core/clock.ts';
import { guarded, measuredNow, observeDuration } from '../metrics/guarded.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import type { ItemEntry } from './item-entry.ts';

/** What the depth is made of. */
export interface QueueSizes {
  readonly ready: { readonly size: number };
  readonly heldAgain: number;
}

/** Kubernetes' buckets, in seconds: ten, from 10 ns to 10 s, by factors of ten. */
const BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10];
const MS_PER_S = 1_000;

/**
 * What a queue measures, if somebody wants to know: Kubernetes' metrics, by their names and meanings. The gauges are
 * worked out when they are read, where client-go has a ticker of 500 ms.
 */
export class WorkQueueMetrics {
  readonly #clock: Clock;
  readonly #adds: { inc(by?: number): void };
  readonly #retries: { inc(by?: number): void };
  readonly #latency: { observe(value: number): void };
  readonly #work: { observe(value: number): void };
  readonly #gauges: { remove(): void }[] = [];
  /** When each entry was added; the first time, if it was more than once. */
  readonly #addedAtMs = new Map<ItemEntry<unknown>, number>();
  /** When each entry was handed out: the first one is held longest. */
  readonly #heldSinceMs = new Map<ItemEntry<unknown>, number>();

  constructor(metrics: MetricsProvider, clock: Clock, name: string, sizes: () => QueueSizes) {
    const labels = { name };
    this.#clock = clock;
    this.#adds = metrics.counter('workqueue_adds_total', 'Adds that the queue has accepted.', labels);
    this.#retries = metrics.counter('workqueue_retries_total', 'Adds with a delay or a rate limit.', labels);
    this.#latency = metrics.histogram(
      'workqueue_queue_duration_seconds',
      'How long items waited in the queue before they were handed out.',
      BUCKETS,
      labels,
    );
    this.#work = metrics.histogram(
      'workqueue_work_duration_seconds',
      'How long the processing of an item took.',
      BUCKETS,
      labels,
    );
    try {
      this.#readGauges(metrics, labels, sizes);
    } catch (error) {
      this.remove(); // nobody else would: there is no queue to shut down
      throw error;
    }
  }

  #readGauges(metrics: MetricsProvider, labels: Record<string, string>, sizes: () => QueueSizes): void {
    const gauge = (name: string, help: string, read: () => number): void => {
      this.#gauges.push(metrics.observableGauge(name, help, read, labels));
    };
    gauge(
      'workqueue_depth',
      'Items that wait to be processed, those added again while held included.',
      () => {
        const { ready, heldAgain } = sizes();
        return ready.size + heldAgain;
      },
    );
    gauge(
      'workqueue_unfinished_work_seconds',
      'How long the items that are held have been, summed up: its slope is the number of workers that are stuck.',
      () => this.#unfinishedS(),
    );
    gauge(
      'workqueue_longest_running_processor_seconds',
      'How long the item that is held longest has been.',
      () => this.#longestS(),
    );
  }

  added(entry: ItemEntry<unknown>): void {
    this.#addedAtMs.set(entry, measuredNow(this.#clock));
    guarded(() => {
      this.#adds.inc();
    });
  }

  retried(): void {
    guarded(() => {
      this.#retries.inc();
    });
  }

  handedOut(entry: ItemEntry<unknown>): void {
    const nowMs = measuredNow(this.#clock);
    const addedAtMs = this.#addedAtMs.get(entry) ?? nowMs;
    this.#addedAtMs.delete(entry);
    this.#heldSinceMs.set(entry, nowMs);
    observeDuration(this.#latency, nowMs - addedAtMs);
  }

  finished(entry: ItemEntry<unknown>): void {
    const nowMs = measuredNow(this.#clock);
    const sinceMs = this.#heldSinceMs.get(entry) ?? nowMs;
    this.#heldSinceMs.delete(entry);
    observeDuration(this.#work, nowMs - sinceMs);
  }

  /** It was not worked on: it waits again, as of now unless it was added again meanwhile. */
  putBack(entry: ItemEntry<unknown>): void {
    this.#heldSinceMs.delete(entry);
    if (!this.#addedAtMs.has(entry)) this.#addedAtMs.set(entry, measuredNow(this.#clock));
  }

  /** Takes the gauges back: a queue that has ended must not be held by its metrics. */
  remove(): void {
    for (const gauge of this.#gauges.splice(0)) {
      guarded(() => {
        gauge.remove();
      });
    }
  }

  #unfinishedS(): number {
    const nowMs = measuredNow(this.#clock);
    let sumMs = 0;
    for (const sinceMs of this.#heldSinceMs.values()) sumMs += nowMs - sinceMs;
    return sumMs / MS_PER_S;
  }

  #longestS(): number {
    const [sinceMs] = this.#heldSinceMs.values();
    return sinceMs === undefined ? 0 : (measuredNow(this.#clock) - sinceMs) / MS_PER_S;
  }
}
