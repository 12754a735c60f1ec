import type { DailyStats } from '../../../tasks/inspector-info.ts';
import { TASK_STATES } from '../../../tasks/task-state.ts';
import { formatBytes, formatCount, printable } from '../../terminal/text.ts';
import type { QueueView } from '../target/tasks-target.ts';
import type { Detail } from './show-task.ts';
import { showDuration } from './show-time.ts';

/** The table of all queues, as rows; the first one is the head. */
export function queueRows(queues: readonly QueueView[]): readonly string[][] {
  return [
    ['queue', 'state', 'size', 'latency', 'processed', 'failed', 'error rate', 'memory'],
    ...queues.map((view) => [
      printable(view.queue),
      showPaused(view),
      formatCount(view.size),
      showDuration(view.latencyMs),
      formatCount(view.processed),
      formatCount(view.failed),
      showErrorRate(view),
      formatBytes(view.memoryUsageBytes),
    ]),
  ];
}

/** Which of its columns are numbers. */
export const QUEUE_ALIGNS = ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'right'] as const;

/** All that is known of a queue. */
export function queueDetails(view: QueueView): readonly Detail[] {
  const { processedTotal, failedTotal } = view;
  const totals = processedTotal === undefined ? [] : [`; ever ${formatCount(processedTotal)}`];
  const failures = failedTotal === undefined ? [] : [`; ever ${formatCount(failedTotal)}`];
  return [
    ['queue', printable(view.queue)],
    ['state', showPaused(view)],
    ['size', formatCount(view.size)],
    ...TASK_STATES.map((state): Detail => [state, formatCount(view[state])]),
    ['groups', formatCount(view.groups)],
    ['latency', showDuration(view.latencyMs)],
    ['memory', `about ${formatBytes(view.memoryUsageBytes)}`],
    ['processed', `today ${formatCount(view.processed)}${totals.join('')}`],
    ['failed', `today ${formatCount(view.failed)}${failures.join('')}`],
    ['error rate', showErrorRate(view)],
  ];
}

export function showErrorRate({ processed, failed }: Pick<DailyStats, 'processed' | 'failed'>): string {
  return processed === 0 ? '-' : `${((failed / processed) * 100).toFixed(2)} %`;
}

function showPaused({ paused }: QueueView): string {
  return paused ? 'paused' : 'run';
}
