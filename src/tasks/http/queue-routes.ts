import { formatGoDuration } from '../go-duration.ts';
import type { DailyStats, QueueInfo } from '../inspector-info.ts';
import type { Action, Call } from './api.ts';
import type { Route } from './route-table.ts';

/** asynqmon's. */
const HISTORY_DAYS = 10;
const STATS_DAYS = 90;

/** Operations on queues. */
export const queueRoutes: readonly Route<Action>[] = [
  { method: 'GET', pattern: '/queues', action: listQueues },
  { method: 'GET', pattern: '/queues/{queue}', action: getQueue },
  { method: 'DELETE', pattern: '/queues/{queue}', action: deleteQueue },
  { method: 'POST', pattern: '/queues/{queue}:pause', action: pauseQueue },
  { method: 'POST', pattern: '/queues/{queue}:resume', action: resumeQueue },
  { method: 'GET', pattern: '/queue_stats', action: listQueueStats },
  { method: 'GET', pattern: '/queues/{queue}/groups', action: listGroups },
];

async function listQueues({ inspector }: Call): Promise<object> {
  const infos = await ofEachQueue(await inspector.queues(), (queue) => inspector.getQueueInfo(queue));
  return { queues: infos.map(showQueue) };
}

async function getQueue({ inspector, queue }: Call): Promise<object> {
  const current = showQueue(await inspector.getQueueInfo(queue));
  return { current, history: (await inspector.history(queue, HISTORY_DAYS)).map(showDay) };
}

async function deleteQueue({ inspector, queue }: Call): Promise<void> {
  await inspector.deleteQueue(queue);
}

async function pauseQueue({ inspector, queue }: Call): Promise<void> {
  await inspector.getQueueInfo(queue); // only one that is there
  await inspector.pauseQueue(queue);
}

async function resumeQueue({ inspector, queue }: Call): Promise<void> {
  await inspector.getQueueInfo(queue);
  await inspector.unpauseQueue(queue);
}

async function listQueueStats({ inspector }: Call): Promise<object> {
  const stats = await ofEachQueue(await inspector.queues(), async (queue) => {
    const days = await inspector.history(queue, STATS_DAYS);
    return [queue, days.map(showDay)] as const;
  });
  return { stats: Object.fromEntries(stats) };
}

async function listGroups({ inspector, queue }: Call): Promise<object> {
  const stats = showQueue(await inspector.getQueueInfo(queue));
  const groups = await inspector.groups(queue);
  return { stats, groups: groups.map(({ group, size }) => ({ group, size })) };
}

/** A queue that is removed meanwhile is left out: it must not take the others with it. */
async function ofEachQueue<R>(
  queues: readonly string[],
  read: (queue: string) => Promise<R>,
): Promise<readonly R[]> {
  const outcomes = await Promise.allSettled(queues.map(read));
  const failure = outcomes.find((one) => one.status === 'rejected' && !isQueueNotFound(one.reason));
  if (failure?.status === 'rejected') throw failure.reason;
  return outcomes.filter((one) => one.status === 'fulfilled').map((one) => one.value);
}

function isQueueNotFound(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'ERR_QUEUE_NOT_FOUND';
}

/** A queue, as asynqmon says it. */
export function showQueue(info: QueueInfo): object {
  return {
    queue: info.queue,
    memory_usage_bytes: info.memoryUsageBytes,
    size: info.size,
    groups: info.groups,
    latency_msec: Math.round(info.latencyMs),
    display_latency: formatGoDuration(Math.round(info.latencyMs / 10) * 10),
    active: info.active,
    pending: info.pending,
    aggregating: info.aggregating,
    scheduled: info.scheduled,
    retry: info.retry,
    archived: info.archived,
    completed: info.completed,
    processed: info.processed,
    succeeded: info.processed - info.failed,
    failed: info.failed,
    paused: info.paused,
    timestamp: info.timestamp.toISOString(),
  };
}

function showDay({ queue, processed, failed, date }: DailyStats): object {
  const day = date.toISOString().slice(0, 'yyyy-mm-dd'.length);
  return { queue, processed, succeeded: processed - failed, failed, date: day };
}
