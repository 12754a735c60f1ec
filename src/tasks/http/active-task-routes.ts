import { EscapementError } from '../../core/errors.ts';
import type { Inspector } from '../inspector.ts';
import type { WorkerInfo } from '../inspector-info.ts';
import type { Action, Call } from './api.ts';
import { doEach } from './batch.ts';
import { showQueue } from './queue-routes.ts';
import type { Route } from './route-table.ts';
import { showActiveTask } from './show-task.ts';

/** How many tasks are listed at once when all are cancelled. */
const PAGE_SIZE = 1_000;

/** Operations on the tasks that somebody processes. */
export const activeTaskRoutes: readonly Route<Action>[] = [
  { method: 'GET', pattern: '/queues/{queue}/active_tasks', action: listActiveTasks },
  { method: 'POST', pattern: '/queues/{queue}/active_tasks/{task}:cancel', action: cancelTask },
  { method: 'POST', pattern: '/queues/{queue}/active_tasks:cancel_all', action: cancelAll },
  { method: 'POST', pattern: '/queues/{queue}/active_tasks:batch_cancel', action: batchCancel },
];

async function listActiveTasks(call: Call): Promise<object> {
  const { inspector, queue, page } = call;
  const tasks = await inspector.listActiveTasks(queue, page);
  const workers = await workersOf(inspector, queue);
  const stats = showQueue(await inspector.getQueueInfo(queue));
  return { tasks: tasks.map((task) => showActiveTask(call, task, workers.get(task.id))), stats };
}

/** By the id of their task. */
async function workersOf(inspector: Inspector, queue: string): Promise<ReadonlyMap<string, WorkerInfo>> {
  const workers = (await inspector.servers()).flatMap((server) => server.activeWorkers);
  return new Map(workers.filter((worker) => worker.queue === queue).map((worker) => [worker.taskId, worker]));
}

async function cancelTask({ inspector, queue, task }: Call): Promise<void> {
  await cancel(inspector, queue, task);
}

async function cancelAll({ inspector, queue }: Call): Promise<void> {
  const ids: string[] = [];
  for (let page = 1, isLast = false; !isLast; page++) {
    const tasks = await inspector.listActiveTasks(queue, { page, pageSize: PAGE_SIZE });
    ids.push(...tasks.map(({ id }) => id));
    isLast = tasks.length < PAGE_SIZE;
  }
  await doEach(ids, (id) => inspector.cancelProcessing(id, { queue, waitMs: 0 }));
}

async function batchCancel(call: Call): Promise<object> {
  const { inspector, queue } = call;
  const { done, failed } = await doEach(await call.taskIds(), (id) => cancel(inspector, queue, id));
  return { canceled_ids: done, error_ids: failed };
}

/** Whoever runs it is asked, as asynqmon does it: nobody waits for an answer. But it must be there, and run. */
async function cancel(inspector: Inspector, queue: string, id: string): Promise<void> {
  const { state } = await inspector.getTaskInfo(queue, id);
  if (state !== 'active')
    throw new EscapementError('ERR_TASK_STATE', `task '${id}' is not active, but ${state}`);
  await inspector.cancelProcessing(id, { queue, waitMs: 0 });
}
