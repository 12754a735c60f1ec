import { guarded } from '../metrics/guarded.ts';
import type { ResolvedSystemTimerOptions } from './system-timer-options.ts';

/**
 * What a timer counts. Nothing per task: a turn is counted as a whole, and the size is read when it is asked for.
 *
 * A provider is user code: it is called when the timer is in order, so that it may use it, and what it throws stops nothing.
 */
export interface TimerMetrics {
  woke(): void;
  ran(tasks: number): void;
  /** Takes the observable gauge back: a closed timer must not be held by its metrics. */
  remove(): void;
}

export function timerMetrics(options: ResolvedSystemTimerOptions, readSize: () => number): TimerMetrics {
  const { metrics, name } = options;
  const labels = { timer: name };
  const wakeups = metrics.counter('timer_wakeups_total', 'Times the clock woke the timer.', labels);
  const tasksRun = metrics.counter('timer_tasks_run_total', 'Tasks and callbacks that were run.', labels);
  // Last, because it holds the timer: nobody would take it back if a counter were refused.
  const size = metrics.observableGauge('timer_size', 'Tasks that wait in the timer.', readSize, labels);
  return {
    woke: () => {
      guarded(() => {
        wakeups.inc();
      });
    },
    ran: (tasks) => {
      guarded(() => {
        tasksRun.inc(tasks);
      });
    },
    remove: () => {
      guarded(() => {
        size.remove();
      });
    },
  };
}
