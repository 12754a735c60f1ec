import type { TaskTarget } from '../broker/broker.ts';
import type { TaskInfo } from '../task-info.ts';
import type { TaskChange, TaskState } from '../task-state.ts';
import type { Action, Call } from './api.ts';
import { doEach } from './batch.ts';
import { listGroupSizes, showQueue } from './queue-routes.ts';
import type { Route } from './route-table.ts';
import {
  showAggregatingTask,
  showArchivedTask,
  showCompletedTask,
  showPendingTask,
  showScheduledTask,
  showTask,
} from './show-task.ts';

/** The tasks of a state: how they are shown, and what else than deleting asynqmon's API can do with them. */
interface TaskList {
  readonly state: TaskState;
  readonly show: (call: Call, task: TaskInfo) => object;
  readonly changes: readonly TaskChange[];
}

const TASK_LISTS: readonly TaskList[] = [
  { state: 'pending', show: showPendingTask, changes: ['delete', 'archive'] },
  { state: 'scheduled', show: showScheduledTask, changes: ['delete', 'run', 'archive'] },
  { state: 'retry', show: showScheduledTask, changes: ['delete', 'run', 'archive'] },
  { state: 'archived', show: showArchivedTask, changes: ['delete', 'run'] },
  { state: 'completed', show: showCompletedTask, changes: ['delete'] },
  { state: 'aggregating', show: showAggregatingTask, changes: ['delete', 'run', 'archive'] },
];

/** asynqmon's names of the results: of all tasks that were changed, and of a batch. */
const RESULTS: Readonly<Record<TaskChange, readonly [all: string, done: string, failed: string]>> = {
  delete: ['deleted', 'deleted_ids', 'failed_ids'],
  run: ['scheduled', 'pending_ids', 'error_ids'],
  archive: ['archived', 'archived_ids', 'error_ids'],
};

/** Operations on the tasks of each state but the active ones. */
export const taskRoutes: readonly Route<Action>[] = [
  {
    method: 'GET',
    pattern: '/queues/{queue}/tasks/{task}',
    action: async (call) => showTask(call, await call.inspector.getTaskInfo(call.queue, call.task)),
  },
  ...TASK_LISTS.flatMap((list): Route<Action>[] => [
    { method: 'GET', pattern: pathOf(list.state), action: (call) => showList(call, list) },
    ...list.changes.flatMap((change) => changeRoutes(list.state, change)),
  ]),
];

function pathOf(state: TaskState): string {
  const groups = state === 'aggregating' ? '/groups/{group}' : '';
  return `/queues/{queue}${groups}/${state}_tasks`;
}

async function showList(call: Call, { state, show }: TaskList): Promise<object> {
  const { inspector, queue, page } = call;
  const isGroup = state === 'aggregating';
  const tasks = await inspector.list(queue, state, page, isGroup ? call.group : undefined);
  const stats = showQueue(await inspector.getQueueInfo(queue));
  const groups = isGroup ? { groups: await listGroupSizes(call) } : {};
  return { tasks: tasks.map((task) => show(call, task)), stats, ...groups };
}

/** The routes that change one task, all tasks of a state, and those of a batch. */
function changeRoutes(state: TaskState, change: TaskChange): readonly Route<Action>[] {
  const path = pathOf(state);
  const [changedAll, done, failed] = RESULTS[change];
  const isDelete = change === 'delete';
  return [
    {
      method: isDelete ? 'DELETE' : 'POST',
      pattern: isDelete ? `${path}/{task}` : `${path}/{task}:${change}`,
      action: async ({ inspector, queue, task }) => {
        await inspector.change(queue, { id: task }, change);
      },
    },
    {
      method: isDelete ? 'DELETE' : 'POST',
      pattern: `${path}:${change}_all`,
      action: async (call) => {
        const target: TaskTarget = state === 'aggregating' ? { state, group: call.group } : { state };
        return { [changedAll]: await call.inspector.change(call.queue, target, change) };
      },
    },
    {
      method: 'POST',
      pattern: `${path}:batch_${change}`,
      action: async (call) => {
        const { inspector, queue } = call;
        const outcome = await doEach(await call.taskIds(), (id) => inspector.change(queue, { id }, change));
        return { [done]: outcome.done, [failed]: outcome.failed };
      },
    },
  ];
}
