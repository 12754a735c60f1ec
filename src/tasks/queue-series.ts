import type { MetricsProvider } from '../metrics/provider.ts';
import type { QueueStats } from './broker/broker.ts';
import { TASK_STATES } from './task-state.ts';

const MS_PER_S = 1_000;

type Counter = ReturnType<MetricsProvider['counter']>;
type Gauge = ReturnType<MetricsProvider['observableGauge']>;
type Read = (stats: QueueStats) => number;

const HELP_ENQUEUED = 'Tasks of the queue in that state.';
const HELP_PROCESSED = 'Runs of tasks that are over, with those that failed.';
const HELP_FAILED = 'Runs of tasks that failed.';

/** Each with its help. */
const GAUGES: readonly (readonly [name: string, help: string, read: Read])[] = [
  ['asynq_queue_size', 'Tasks of the queue in all states.', sizeOf],
  [
    'asynq_queue_latency_seconds',
    'How long the next pending task has waited.',
    ({ latencyMs }) => latencyMs / MS_PER_S,
  ],
  [
    'asynq_queue_memory_usage_approx_bytes',
    'About how much the queue takes where it is kept.',
    ({ memoryBytes }) => memoryBytes,
  ],
  ['asynq_queue_paused_total', 'Whether the queue is paused: 1, or 0.', ({ isPaused }) => (isPaused ? 1 : 0)],
];

/** What is measured of one queue. */
export class QueueSeries {
  readonly #metrics: MetricsProvider;
  readonly #queue: string;
  readonly #processed: Total;
  readonly #failed: Total;
  #gauges: Gauge[] = [];
  #stats: QueueStats | undefined;

  constructor(metrics: MetricsProvider, queue: string) {
    this.#metrics = metrics;
    this.#queue = queue;
    this.#processed = new Total(metrics.counter('asynq_tasks_processed_total', HELP_PROCESSED, { queue }));
    this.#failed = new Total(metrics.counter('asynq_tasks_failed_total', HELP_FAILED, { queue }));
  }

  /** The gauges say that from now on. */
  show(stats: QueueStats): void {
    this.#stats = stats;
    this.#processed.set(stats.processedTotal);
    this.#failed.set(stats.failedTotal);
    if (this.#gauges.length === 0) this.#addGauges();
  }

  /** The gauges are gone; counters cannot go. */
  hide(): void {
    this.#stats = undefined;
    const gauges = this.#gauges;
    this.#gauges = [];
    for (const gauge of gauges) gauge.remove();
  }

  #addGauges(): void {
    for (const [name, help, read] of GAUGES) this.#add(name, help, read, { queue: this.#queue });
    for (const state of TASK_STATES) {
      const labels = { queue: this.#queue, state };
      this.#add('asynq_tasks_enqueued_total', HELP_ENQUEUED, ({ counts }) => counts[state], labels);
    }
  }

  #add(name: string, help: string, read: Read, labels: Record<string, string>): void {
    const readNow = (): number => (this.#stats === undefined ? NaN : read(this.#stats));
    this.#gauges.push(this.#metrics.observableGauge(name, help, readNow, labels));
  }
}

/** A counter that follows a total; of a queue that was made again, the total begins again. */
class Total {
  readonly #counter: Counter;
  #last = 0;

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  set(total: number): void {
    const more = total < this.#last ? total : total - this.#last;
    this.#last = total;
    if (more > 0) this.#counter.inc(more);
  }
}

function sizeOf({ counts }: QueueStats): number {
  return TASK_STATES.reduce((sum, state) => sum + counts[state], 0);
}
