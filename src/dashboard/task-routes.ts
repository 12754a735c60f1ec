import { HISTORY_DAYS } from '../tasks/broker/broker-settings.ts';
import type { KeyStats } from '../tasks/broker/broker-types.ts';
import { dayToJson } from '../tasks/http/asynqmon-json.ts';
import { HttpError } from '../tasks/http/http-error.ts';
import type { Route } from '../tasks/http/route-table.ts';
import type { QueueLimits } from '../tasks/broker/broker.ts';
import { TASK_CHANGES, type TaskChange, type TaskState } from '../tasks/task-state.ts';
import { requireTaskState, type DashboardCall, type DashboardOperation } from './dashboard-call.ts';
import type {
  ChangedJson,
  DashboardAction,
  QueueDetailJson,
  ScheduleEventJson,
  ScheduleJson,
  ServerJson,
  TaskDetailJson,
  TaskListJson,
} from './dashboard-json.ts';
import {
  jsonOf,
  queueForPage,
  Runs,
  serverForPage,
  taskDetailForPage,
  taskForPage,
} from './dashboard-views.ts';

/** Groups that are sent. */
const MAX_GROUPS = 1_000;

/** Queues, tasks, servers and schedules. What changes something requires that the request may do it. */
export const dashboardRoutes: readonly Route<DashboardOperation>[] = [
  ['GET', '/queues/{queue}', getQueue],
  ['DELETE', '/queues/{queue}', allowed('delete-queue', deleteQueue)],
  ['POST', '/queues/{queue}/pause', allowed('pause', ({ source, queue }) => source.pauseQueue(queue))],
  ['POST', '/queues/{queue}/resume', allowed('resume', ({ source, queue }) => source.unpauseQueue(queue))],
  ['PUT', '/queues/{queue}/limits', allowed('limits', setLimits)],
  ['DELETE', '/queues/{queue}/limits', allowed('limits', setLimits)],
  ['GET', '/queues/{queue}/keys', listKeys],
  ['GET', '/queues/{queue}/tasks', listTasks],
  // Before the route of a task: the id of a task may be 'change', but a task has no POST of its own.
  ['POST', '/queues/{queue}/tasks/change', changeAll],
  ['GET', '/queues/{queue}/tasks/{task}', getTask],
  ['POST', '/queues/{queue}/tasks/{task}/{action}', changeTask],
  ['GET', '/servers', listServers],
  ['GET', '/schedules', listSchedules],
  ['GET', '/schedules/{schedule}/events', listEvents],
];

function allowed(action: DashboardAction, change: DashboardOperation): DashboardOperation {
  return (call) => {
    call.require(action);
    return change(call);
  };
}

// Queues.

async function getQueue({ source, queue }: DashboardCall): Promise<QueueDetailJson> {
  const info = await source.getQueueInfo(queue);
  const [servers, limits, days, groups] = await Promise.all([
    source.servers(),
    source.limits(queue),
    source.history(queue, HISTORY_DAYS),
    source.groups(queue),
  ]);
  return {
    queue: queueForPage(info, servers),
    limits,
    days: days.map(dayToJson),
    groups: groups.slice(0, MAX_GROUPS),
  };
}

function deleteQueue({ source, queue, query }: DashboardCall): Promise<void> {
  return source.deleteQueue(queue, { force: query.get('force') === '1' });
}

/** Without limits in a body, removes them. A queue that does not exist would be created. */
async function setLimits(call: DashboardCall): Promise<void> {
  const { source, queue, incoming } = call;
  const isRemoval = incoming.head.method === 'DELETE';
  const limits = isRemoval ? undefined : await call.body('concurrency', 'rate', 'perKey');
  await source.getQueueInfo(queue);
  await source.setLimits(queue, limits as QueueLimits | undefined);
}

async function listKeys({ source, queue, page }: DashboardCall): Promise<readonly KeyStats[]> {
  await source.getQueueInfo(queue);
  return source.keys(queue, page);
}

// Tasks.

async function listTasks(call: DashboardCall): Promise<TaskListJson> {
  const { source, queue, page, query } = call;
  const state = requireTaskState(query.get('state') ?? 'pending');
  const group = state === 'aggregating' ? requireGroup(query.get('group')) : undefined;
  const [info, tasks, servers] = await Promise.all([
    source.getQueueInfo(queue),
    source.list(queue, state, page, group),
    state === 'active' ? source.servers() : [],
  ]);
  const groups = group === undefined ? [] : await source.groups(queue);
  const size = groups.find((one) => one.group === group)?.size ?? 0;
  const runs = new Runs(servers);
  return {
    total: group === undefined ? info[state] : size,
    tasks: tasks.map((task) => taskForPage(task, runs)),
  };
}

async function getTask(call: DashboardCall): Promise<TaskDetailJson> {
  const { source, queue, allowed } = call;
  const task = await source.getTaskInfo(queue, call.parameter('task'));
  const servers = task.state === 'active' ? await source.servers() : [];
  return taskDetailForPage(task, new Runs(servers), allowed);
}

async function changeTask(call: DashboardCall): Promise<void> {
  const { source, queue } = call;
  const [id, action] = [call.parameter('task'), call.parameter('action')];
  if (action !== 'cancel' && !isTaskChange(action)) throw new HttpError(404, 'not found');
  call.require(action);
  await (action === 'cancel' ? source.cancelTask(queue, id) : source.change(queue, { id }, action));
}

async function changeAll(call: DashboardCall): Promise<ChangedJson> {
  const body = await call.body('state', 'group', 'change');
  const change = requireTaskChange(body.change);
  call.require(change);
  const state: TaskState = requireTaskState(body.state);
  const group = state === 'aggregating' ? requireGroup(body.group) : undefined;
  return { changed: await call.source.change(call.queue, { state, group }, change) };
}

function requireGroup(group: unknown): string {
  if (typeof group === 'string' && group !== '') return group;
  throw new HttpError(400, 'aggregating tasks are those of a group');
}

/** @throws HttpError 400 - it is not a change. */
export function requireTaskChange(word: unknown): TaskChange {
  if (typeof word === 'string' && isTaskChange(word)) return word;
  throw new HttpError(400, 'change must be delete, run or archive');
}

function isTaskChange(word: string): word is TaskChange {
  return Object.hasOwn(TASK_CHANGES, word);
}

// Servers and schedules.

async function listServers({ source }: DashboardCall): Promise<readonly ServerJson[]> {
  return (await source.servers()).map(serverForPage);
}

async function listSchedules({ source }: DashboardCall): Promise<readonly ScheduleJson[]> {
  return (await source.schedulerEntries()).map((entry) => jsonOf(entry));
}

async function listEvents(call: DashboardCall): Promise<readonly ScheduleEventJson[]> {
  const events = await call.source.listSchedulerEnqueueEvents(call.parameter('schedule'), call.page);
  return events.map((event) => jsonOf(event));
}
