import { guarded, observeDuration } from '../../metrics/guarded.ts';
import type { MetricsProvider } from '../../metrics/provider.ts';
import type { TaskMessage } from '../task-message.ts';
import type { RunTable } from './run-table.ts';

/** In seconds: from a quick query to asynq's longest run, by default, of half an hour. */
const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800];

type Histogram = ReturnType<MetricsProvider['histogram']>;

/** What a server measures of its runs, if somebody wants to know. */
export class ServerMetrics {
  readonly #metrics: MetricsProvider;
  /** By queue, type and outcome: made when there is the first of a kind. */
  readonly #durations = new Map<string, Map<string, Map<string, Histogram>>>();
  readonly #gauges: { remove(): void }[] = [];

  constructor(metrics: MetricsProvider, queues: readonly string[], runs: RunTable) {
    this.#metrics = metrics;
    try {
      for (const queue of queues) this.#gauges.push(inProgress(metrics, queue, runs));
    } catch (error) {
      this.remove(); // nobody else would: there is no server to shut down
      throw error;
    }
  }

  over({ queue, type }: TaskMessage, outcome: string, durationMs: number): void {
    guarded(() => {
      observeDuration(this.#histogram(queue, type, outcome), durationMs);
    });
  }

  /** Takes the gauges back: a server that has ended must not be held by its metrics. */
  remove(): void {
    for (const gauge of this.#gauges.splice(0)) {
      guarded(() => {
        gauge.remove();
      });
    }
  }

  #histogram(queue: string, type: string, outcome: string): Histogram {
    const byType = childOf(this.#durations, queue, () => new Map<string, Map<string, Histogram>>());
    const byOutcome = childOf(byType, type, () => new Map<string, Histogram>());
    return childOf(byOutcome, outcome, () =>
      this.#metrics.histogram(
        'escapement_task_duration_seconds',
        'How long the runs of tasks took, by what became of them.',
        BUCKETS,
        { queue, type, outcome },
      ),
    );
  }
}

function inProgress(metrics: MetricsProvider, queue: string, runs: RunTable): { remove(): void } {
  return metrics.observableGauge(
    'escapement_tasks_in_progress',
    'Tasks that are being processed by the servers of this process.',
    () => runs.list().filter(({ leased }) => leased.message.queue === queue).length,
    { queue },
  );
}

function childOf<V>(parent: Map<string, V>, key: string, make: () => V): V {
  let child = parent.get(key);
  if (child === undefined) {
    child = make();
    parent.set(key, child);
  }
  return child;
}
