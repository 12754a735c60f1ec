import type { Inspector } from '../inspector.ts';
import type { ListOptions } from '../list-options.ts';
import type { TaskInfo } from '../task-info.ts';
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

type List = (inspector: Inspector, call: Call, page: ListOptions) => Promise<readonly TaskInfo[]>;
type Count = (inspector: Inspector, call: Call) => Promise<number>;

/** What can be done with the tasks of a state, besides deleting one. */
interface TaskList {
  readonly path: string;
  readonly list: List;
  readonly show: (call: Call, task: TaskInfo) => object;
  /** What its list has besides the tasks and the queue. */
  readonly more?: (call: Call) => Promise<object>;
  readonly deleteAll: Count;
  readonly runAll?: Count;
  readonly archiveAll?: Count;
}

const TASK_LISTS: readonly TaskList[] = [
  {
    path: '/queues/{queue}/pending_tasks',
    list: (inspector, { queue }, page) => inspector.listPendingTasks(queue, page),
    show: showPendingTask,
    deleteAll: (inspector, { queue }) => inspector.deleteAllPendingTasks(queue),
    archiveAll: (inspector, { queue }) => inspector.archiveAllPendingTasks(queue),
  },
  {
    path: '/queues/{queue}/scheduled_tasks',
    list: (inspector, { queue }, page) => inspector.listScheduledTasks(queue, page),
    show: showScheduledTask,
    deleteAll: (inspector, { queue }) => inspector.deleteAllScheduledTasks(queue),
    runAll: (inspector, { queue }) => inspector.runAllScheduledTasks(queue),
    archiveAll: (inspector, { queue }) => inspector.archiveAllScheduledTasks(queue),
  },
  {
    path: '/queues/{queue}/retry_tasks',
    list: (inspector, { queue }, page) => inspector.listRetryTasks(queue, page),
    show: showScheduledTask,
    deleteAll: (inspector, { queue }) => inspector.deleteAllRetryTasks(queue),
    runAll: (inspector, { queue }) => inspector.runAllRetryTasks(queue),
    archiveAll: (inspector, { queue }) => inspector.archiveAllRetryTasks(queue),
  },
  {
    path: '/queues/{queue}/archived_tasks',
    list: (inspector, { queue }, page) => inspector.listArchivedTasks(queue, page),
    show: showArchivedTask,
    deleteAll: (inspector, { queue }) => inspector.deleteAllArchivedTasks(queue),
    runAll: (inspector, { queue }) => inspector.runAllArchivedTasks(queue),
  },
  {
    path: '/queues/{queue}/completed_tasks',
    list: (inspector, { queue }, page) => inspector.listCompletedTasks(queue, page),
    show: showCompletedTask,
    deleteAll: (inspector, { queue }) => inspector.deleteAllCompletedTasks(queue),
  },
  {
    path: '/queues/{queue}/groups/{group}/aggregating_tasks',
    list: (inspector, { queue, group }, page) => inspector.listAggregatingTasks(queue, group, page),
    show: showAggregatingTask,
    more: async (call) => ({ groups: await listGroupSizes(call) }),
    deleteAll: (inspector, { queue, group }) => inspector.deleteAllAggregatingTasks(queue, group),
    runAll: (inspector, { queue, group }) => inspector.runAllAggregatingTasks(queue, group),
    archiveAll: (inspector, { queue, group }) => inspector.archiveAllAggregatingTasks(queue, group),
  },
];

/** Operations on the tasks of each state but the active ones. */
export const taskRoutes: readonly Route<Action>[] = [
  { method: 'GET', pattern: '/queues/{queue}/tasks/{task}', action: getTask },
  ...TASK_LISTS.flatMap((tasks) => [
    ...readAndDelete(tasks),
    ...(tasks.runAll === undefined ? [] : run(tasks.path, tasks.runAll)),
    ...(tasks.archiveAll === undefined ? [] : archive(tasks.path, tasks.archiveAll)),
  ]),
];

async function getTask(call: Call): Promise<object> {
  return showTask(call, await call.inspector.getTaskInfo(call.queue, call.task));
}

function readAndDelete({ path, list, show, more, deleteAll }: TaskList): Route<Action>[] {
  return [
    {
      method: 'GET',
      pattern: path,
      action: async (call) => {
        const tasks = await list(call.inspector, call, call.page);
        const stats = showQueue(await call.inspector.getQueueInfo(call.queue));
        return { tasks: tasks.map((task) => show(call, task)), stats, ...(await more?.(call)) };
      },
    },
    {
      method: 'DELETE',
      pattern: `${path}/{task}`,
      action: ({ inspector, queue, task }) => inspector.deleteTask(queue, task),
    },
    {
      method: 'DELETE',
      pattern: `${path}:delete_all`,
      action: async (call) => ({ deleted: await deleteAll(call.inspector, call) }),
    },
    {
      method: 'POST',
      pattern: `${path}:batch_delete`,
      action: async (call) => {
        const { inspector, queue } = call;
        const { done, failed } = await doEach(await call.taskIds(), (id) => inspector.deleteTask(queue, id));
        return { deleted_ids: done, failed_ids: failed };
      },
    },
  ];
}

function run(path: string, runAll: Count): Route<Action>[] {
  return [
    {
      method: 'POST',
      pattern: `${path}/{task}:run`,
      action: ({ inspector, queue, task }) => inspector.runTask(queue, task),
    },
    {
      method: 'POST',
      pattern: `${path}:run_all`,
      action: async (call) => ({ scheduled: await runAll(call.inspector, call) }),
    },
    {
      method: 'POST',
      pattern: `${path}:batch_run`,
      action: async (call) => {
        const { inspector, queue } = call;
        const { done, failed } = await doEach(await call.taskIds(), (id) => inspector.runTask(queue, id));
        return { pending_ids: done, error_ids: failed };
      },
    },
  ];
}

function archive(path: string, archiveAll: Count): Route<Action>[] {
  return [
    {
      method: 'POST',
      pattern: `${path}/{task}:archive`,
      action: ({ inspector, queue, task }) => inspector.archiveTask(queue, task),
    },
    {
      method: 'POST',
      pattern: `${path}:archive_all`,
      action: async (call) => ({ archived: await archiveAll(call.inspector, call) }),
    },
    {
      method: 'POST',
      pattern: `${path}:batch_archive`,
      action: async (call) => {
        const { inspector, queue } = call;
        const { done, failed } = await doEach(await call.taskIds(), (id) => inspector.archiveTask(queue, id));
        return { archived_ids: done, error_ids: failed };
      },
    },
  ];
}
