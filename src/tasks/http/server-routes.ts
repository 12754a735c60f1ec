import type { SchedulerEntryInfo, ServerInfo, WorkerInfo } from '../inspector-info.ts';
import type { Action, Call } from './api.ts';
import type { Route } from './route-table.ts';
import { GO_ZERO_TIME, showTime } from './show-time.ts';

/** Operations on servers and schedulers. */
export const serverRoutes: readonly Route<Action>[] = [
  { method: 'GET', pattern: '/servers', action: listServers },
  { method: 'GET', pattern: '/scheduler_entries', action: listEntries },
  { method: 'GET', pattern: '/scheduler_entries/{entry}/enqueue_events', action: listEvents },
];

async function listServers(call: Call): Promise<object> {
  return { servers: (await call.inspector.servers()).map((server) => showServer(call, server)) };
}

async function listEntries(call: Call): Promise<object> {
  return { entries: (await call.inspector.schedulerEntries()).map((entry) => showEntry(call, entry)) };
}

async function listEvents(call: Call): Promise<object> {
  const events = await call.inspector.listSchedulerEnqueueEvents(call.parameter('entry'), call.page);
  return {
    events: events.map(({ taskId, enqueuedAt }) => ({ task_id: taskId, enqueued_at: showTime(enqueuedAt) })),
  };
}

function showServer(call: Call, server: ServerInfo): object {
  return {
    id: server.id,
    host: server.host,
    pid: server.pid,
    concurrency: server.concurrency,
    queue_priorities: server.queues,
    strict_priority_enabled: server.strictPriority,
    start_time: showTime(server.startedAt),
    status: server.status,
    active_workers: server.activeWorkers.map((worker) => showWorker(call, worker)),
  };
}

function showWorker(call: Call, worker: WorkerInfo): object {
  return {
    task_id: worker.taskId,
    queue: worker.queue,
    task_type: worker.taskType,
    task_payload: call.showPayload(worker.taskPayload, worker.taskType),
    start_time: showTime(worker.startedAt),
  };
}

/** The time of the last one is left out if there was none. */
function showEntry(call: Call, entry: SchedulerEntryInfo): object {
  return {
    id: entry.id,
    spec: entry.spec,
    task_type: entry.taskType,
    task_payload: call.showPayload(entry.taskPayload, entry.taskType),
    options: entry.options,
    next_enqueue_at: showTime(entry.nextEnqueueAt, GO_ZERO_TIME),
    ...(entry.prevEnqueueAt === undefined ? {} : { prev_enqueue_at: showTime(entry.prevEnqueueAt) }),
  };
}
