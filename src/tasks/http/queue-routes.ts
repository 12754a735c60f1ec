import {
  dayToJson,
  entryToJson,
  eventToJson,
  groupToJson,
  queueToJson,
  serverToJson,
} from './asynqmon-json.ts';
import type { Action, Call } from './call.ts';
import type { Route } from './route-table.ts';

/** asynqmon's. */
const HISTORY_DAYS = 10;
const STATS_DAYS = 90;

export const queueRoutes: readonly Route<Action>[] = [
  { method: 'GET', pattern: '/queues', action: listQueues },
  { method: 'GET', pattern: '/queues/{queue}', action: getQueue },
  {
    method: 'DELETE',
    pattern: '/queues/{queue}',
    action: ({ inspector, queue }) => inspector.deleteQueue(queue),
  },
  {
    method: 'POST',
    pattern: '/queues/{queue}:pause',
    action: ({ inspector, queue }) => inspector.pauseQueue(queue),
  },
  {
    method: 'POST',
    pattern: '/queues/{queue}:resume',
    action: ({ inspector, queue }) => inspector.unpauseQueue(queue),
  },
  { method: 'GET', pattern: '/queue_stats', action: listQueueStats },
  { method: 'GET', pattern: '/queues/{queue}/groups', action: listGroups },
  { method: 'GET', pattern: '/servers', action: listServers },
  { method: 'GET', pattern: '/scheduler_entries', action: listEntries },
  { method: 'GET', pattern: '/scheduler_entries/{entry}/enqueue_events', action: listEvents },
];

async function listQueues(call: Call): Promise<object> {
  return {
    queues: await ofEachQueue(call, async (queue) => queueToJson(await call.inspector.getQueueInfo(queue))),
  };
}

async function getQueue({ inspector, queue }: Call): Promise<object> {
  const current = queueToJson(await inspector.getQueueInfo(queue));
  return { current, history: (await inspector.history(queue, HISTORY_DAYS)).map(dayToJson) };
}

async function listQueueStats(call: Call): Promise<object> {
  const stats = await ofEachQueue(call, async (queue) => {
    const days = await call.inspector.history(queue, STATS_DAYS);
    return [queue, days.map(dayToJson)] as const;
  });
  return { stats: Object.fromEntries(stats) };
}

async function listGroups({ inspector, queue }: Call): Promise<object> {
  const stats = queueToJson(await inspector.getQueueInfo(queue));
  return { stats, groups: (await inspector.groups(queue)).map(groupToJson) };
}

async function listServers(call: Call): Promise<object> {
  return { servers: (await call.inspector.servers()).map((server) => serverToJson(server, call)) };
}

async function listEntries(call: Call): Promise<object> {
  return { entries: (await call.inspector.schedulerEntries()).map((entry) => entryToJson(entry, call)) };
}

async function listEvents(call: Call): Promise<object> {
  const events = await call.inspector.listSchedulerEnqueueEvents(call.parameter('entry'), call.page);
  return { events: events.map(eventToJson) };
}

/**
 * Reads all queues. A queue that is removed meanwhile is left out, and so is one that cannot be read, for which asynqmon's server
 * fails the whole request.
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
