import type { ClockTimeout } from '../core/clock.ts';
import { CoalescedRun } from '../core/coalesced-run.ts';
import { hasCode } from '../core/errors.ts';
import { milliseconds, readOptions, type OptionTable, type Resolved } from '../core/options.ts';
import { guarded } from '../core/report-uncaught.ts';
import { SECOND_MS } from '../core/units.ts';
import { requireFunction } from '../core/validate.ts';
import { counter, gauges, type Gauge } from '../metrics/measure.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';
import { requireBroker } from './argument-checks.ts';
import { isUnavailable } from './broker/broker-errors.ts';
import type { Broker, LimitKind, QueueStats } from './broker/broker.ts';
import { TASK_STATES, type TaskState } from './task-state.ts';

/** Options of {@link taskQueueMetrics}. */
export interface TaskQueueMetricsOptions {
  /** Broker of the queues. It is not closed. */
  readonly broker: Broker;
  /** Receives the measurements. */
  readonly metrics: MetricsProvider;
  /** How often the queues are read from the broker, in milliseconds, at least 100. @default 10_000 */
  readonly intervalMs?: number | undefined;
  /**
   * Called when a queue cannot be measured, or when the queues cannot be listed.
   *
   * @default the error is an uncaught exception; it is ignored if the broker is unavailable
   */
  readonly onError?: ((error: unknown, queue: string | undefined) => void) | undefined;
}

/** Reading more often would be a load. */
const MIN_INTERVAL_MS = 100;

const OPTIONS = {
  broker: [requireBroker],
  metrics: [requireMetrics],
  intervalMs: [milliseconds(MIN_INTERVAL_MS), 10_000],
  onError: [requireFunction, undefined],
} satisfies OptionTable<TaskQueueMetricsOptions>;

/** Measures the queues of a broker until it is closed. */
export interface TaskQueueMetrics {
  /** Reads the queues now, so that the next scrape is up to date. Never rejects. */
  sample(): Promise<void>;
  /** Removes the gauges; counters stay as they are. Idempotent. */
  close(): void;
}

/**
 * Measures all queues of a broker: asynq's metrics, with their names and meanings, and what limits hold back; labelled with the
 * queue.
 *
 * A scrape cannot wait for a broker. So the queues are read at once and then every `intervalMs`, and the gauges have the values of
 * the last read. A queue that could not be read has no gauges until it can be read again; the others keep theirs.
 *
 * In a fleet one process is enough. Create one per provider: two would count everything twice.
 *
 * @throws TypeError or RangeError - an option is wrong.
 *
 * @example
 * ```ts
 * const queueMetrics = taskQueueMetrics({ broker, metrics: prometheusMetrics({ registry }) });
 * ```
 */
export function taskQueueMetrics(options: TaskQueueMetricsOptions): TaskQueueMetrics {
  const queueMetrics = new QueueMetrics(readOptions('taskQueueMetrics', options, OPTIONS));
  void queueMetrics.sample();
  return queueMetrics;
}

/** Reads the queues again and again. */
class QueueMetrics implements TaskQueueMetrics {
  readonly #options: Resolved<TaskQueueMetricsOptions, typeof OPTIONS>;
  readonly #series = new Map<string, QueueSeries>();
  readonly #runs = new CoalescedRun(() => this.#sample());
  #next: ClockTimeout | undefined;
  #isClosed = false;

  constructor(options: Resolved<TaskQueueMetricsOptions, typeof OPTIONS>) {
    this.#options = options;
  }

  async sample(): Promise<void> {
    if (!this.#isClosed) this.#runs.trigger();
    await this.#runs.running;
  }

  close(): void {
    this.#isClosed = true;
    this.#next?.cancel();
    for (const series of this.#series.values()) series.hide();
    this.#series.clear();
  }

  async #sample(): Promise<void> {
    const { broker, intervalMs } = this.#options;
    this.#next?.cancel();
    try {
      await this.#sampleAll();
    } catch (error) {
      for (const series of this.#series.values()) series.hide();
      this.#report(error, undefined);
    }
    if (this.#isClosed) return;
    this.#next = broker.clock.setTimeout(() => void this.sample(), intervalMs);
    this.#next.unref(); // measuring alone does not keep the process alive
  }

  async #sampleAll(): Promise<void> {
    const queues = new Set(await this.#options.broker.queues());
    for (const queue of this.#series.keys()) if (!queues.has(queue)) this.#drop(queue);
    await Promise.all(Array.from(queues, (queue) => this.#sampleOne(queue)));
  }

  async #sampleOne(queue: string): Promise<void> {
    try {
      const stats = await this.#options.broker.queueStats(queue);
      if (this.#isClosed) return;
      const report = (error: unknown): void => {
        this.#report(error, queue);
      };
      const series = this.#series.get(queue) ?? new QueueSeries(this.#options.metrics, queue, report);
      this.#series.set(queue, series);
      series.show(stats);
    } catch (error) {
      if (hasCode(error, 'ERR_QUEUE_NOT_FOUND')) {
        this.#drop(queue);
        return;
      }
      this.#series.get(queue)?.hide();
      this.#report(error, queue);
    }
  }

  #drop(queue: string): void {
    this.#series.get(queue)?.hide();
    this.#series.delete(queue);
  }

  #report(error: unknown, queue: string | undefined): void {
    const { onError } = this.#options;
    if (this.#isClosed) return;
    if (hasCode(error, 'ERR_BROKER_CLOSED')) {
      this.close();
      return;
    }
    guarded(() => {
      if (onError !== undefined) onError(error, queue);
      else if (!isUnavailable(error)) throw error;
    });
  }
}

type Read = (stats: QueueStats) => number;

const GAUGES: readonly (readonly [name: string, help: string, read: Read])[] = [
  ['asynq_queue_size', 'Tasks in the queue, in all states.', sizeOf],
  [
    'asynq_queue_latency_seconds',
    'How long the next pending task has waited.',
    ({ latencyMs }) => latencyMs / SECOND_MS,
  ],
  [
    'asynq_queue_memory_usage_approx_bytes',
    'Approximate memory that the queue takes at the broker.',
    ({ memoryBytes }) => memoryBytes,
  ],
  [
    'asynq_queue_paused_total',
    'Whether the queue is paused: 1 if it is, else 0.',
    ({ isPaused }) => (isPaused ? 1 : 0),
  ],
  [
    'escapement_tasks_oldest_runnable_seconds',
    'How long the pending task that was added first has waited, of those that could start now.',
    ({ runnableMs }) => runnableMs / SECOND_MS,
  ],
];

const LIMIT_KINDS: readonly LimitKind[] = ['concurrency', 'rate'];

/** The metrics of one queue. Only the gauges can be hidden: counters cannot be removed. */
class QueueSeries {
  readonly #metrics: MetricsProvider;
  readonly #labels: { readonly queue: string };
  readonly #onError: (error: unknown) => void;
  readonly #processed: (total: number) => void;
  readonly #failed: (total: number) => void;
  #stats: QueueStats | undefined;
  #removeGauges: (() => void) | undefined;

  constructor(metrics: MetricsProvider, queue: string, onError: (error: unknown) => void) {
    this.#metrics = metrics;
    this.#labels = { queue };
    this.#onError = onError;
    this.#processed = this.#follow(
      'asynq_tasks_processed_total',
      'Runs that have ended, including failed ones.',
    );
    this.#failed = this.#follow('asynq_tasks_failed_total', 'Runs that have failed.');
  }

  show(stats: QueueStats): void {
    this.#stats = stats;
    this.#processed(stats.processedTotal);
    this.#failed(stats.failedTotal);
    this.#removeGauges ??= gauges(this.#metrics, this.#gauges(), this.#onError);
  }

  hide(): void {
    const remove = this.#removeGauges;
    this.#stats = undefined;
    this.#removeGauges = undefined;
    remove?.();
  }

  #gauges(): Gauge[] {
    const labels = this.#labels;
    const help = 'Tasks in the queue, by state.';
    const stateGauge = (state: TaskState): Gauge => {
      const read = (): number => this.#read(({ counts }) => counts[state]);
      return ['asynq_tasks_enqueued_total', help, read, { ...labels, state }];
    };
    const heldGauge = (reason: LimitKind): Gauge => {
      const read = (): number => this.#read(({ held }) => held[reason]);
      return ['escapement_tasks_held', 'Pending tasks that a limit holds back.', read, { ...labels, reason }];
    };
    return [
      ...GAUGES.map(([name, text, read]): Gauge => [name, text, () => this.#read(read), labels]),
      ...TASK_STATES.map(stateGauge),
      ...LIMIT_KINDS.map(heldGauge),
    ];
  }

  #read(read: Read): number {
    return this.#stats === undefined ? NaN : read(this.#stats);
  }

  /** Makes a counter follow a total. The total of a queue that was deleted and created again starts at 0. */
  #follow(name: string, help: string): (total: number) => void {
    const add = counter(this.#metrics, name, help, this.#labels, this.#onError);
    let last = 0;
    return (total) => {
      add(total < last ? total : total - last);
      last = total;
    };
  }
}

function sizeOf({ counts }: QueueStats): number {
  return TASK_STATES.reduce((sum, state) => sum + counts[state], 0);
}
