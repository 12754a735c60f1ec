import { formatGoDuration } from '../go-text.ts';
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

async function listQueues(call: Call): Promise<object> {
  const infos = await ofEachQueue(call, (queue) => call.inspector.getQueueInfo(queue));
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

async function listQueueStats(call: Call): Promise<object> {
  const stats = await ofEachQueue(call, async (queue) => {
    const days = await call.inspector.history(queue, STATS_DAYS);
    return [queue, days.map(showDay)] as const;
  });
  return { stats: Object.fromEntries(stats) };
}

async function listGroups(call: Call): Promise<object> {
  const stats = showQueue(await call.inspector.getQueueInfo(call.queue));
  return { stats, groups: await listGroupSizes(call) };
}

/** The groups of a queue, as asynqmon shows them. */
export async function listGroupSizes({ inspector, queue }: Call): Promise<readonly object[]> {
  return (await inspector.groups(queue)).map(({ group, size }) => ({ group, size }));
}

/**
 * A queue that is removed meanwhile is left out, and so is one that cannot be read: neither takes the others with it, as
 * one bad id does in asynqmon: its server fails the whole request.
 */
async function ofEachQueue<R>(call: Call, read: (queue: string) => Promise<R>): Promise<readonly R[]> {
  const outcomes = await Promise.allSettled((await call.inspector.queues()).map(read));
  const shown = outcomes.filter((one) => one.status === 'fulfilled').map((one) => one.value);
  for (const one of outcomes) {
    if (one.status === 'fulfilled' || isQueueNotFound(one.reason)) continue;
    if (shown.length === 0) throw one.reason;
    call.report(one.reason);
  }
  return shown;
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
