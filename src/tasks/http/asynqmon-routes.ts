import { EscapementError, hasCode } from '../../core/errors.ts';
import { nextHostTurn, ownTurn } from '../../core/own-turn.ts';
import { isUnavailable } from '../broker/broker-errors.ts';
import { HISTORY_DAYS } from '../broker/broker-settings.ts';
import type { QueueLimits, TaskTarget } from '../broker/broker.ts';
import type { WorkerInfo } from '../info.ts';
import type { Inspector } from '../inspector.ts';
import { ASYNQ_CHANGES, TASK_STATES, type TaskChange, type TaskState } from '../task-state.ts';
import {
  type AsynqmonQueue,
  CHANGE_RESULTS,
  dayToJson,
  entryToJson,
  eventToJson,
  keyToJson,
  listedTaskToJson,
  queueToJson,
  serverToJson,
  SHORT_HISTORY_DAYS,
  taskToJson,
} from './asynqmon-json.ts';
import type { Action, Call } from './call.ts';
import type { Route } from './route-table.ts';

// Queues, servers and schedules.

const queueRoutes: readonly Route<Action>[] = [
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

/** Returns the counts of a queue, which are beside its lists: of an unknown queue there are none, and it is an error. */
async function statsOf({ inspector, queue }: Call): Promise<AsynqmonQueue> {
  return queueToJson(await inspector.getQueueInfo(queue));
}

async function getLimits(call: Call): Promise<object> {
  return { stats: await statsOf(call), limits: (await call.inspector.limits(call.queue)) ?? null };
}

/** The body is a `QueueLimits`. */
async function setLimits(call: Call): Promise<void> {
  const limits = await call.body('concurrency', 'rate', 'perKey');
  await call.inspector.setLimits(call.queue, limits as QueueLimits);
}

async function listKeys(call: Call): Promise<object> {
  const { inspector, queue, page } = call;
  return { stats: await statsOf(call), keys: (await inspector.keys(queue, page)).map(keyToJson) };
}

async function listQueueStats(call: Call): Promise<object> {
  const stats = await ofEachQueue(call, async (queue) => {
    const days = await call.inspector.history(queue, HISTORY_DAYS);
    return [queue, days.map(dayToJson)] as const;
  });
  return { stats: Object.fromEntries(stats) };
}

async function listGroups(call: Call): Promise<object> {
  return { stats: await statsOf(call), groups: await call.inspector.groups(call.queue) };
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

/** Reads all queues. One that cannot be read is left out and reported; asynqmon's server fails the whole request. */
async function ofEachQueue<R>(call: Call, read: (queue: string) => Promise<R>): Promise<readonly R[]> {
  const { values, failures } = await readQueues(await call.inspector.queues(), read);
  for (const failure of failures) call.report(failure);
  return values;
}

/** Queues that are read in one turn of the event loop: 90 days of each take some milliseconds. */
const QUEUES_AT_ONCE = 20;

/**
 * Reads queues. One that is removed meanwhile is left out, and so is one that cannot be read, whose error is among the failures.
 *
 * @throws an error of `read` - the broker is unavailable, or no queue can be read.
 */
export async function readQueues<R>(
  queues: readonly string[],
  read: (queue: string) => Promise<R>,
): Promise<{ readonly values: readonly R[]; readonly failures: readonly unknown[] }> {
  const values: R[] = [];
  const failures: unknown[] = [];
  for (let at = 0; at < queues.length; at += QUEUES_AT_ONCE) {
    if (at > 0) await nextHostTurn();
    for (const one of await Promise.allSettled(queues.slice(at, at + QUEUES_AT_ONCE).map(read))) {
      if (one.status === 'fulfilled') values.push(one.value);
      else if (isUnavailable(one.reason)) throw one.reason;
      else if (!hasCode(one.reason, 'ERR_QUEUE_NOT_FOUND')) failures.push(one.reason);
    }
  }
  if (values.length === 0 && failures.length > 0) throw failures[0];
  return { values, failures };
}

// Tasks.

const taskRoutes: readonly Route<Action>[] = [
  ['GET', '/queues/{queue}/tasks/{task}', getTask],
  ...TASK_STATES.map((state): Route<Action> => ['GET', pathOf(state), (call) => listTasks(call, state)]),
  ...TASK_STATES.flatMap((state) => ASYNQ_CHANGES[state].flatMap((change) => changeRoutes(state, change))),
  [
    'POST',
    `${pathOf('active')}/{task}:cancel`,
    (call) => requestCancel(call.inspector, call.queue, call.task),
  ],
  ['POST', `${pathOf('active')}:cancel_all`, cancelAll],
  ['POST', `${pathOf('active')}:batch_cancel`, batchCancel],
];

/** The routes of asynqmon's API. */
export const asynqmonRoutes: readonly Route<Action>[] = [...queueRoutes, ...taskRoutes];

function pathOf(state: TaskState): string {
  const groups = state === 'aggregating' ? '/groups/{group}' : '';
  return `/queues/{queue}${groups}/${state}_tasks`;
}

async function getTask(call: Call): Promise<object> {
  return taskToJson(await call.inspector.getTaskInfo(call.queue, call.task), call);
}

async function listTasks(call: Call, state: TaskState): Promise<object> {
  const { inspector, queue, page } = call;
  const isGroup = state === 'aggregating';
  const tasks = await inspector.list(queue, state, page, isGroup ? call.group : undefined);
  const workers = state === 'active' ? await workersOf(inspector, queue) : undefined;
  const listed = tasks.map((task) => listedTaskToJson(state, task, call, workers?.get(task.id)));
  const stats = await statsOf(call);
  return { tasks: listed, stats, ...(isGroup && { groups: await inspector.groups(queue) }) };
}

async function workersOf(inspector: Inspector, queue: string): Promise<ReadonlyMap<string, WorkerInfo>> {
  const workers = (await inspector.servers()).flatMap((server) => server.activeWorkers);
  return new Map(workers.filter((worker) => worker.queue === queue).map((worker) => [worker.taskId, worker]));
}

/** The routes that change one task, all tasks of a state, and those of a batch. */
function changeRoutes(state: TaskState, change: TaskChange): readonly Route<Action>[] {
  const [changedAll, done, failed] = CHANGE_RESULTS[change];
  const changeTask: Action = async ({ inspector, queue, task }) => {
    await inspector.change(queue, { id: task }, change);
  };
  const changeAll: Action = async ({ inspector, queue, group }) => {
    const target: TaskTarget = state === 'aggregating' ? { state, group } : { state };
    return { [changedAll]: await inspector.change(queue, target, change) };
  };
  const changeBatch: Action = async (call) => {
    const { inspector, queue } = call;
    const outcome = await doEach(await call.taskIds(), (id) => inspector.change(queue, { id }, change));
    return { [done]: outcome.done, [failed]: outcome.failed };
  };
  const path = pathOf(state);
  const method = change === 'delete' ? 'DELETE' : 'POST';
  return [
    [method, change === 'delete' ? `${path}/{task}` : `${path}/{task}:${change}`, changeTask],
    [method, `${path}:${change}_all`, changeAll],
    ['POST', `${path}:batch_${change}`, changeBatch],
  ];
}

// Active tasks.

async function cancelAll({ inspector, queue }: Call): Promise<void> {
  const ids: string[] = [];
  for await (const tasks of inspector.scan(queue, { states: ['active'] })) {
    ids.push(...tasks.map(({ id }) => id));
  }
  await doEach(ids, (id) => inspector.cancelProcessing(id, { queue, waitMs: 0 }));
}

async function batchCancel(call: Call): Promise<object> {
  const { inspector, queue } = call;
  const { done, failed } = await doEach(await call.taskIds(), (id) => requestCancel(inspector, queue, id));
  return { canceled_ids: done, error_ids: failed };
}

/**
 * Requests an active task to stop and does not wait for an answer, as asynqmon.
 *
 * @throws EscapementError `ERR_TASK_STATE` - it is not active.
 */
export async function requestCancel(inspector: Inspector, queue: string, id: string): Promise<void> {
  const { state } = await inspector.getTaskInfo(queue, id);
  if (state !== 'active')
    throw new EscapementError('ERR_TASK_STATE', `task '${id}' is not active, but ${state}`);
  await inspector.cancelProcessing(id, { queue, waitMs: 0 });
}

// Batches.

/** Tasks of a batch that are changed at once, in one turn of the event loop: it takes a millisecond or two. */
const AT_ONCE = 50;

interface BatchOutcome {
  readonly done: readonly string[];
  readonly failed: readonly string[];
}

/**
 * Changes each task of a batch. Once the broker is unavailable, the rest fails without a try. The host has a turn between two
 * pieces: a broker in the process answers at once, and a body of 1 MB names 250 000 tasks.
 */
export async function doEach(
  ids: readonly string[],
  work: (id: string) => Promise<unknown>,
): Promise<BatchOutcome> {
  const done: string[] = [];
  const failed: string[] = [];
  let isHopeless = false;
  for (let at = 0; at < ids.length && !isHopeless; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    const outcomes = await Promise.allSettled(some.map(work));
    for (const [nth, outcome] of outcomes.entries()) {
      (outcome.status === 'fulfilled' ? done : failed).push(some[nth] ?? '');
      if (outcome.status === 'rejected') isHopeless ||= isUnavailable(outcome.reason);
    }
    await ownTurn();
  }
  return { done, failed: [...failed, ...ids.slice(done.length + failed.length)] };
}
