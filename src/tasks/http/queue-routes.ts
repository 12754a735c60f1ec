import { hasCode } from '../../core/errors.ts';
import { HISTORY_DAYS } from '../broker/broker-settings.ts';
import type { QueueLimits } from '../broker/broker.ts';
import {
  dayToJson,
  entryToJson,
  eventToJson,
  keyToJson,
  queueToJson,
  serverToJson,
  SHORT_HISTORY_DAYS,
  type AsynqmonQueue,
} from './asynqmon-json.ts';
import type { Action, Call } from './call.ts';
import type { Route } from './route-table.ts';

export const queueRoutes: readonly Route<Action>[] = [
  ['GET', '/queues', listQueues],
  ['GET', '/queues/{queue}', getQueue],
  ['DELETE', '/queues/{queue}', ({ inspector, queue }) => inspector.deleteQueue(queue)],
  ['POST', '/queues/{queue}:pause', ({ inspector, queue }) => inspector.pauseQueue(queue)],
  ['POST', '/queues/{queue}:resume', ({ inspector, queue }) => inspector.unpauseQueue(queue)],
  ['GET', '/queues/{queue}/limits', getLimits],
  ['POST', '/queues/{queue}/limits', setLimits],
  ['DELETE', '/queues/{queue}/limits', ({ inspector, queue }) => inspector.setLimits(queue, undefined)],
  ['GET', '/queues/{queue}/keys', listKeys],
  ['GET', '/queue_stats', listQueueStats],
  ['GET', '/queues/{queue}/groups', listGroups],
  ['GET', '/servers', listServers],
  ['GET', '/scheduler_entries', listEntries],
  ['GET', '/scheduler_entries/{entry}/enqueue_events', listEvents],
];

async function listQueues(call: Call): Promise<object> {
  return { queues: await ofEachQueue(call, (queue) => readQueue(call, queue)) };
}

async function getQueue(call: Call): Promise<object> {
  const { inspector, queue } = call;
  const current = await readQueue(call, queue);
  return { current, history: (await inspector.history(queue, SHORT_HISTORY_DAYS)).map(dayToJson) };
}

/** Returns a queue with its limits, null if it has none. */
async function readQueue(
  { inspector }: Call,
  queue: string,
): Promise<AsynqmonQueue & { readonly limits: QueueLimits | null }> {
  const [info, limits] = await Promise.all([inspector.getQueueInfo(queue), inspector.limits(queue)]);
  return { ...queueToJson(info), limits: limits ?? null };
}

async function getLimits({ inspector, queue }: Call): Promise<object> {
  const stats = queueToJson(await inspector.getQueueInfo(queue));
  return { stats, limits: (await inspector.limits(queue)) ?? null };
}

/** The body is a `QueueLimits`. */
async function setLimits(call: Call): Promise<void> {
  const limits = await call.body('concurrency', 'rate', 'perKey');
  await call.inspector.setLimits(call.queue, limits as QueueLimits);
}

async function listKeys({ inspector, queue, page }: Call): Promise<object> {
  const stats = queueToJson(await inspector.getQueueInfo(queue));
  return { stats, keys: (await inspector.keys(queue, page)).map(keyToJson) };
}

async function listQueueStats(call: Call): Promise<object> {
  const stats = await ofEachQueue(call, async (queue) => {
    const days = await call.inspector.history(queue, HISTORY_DAYS);
    return [queue, days.map(dayToJson)] as const;
  });
  return { stats: Object.fromEntries(stats) };
}

async function listGroups({ inspector, queue }: Call): Promise<object> {
  const stats = queueToJson(await inspector.getQueueInfo(queue));
  return { stats, groups: await inspector.groups(queue) };
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
    if (one.status === 'fulfilled' || hasCode(one.reason, 'ERR_QUEUE_NOT_FOUND')) continue;
    if (shown.length === 0) throw one.reason;
    call.report(one.reason);
  }
  return shown;
}
