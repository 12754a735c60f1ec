import { counter, gauges } from '../metrics/measure.ts';
import type { MetricsProvider } from '../metrics/provider.ts';

/**
 * Metrics of a timer. Nothing is measured per task: a turn is counted as a whole, and the size is read when metrics are collected.
 * They are reported when the timer is consistent, so that a provider may use it.
 */
export interface TimerMetrics {
  /** Counts a wake-up. */
  readonly woke: () => void;
  /** Counts tasks that were run. */
  readonly ran: (tasks: number) => void;
  /** Removes the gauge, which would keep a closed timer in memory. */
  readonly remove: () => void;
}

export function timerMetrics(provider: MetricsProvider, timer: string, readSize: () => number): TimerMetrics {
  const labels = { timer };
  return {
    woke: counter(provider, 'timer_wakeups_total', 'Wake-ups.', labels),
    ran: counter(provider, 'timer_tasks_run_total', 'Tasks run.', labels),
    remove: gauges(provider, [['timer_size', 'Pending tasks.', readSize, labels]]),
  };
}
