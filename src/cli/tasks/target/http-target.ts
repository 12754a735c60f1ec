import { setMaxListeners } from 'node:events';
import { EscapementError } from '../../../core/errors.ts';
import { HOUR_MS } from '../../../core/units.ts';
import { brokerClosed } from '../../../tasks/broker/broker-errors.ts';
import type { Defect, GroupInfo, KeyStats, QueueLimits, TaskTarget } from '../../../tasks/broker/broker.ts';
import { Client } from '../../../tasks/client.ts';
import {
  CHANGE_RESULTS,
  entryFromJson,
  eventFromJson,
  keyFromJson,
  queueFromJson,
  serverFromJson,
  SHORT_HISTORY_DAYS,
  taskFromJson,
  type DayJson,
  type EntryView,
  type AsynqmonQueue,
  type QueueView,
  type ServerView,
  type AsynqmonTask,
  type TaskView,
} from '../../../tasks/http/asynqmon-json.ts';
import { HttpError } from '../../../tasks/http/http-error.ts';
import { firstLine, RemoteApi } from '../../../tasks/http/http-requests.ts';
import { dailyStatsOf, type DailyStats, type SchedulerEnqueueEvent } from '../../../tasks/info.ts';
import type { DeleteQueueOptions, ListOptions } from '../../../tasks/inspector-options.ts';
import { ASYNQ_CHANGES, TASK_CHANGES, type TaskChange, type TaskState } from '../../../tasks/task-state.ts';
import type { Task } from '../../../tasks/task.ts';
import type { TasksTarget } from './tasks-target.ts';

/** How long a response may take, in milliseconds; asynqmon's server has the same limit. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** For operations on all tasks of a state, in milliseconds; more than `fetch` waits by itself. */
const MAX_TIMEOUT_MS = HOUR_MS;

/** The API and that of asynqmon name what they have not found; for an unknown path, each framework has another text. */
const NOT_FOUND_IN_API = /^(?:asynq: )?(?:there is no queue|queue|task) /;

/** The error if there is no response, or not one of the API: other requests will fail too. */
export function unreachable(message: string, cause?: unknown): EscapementError {
  return new EscapementError('ERR_BROKER_UNAVAILABLE', message, { cause });
}

/** The tasks of another process, over asynqmon's REST interface, as `tasksHandler` serves it. */
export class HttpTarget implements TasksTarget {
  readonly #api: RemoteApi;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  readonly #timeoutMs: number;

  /** @param url - where the handler is mounted; its user and password are not used. @param signal - aborts requests, as `close` does. */
  constructor(
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal = new AbortController().signal,
    timeoutMs = DEFAULT_TIMEOUT_MS,
  ) {
    this.#api = new RemoteApi(url);
    this.#headers = headers;
    this.#signal = AbortSignal.any([signal, this.#closing.signal]);
    setMaxListeners(0, this.#signal); // one for each request in progress
    this.#timeoutMs = timeoutMs;
  }

  /** Where the API is, for messages. */
  get name(): string {
    return this.#api.name;
  }

  /** Ends pending requests: each keeps the process alive. */
  close(): Promise<void> {
    this.#closing.abort(brokerClosed());
    return Promise.resolve();
  }

  async queueInfos(): Promise<readonly QueueView[]> {
    const queues = await this.#list('/queues', 'queues', 'queue', queueFromJson);
    return [...queues].sort((a, b) => (a.queue < b.queue ? -1 : 1));
  }

  async getQueueInfo(queue: string): Promise<QueueView> {
    return queueFromJson(await this.#current(queue));
  }

  async history(queue: string, days: number): Promise<readonly DailyStats[]> {
    const { history } = await this.#read<{ history: readonly DayJson[] }>('history', queuePath(queue));
    if (days <= SHORT_HISTORY_DAYS) return history.slice(0, days).map(dailyStatsOf);
    type Stats = Record<string, readonly DayJson[]>;
    const { stats } = await this.#read<{ stats: Stats }>('stats', '/queue_stats');
    return (Object.hasOwn(stats, queue) ? (stats[queue] ?? []) : []).slice(0, days).map(dailyStatsOf);
  }

  async groups(queue: string): Promise<readonly GroupInfo[]> {
    return this.#list(`${queuePath(queue)}/groups`, 'groups', 'group', (group: GroupInfo) => group);
  }

  async limits(queue: string): Promise<QueueLimits | undefined> {
    return (await this.#current(queue)).limits ?? undefined; // asynqmon's own server has none
  }

  async setLimits(queue: string, limits: QueueLimits | undefined): Promise<void> {
    const method = limits === undefined ? 'DELETE' : 'POST';
    await this.request(method, `${queuePath(queue)}/limits`, { body: limits });
  }

  async keys(queue: string, page?: ListOptions): Promise<readonly KeyStats[]> {
    return this.#list(`${queuePath(queue)}/keys${queryOf(page)}`, 'keys', 'key', keyFromJson);
  }

  async pauseQueue(queue: string): Promise<void> {
    await this.request('POST', `${queuePath(queue)}:pause`);
  }

  async unpauseQueue(queue: string): Promise<void> {
    await this.request('POST', `${queuePath(queue)}:resume`);
  }

  async deleteQueue(queue: string, { force = false }: DeleteQueueOptions = {}): Promise<void> {
    if (force) throw notOverHttp('removing a queue with its tasks (--force)');
    await this.request('DELETE', queuePath(queue));
  }

  async list(
    queue: string,
    state: TaskState,
    page: Required<ListOptions>,
    group: string | undefined,
  ): Promise<readonly TaskView[]> {
    const path = listPath(queue, state, group);
    return this.#list(path + queryOf(page), 'tasks', 'id', (task: AsynqmonTask) => taskFromJson(task, state));
  }

  async getTaskInfo(queue: string, id: string): Promise<TaskView> {
    const json = await this.#read<AsynqmonTask>('id', `${queuePath(queue)}/tasks/${segment(id)}`);
    return taskFromJson(json, 'pending');
  }

  /** Tries once: a person who uses the command can try again. */
  enqueue(task: Task): Promise<TaskView> {
    const options = { url: this.name, headers: this.#headers, signal: this.#signal, maxRetries: 0 };
    return new Client(options).enqueue(task);
  }

  async change(queue: string, target: TaskTarget, change: TaskChange): Promise<number> {
    if ('id' in target) return this.#changeTask(queue, target.id, change);
    return this.#changeAll(listPath(queue, target.state, target.group), change);
  }

  /** The path of a change has the state of the task. */
  async #changeTask(queue: string, id: string, change: TaskChange): Promise<number> {
    const { state, group } = await this.getTaskInfo(queue, id);
    if (state === 'active' && change !== 'run') throw new HttpError(409, `task '${id}' is active: cancel it`);
    if (TASK_CHANGES[change].refused.includes(state)) {
      throw new HttpError(409, `task '${id}' is ${state} already`);
    }
    if (!ASYNQ_CHANGES[state].includes(change)) throw notOverHttp(`'${change}' of a ${state} task`);
    const path = `${listPath(queue, state, group)}/${segment(id)}`;
    if (change === 'delete') await this.request('DELETE', path);
    else await this.request('POST', `${path}:${change}`);
    return 1;
  }

  async #changeAll(list: string, change: TaskChange): Promise<number> {
    const method = change === 'delete' ? 'DELETE' : 'POST';
    const [changed] = CHANGE_RESULTS[change];
    const path = `${list}:${change}_all`;
    const options = { method, timeoutMs: MAX_TIMEOUT_MS } as const;
    return (await this.#read<Readonly<Record<string, number>>>(changed, path, options))[changed] ?? 0;
  }

  async cancelTask(queue: string, id: string): Promise<undefined> {
    await this.request('POST', `${queuePath(queue)}/active_tasks/${segment(id)}:cancel`);
  }

  /** The API has no answer of the server. */
  async cancelProcessing(
    id: string,
    { queue = '', outcome }: Parameters<TasksTarget['cancelProcessing']>[1],
  ): Promise<undefined> {
    if (outcome !== 'retry') throw notOverHttp(`cancelling with --outcome ${outcome ?? ''}`);
    await this.cancelTask(queue, id);
  }

  repair(): Promise<readonly Defect[]> {
    return Promise.reject(notOverHttp('repairing queues'));
  }

  servers(): Promise<readonly ServerView[]> {
    return this.#list('/servers', 'servers', 'id', serverFromJson);
  }

  schedulerEntries(): Promise<readonly EntryView[]> {
    return this.#list('/scheduler_entries', 'entries', 'id', entryFromJson);
  }

  async listSchedulerEnqueueEvents(
    entryId: string,
    page?: ListOptions,
  ): Promise<readonly SchedulerEnqueueEvent[]> {
    const path = `/scheduler_entries/${segment(entryId)}/enqueue_events${queryOf(page)}`;
    return this.#list(path, 'events', 'task_id', eventFromJson);
  }

  /**
   * Returns the JSON of a response; undefined if it has none.
   *
   * @throws HttpError - the API has refused the request; 502 if it would refuse any: a dashboard answers that to its own client, whose
   * login is another one. EscapementError `ERR_BROKER_UNAVAILABLE` - there is no response of the API.
   */
  async request(
    method: Method,
    path: string,
    { timeoutMs = this.#timeoutMs, body }: RequestOptions = {},
  ): Promise<unknown> {
    const { status, text } = await this.#api.send({
      ...{ method, path, timeoutMs, body: body && JSON.stringify(body) },
      ...{ headers: this.#headers, signal: this.#signal },
    });
    if (status === undefined) throw unreachable(this.#api.unreachable(text));
    if (status === 204) return undefined;
    if (status === 404 && !NOT_FOUND_IN_API.test(text))
      throw unreachable(`there is no tasks API at ${this.name} (HTTP 404)`);
    if (status !== 200) {
      const isOfRequest = status >= 400 && status < 500 && status !== 401 && status !== 403;
      throw new HttpError(isOfRequest ? status : 502, `${this.#reason(text, status)} (HTTP ${status})`);
    }
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw this.#notTheApi();
    }
  }

  #reason(text: string, status: number): string {
    if (status >= 300 && status < 400) return `${this.name} redirects to another URL`;
    if (status === 401 || status === 403) return `${this.name} refuses: ${firstLine(text) || 'not allowed'}`;
    return firstLine(text) || `${this.name} refuses`;
  }

  #notTheApi(): EscapementError {
    return unreachable(this.#api.notTheApi());
  }

  /** Returns the JSON of a response that has a field. @throws EscapementError - it does not: it is not one of the API. */
  async #read<Json extends object>(
    field: keyof Json,
    path: string,
    { method = 'GET', ...options }: RequestOptions & { readonly method?: Method } = {},
  ): Promise<Json> {
    const response = (await this.request(method, path, options)) as Json | null | undefined;
    if (response?.[field] === undefined) throw this.#notTheApi();
    return response;
  }

  async #current(queue: string): Promise<CurrentJson> {
    const { current } = await this.#read<{ current: CurrentJson }>('current', queuePath(queue));
    if (!hasText(current, 'queue')) throw this.#notTheApi();
    return current;
  }

  /** Go writes null for an empty list. @param id - field of each entry: other servers may have other lists at the path. */
  async #list<View>(
    path: string,
    name: string,
    id: string,
    read: (json: never) => View,
  ): Promise<readonly View[]> {
    const { [name]: list } = await this.#read<Readonly<Record<string, unknown>>>(name, path);
    if (list === null) return [];
    if (!Array.isArray(list) || !list.every((one) => hasText(one, id))) throw this.#notTheApi();
    return (list as never[]).map(read);
  }
}

function hasText(json: unknown, field: string): boolean {
  return typeof (json as Readonly<Record<string, unknown>> | null)?.[field] === 'string';
}

type CurrentJson = AsynqmonQueue & { readonly limits?: QueueLimits | null };

type Method = 'GET' | 'POST' | 'DELETE';

interface RequestOptions {
  readonly timeoutMs?: number;
  /** Sent as JSON. */
  readonly body?: object | undefined;
}

function queuePath(queue: string): string {
  return `/queues/${segment(queue)}`;
}

function listPath(queue: string, state: TaskState, group = ''): string {
  const path = queuePath(queue);
  return state === 'aggregating'
    ? `${path}/groups/${segment(group)}/aggregating_tasks`
    : `${path}/${state}_tasks`;
}

function queryOf({ page = 1, pageSize = 30 }: ListOptions = {}): string {
  return `?page=${page}&size=${pageSize}`;
}

function segment(name: string): string {
  // URL parsers take these for steps, also if they are written with %2e.
  if (name === '.' || name === '..') throw notOverHttp(`a name of '${name}'`);
  return encodeURIComponent(name);
}

function notOverHttp(what: string): HttpError {
  return new HttpError(409, `${what} is not available over the HTTP API`);
}
