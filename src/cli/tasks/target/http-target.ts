import type { Defect, GroupInfo, TaskTarget } from '../../../tasks/broker/broker.ts';
import type { DailyStats, SchedulerEnqueueEvent } from '../../../tasks/inspector-info.ts';
import { TASK_CHANGES, type TaskChange } from '../../../tasks/task-state.ts';
import { CommandError } from '../../command-error.ts';
import { HttpStatusError, type HttpApi } from './http-api.ts';
import {
  dayView,
  entryView,
  eventView,
  queueView,
  serverView,
  taskView,
  type DayJson,
  type EntryJson,
  type EventJson,
  type QueueJson,
  type ServerJson,
  type TaskJson,
} from './http-shapes.ts';
import {
  NotActive,
  type Cancelling,
  type EntryView,
  type PageView,
  type QueueView,
  type ServerView,
  type TaskList,
  type TasksTarget,
  type TaskView,
} from './tasks-target.ts';

/** How many days `/queues/{queue}` tells of; more are asked for all queues at once. */
const SHORT_HISTORY_DAYS = 10;

/** What the API has of the queues of another process. */
export class HttpTarget implements TasksTarget {
  readonly name: string;
  readonly #api: HttpApi;

  constructor(api: HttpApi) {
    this.name = api.name;
    this.#api = api;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async queues(): Promise<readonly QueueView[]> {
    const queues = await this.#list<QueueJson>('/queues', 'queues');
    return queues.map(queueView).sort((a, b) => (a.queue < b.queue ? -1 : 1));
  }

  async queue(name: string): Promise<QueueView> {
    const { current } = (await this.#api.get(queuePath(name))) as { current: QueueJson };
    return queueView(current);
  }

  async history(queue: string, days: number): Promise<readonly DailyStats[]> {
    const { history } = (await this.#api.get(queuePath(queue))) as { history: readonly DayJson[] };
    if (days <= SHORT_HISTORY_DAYS) return history.slice(0, days).map(dayView);
    const { stats } = (await this.#api.get('/queue_stats')) as { stats: Record<string, readonly DayJson[]> };
    return (Object.hasOwn(stats, queue) ? (stats[queue] ?? []) : []).slice(0, days).map(dayView);
  }

  groups(queue: string): Promise<readonly GroupInfo[]> {
    return this.#list<GroupInfo>(`${queuePath(queue)}/groups`, 'groups');
  }

  async pauseQueue(queue: string): Promise<void> {
    await this.#api.post(`${queuePath(queue)}:pause`);
  }

  async resumeQueue(queue: string): Promise<void> {
    await this.#api.post(`${queuePath(queue)}:resume`);
  }

  async removeQueue(queue: string, force: boolean): Promise<void> {
    if (force) throw notOverHttp('removing a queue with its tasks (--force)');
    await this.#api.delete(queuePath(queue));
  }

  async tasks(list: TaskList, { page, pageSize }: PageView): Promise<readonly TaskView[]> {
    const path = `${listPath(list)}?page=${page}&size=${pageSize}`;
    const tasks = await this.#list<TaskJson>(path, 'tasks');
    return tasks.map((task) => taskView(task, list.state));
  }

  async task(queue: string, id: string): Promise<TaskView> {
    const path = `${queuePath(queue)}/tasks/${segment(id)}`;
    return taskView((await this.#api.get(path)) as TaskJson, 'pending');
  }

  enqueue(): Promise<TaskView> {
    return Promise.reject(notOverHttp('enqueuing a task'));
  }

  change(queue: string, target: TaskTarget, change: TaskChange): Promise<number> {
    if ('id' in target) return this.#changeTask(queue, target.id, change);
    return this.#changeAll({ queue, state: target.state, group: target.group }, change);
  }

  async #changeTask(queue: string, id: string, change: TaskChange): Promise<number> {
    const list = await this.#listOf(queue, id);
    const { state } = list;
    if (state === 'active' && change !== 'run') throw new CommandError(`task '${id}' is active: cancel it`);
    if (TASK_CHANGES[change].refused.includes(state)) {
      throw new CommandError(`task '${id}' is ${state} already`);
    }
    if (state === 'completed' && change === 'run') throw notOverHttp('running a completed task again');
    if (state === 'completed' && change === 'archive') throw notOverHttp('archiving a completed task');
    if (change === 'delete') await this.#api.delete(taskPath(list, id));
    else await this.#api.post(`${taskPath(list, id)}:${change}`);
    return 1;
  }

  /** The API wants to know the queue, and says nothing of an answer. */
  async cancelTask({ id, queue, outcome }: Cancelling): Promise<undefined> {
    if (outcome !== 'retry') throw notOverHttp(`cancelling with --outcome ${outcome}`);
    const queues = queue === undefined ? (await this.queues()).map((view) => view.queue) : [queue];
    const running: string[] = [];
    for (const name of queues) {
      if ((await this.#taskIfThere(name, id))?.state === 'active') running.push(name);
    }
    if (running.length === 0) throw new NotActive(id);
    for (const name of running) {
      await this.#api.post(`${queuePath(name)}/active_tasks/${segment(id)}:cancel`);
    }
  }

  async #changeAll(list: TaskList, change: TaskChange): Promise<number> {
    const path = `${listPath(list)}:${change}_all`;
    const answer = await (change === 'delete' ? this.#api.deleteAll(path) : this.#api.postAll(path));
    return (answer as Readonly<Record<string, number>>)[CHANGED[change]] ?? 0;
  }

  redisInfo(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  repair(): Promise<readonly Defect[]> {
    return Promise.reject(notOverHttp('repairing queues'));
  }

  async servers(): Promise<readonly ServerView[]> {
    const servers = await this.#list<ServerJson>('/servers', 'servers');
    return servers.map(serverView);
  }

  async entries(): Promise<readonly EntryView[]> {
    const entries = await this.#list<EntryJson>('/scheduler_entries', 'entries');
    return entries.map(entryView);
  }

  async events(entryId: string, { page, pageSize }: PageView): Promise<readonly SchedulerEnqueueEvent[]> {
    const path = `/scheduler_entries/${segment(entryId)}/enqueue_events`;
    const events = await this.#list<EventJson>(`${path}?page=${page}&size=${pageSize}`, 'events');
    return events.map(eventView);
  }

  /** Of nothing, Go writes null. @throws Unreachable - there is no such list in the answer. */
  async #list<T>(path: string, name: string): Promise<readonly T[]> {
    const answer = (await this.#api.get(path)) as Readonly<Record<string, readonly T[] | null>> | null;
    const list = answer?.[name];
    if (list === null) return [];
    if (!Array.isArray(list)) throw this.#api.notTheApi();
    return list as readonly T[];
  }

  /** In which list a task is: what can be done with it has its path there. */
  async #listOf(queue: string, id: string): Promise<TaskList> {
    const { state, group } = await this.task(queue, id);
    return { queue, state, group };
  }

  async #taskIfThere(queue: string, id: string): Promise<TaskView | undefined> {
    try {
      return await this.task(queue, id);
    } catch (error) {
      if (error instanceof HttpStatusError && error.status === 404) return undefined;
      throw error;
    }
  }
}

/** The field of the answer that has the number of tasks that were changed. */
const CHANGED: Readonly<Record<TaskChange, string>> = {
  delete: 'deleted',
  run: 'scheduled',
  archive: 'archived',
};

function queuePath(queue: string): string {
  return `/queues/${segment(queue)}`;
}

function taskPath(list: TaskList, id: string): string {
  return `${listPath(list)}/${segment(id)}`;
}

/** A name as a part of a path. */
function segment(name: string): string {
  // Whatever takes a URL apart takes these for steps, also if they are written with %2e.
  if (name === '.' || name === '..') throw notOverHttp(`what is called '${name}'`);
  return encodeURIComponent(name);
}

function listPath({ queue, state, group }: TaskList): string {
  const path = queuePath(queue);
  if (state !== 'aggregating') return `${path}/${state}_tasks`;
  return `${path}/groups/${segment(group ?? '')}/aggregating_tasks`;
}

function notOverHttp(what: string): CommandError {
  return new CommandError(`${what} is not available over the HTTP API`);
}
