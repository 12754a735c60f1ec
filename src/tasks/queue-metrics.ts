import type { ClockTimeout } from '../core/clock.ts';
import { EscapementError, outOfRange } from '../core/errors.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import {
  requireFiniteNumber,
  requireFunction,
  requireObject,
  requireOptions,
  type OptionNames,
} from '../core/validate.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import { requireMetrics } from '../metrics/require-metrics.ts';
import type { Broker } from './broker/broker.ts';
import { isUnavailable } from './broker/is-unavailable.ts';
import { requireBroker } from './broker/require-broker.ts';
import { QueueSeries } from './queue-series.ts';

/** Options of {@link taskQueueMetrics}. */
export interface TaskQueueMetricsOptions {
  /** Whose queues are measured. It is not closed. */
  readonly broker: Broker;
  /** Where the measurements go. */
  readonly metrics: MetricsProvider;
  /** How often the broker is asked, in milliseconds, 100 at least. @default 10_000 */
  readonly intervalMs?: number;
  /**
   * Told of what cannot be measured, and of which queue.
   *
   * @default an uncaught exception; nobody, if the broker is unavailable
   */
  readonly onError?: (error: unknown, queue: string | undefined) => void;
}

const OPTIONS: OptionNames<TaskQueueMetricsOptions> = {
  ...{ broker: true, metrics: true, intervalMs: true, onError: true },
};

/** Measures the queues of a broker, until it is closed. */
export interface TaskQueueMetrics {
  /** Asks the broker now; a scrape after that is up to date. Never rejects. */
  sample(): Promise<void>;
  /** Takes the gauges away; counters stay as they are. Idempotent. */
  close(): void;
}

const DEFAULT_INTERVAL_MS = 10_000;

/** More often is a load. */
const MIN_INTERVAL_MS = 100;

/**
 * Measures all queues of a broker: asynq's metrics, by their names and meanings, labelled with the queue.
 *
 * A broker cannot be read while somebody scrapes: so it is asked at once and then every `intervalMs`, and the gauges say
 * what it said last. A queue that it says nothing of has no gauges until it does again; the others have theirs.
 *
 * In a fleet one process is enough. Make one for a provider: two would count everything twice.
 *
 * @throws TypeError or RangeError - an option is wrong.
 *
 * @example
 * ```ts
 * const queueMetrics = taskQueueMetrics({ broker, metrics: prometheusMetrics({ registry }) });
 * ```
 */
export function taskQueueMetrics(options: TaskQueueMetricsOptions): TaskQueueMetrics {
  const sampler = new Sampler(options);
  void sampler.sample();
  return sampler;
}

class Sampler implements TaskQueueMetrics {
  readonly #broker: Broker;
  readonly #metrics: MetricsProvider;
  readonly #intervalMs: number;
  readonly #onError: TaskQueueMetricsOptions['onError'];
  readonly #series = new Map<string, QueueSeries>();
  #sampling: Promise<void> | undefined;
  #next: ClockTimeout | undefined;
  #isClosed = false;

  constructor(options: TaskQueueMetricsOptions) {
    requireOptions('taskQueueMetrics', options, OPTIONS);
    const { broker, metrics, intervalMs = DEFAULT_INTERVAL_MS, onError } = options;
    requireBroker('options.broker', broker);
    requireObject('options.metrics', metrics);
    requireMetrics('options.metrics', metrics);
    requireFiniteNumber('options.intervalMs', intervalMs);
    if (intervalMs < MIN_INTERVAL_MS) {
      throw outOfRange('options.intervalMs', `at least ${MIN_INTERVAL_MS} ms`, intervalMs);
    }
    if (onError !== undefined) requireFunction('options.onError', onError);
    this.#broker = broker;
    this.#metrics = metrics;
    this.#intervalMs = intervalMs;
    this.#onError = onError;
  }

  sample(): Promise<void> {
    this.#sampling ??= this.#sample();
    return this.#sampling;
  }

  close(): void {
    this.#isClosed = true;
    this.#next?.cancel();
    for (const queue of [...this.#series.keys()]) this.#drop(queue);
  }

  async #sample(): Promise<void> {
    this.#next?.cancel();
    try {
      await this.#sampleAll();
    } catch (error) {
      for (const queue of [...this.#series.keys()]) this.#hide(queue);
      this.#tell(error, undefined);
    }
    this.#sampling = undefined;
    if (this.#isClosed) return;
    this.#next = this.#broker.clock.setTimeout(() => void this.sample(), this.#intervalMs);
    this.#next.unref(); // that it is measured is no reason for a process to live
  }

  async #sampleAll(): Promise<void> {
    const queues = await this.#broker.queues();
    const gone = [...this.#series.keys()].filter((queue) => !queues.includes(queue));
    for (const queue of gone) this.#drop(queue);
    await Promise.all(queues.map((queue) => this.#sampleOne(queue)));
  }

  async #sampleOne(queue: string): Promise<void> {
    try {
      const stats = await this.#broker.queueStats(queue);
      if (this.#isClosed) return;
      const series = this.#series.get(queue) ?? new QueueSeries(this.#metrics, queue);
      this.#series.set(queue, series);
      series.show(stats);
    } catch (error) {
      if (codeOf(error) === 'ERR_QUEUE_NOT_FOUND') {
        this.#drop(queue);
        return;
      }
      this.#hide(queue);
      this.#tell(error, queue);
    }
  }

  #drop(queue: string): void {
    this.#hide(queue);
    this.#series.delete(queue);
  }

  #hide(queue: string): void {
    try {
      this.#series.get(queue)?.hide();
    } catch (error) {
      this.#tell(error, queue);
    }
  }

  #tell(error: unknown, queue: string | undefined): void {
    if (this.#isClosed) return;
    if (codeOf(error) === 'ERR_BROKER_CLOSED') {
      this.close();
      return;
    }
    try {
      if (this.#onError !== undefined) this.#onError(error, queue);
      else if (!isUnavailable(error)) throw error;
    } catch (uncaught) {
      reportUncaught(uncaught);
    }
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof EscapementError ? error.code : undefined;
}
