import type { PartsShown } from '../../dashboard/runtime-parts.ts';
import { BrokerSource, type TasksSource } from '../../dashboard/tasks-source.ts';
import { EscapementError } from '../../core/errors.ts';
import { HttpError } from '../../tasks/http/http-error.ts';
import { CommandError } from '../command-error.ts';
import { connectRedis } from '../tasks/connect.ts';
import { connectionOf, type ConnectionOptions, type Environment } from '../tasks/connection.ts';
import { openFolder } from '../tasks/folder.ts';
import { HttpStatusError, Unreachable } from '../tasks/target/http-api.ts';
import { HttpTarget } from '../tasks/target/http-target.ts';

/** What the dashboard shows. */
export interface Shown {
  readonly title: string;
  readonly source: TasksSource;
  readonly parts: Partial<PartsShown>;
  readonly isReadOnly: boolean;
  close(): Promise<void>;
}

/** Connects to tasks in Redis, in a folder or in another process. @param isWritten - whether the folder may be changed. */
export async function openTasks(
  options: ConnectionOptions,
  isWritten: boolean,
  environment: Environment,
  signal: AbortSignal,
): Promise<Shown> {
  const connection = connectionOf(options, environment);
  if (connection.kind === 'http') {
    // Requests end with the server of the dashboard; Ctrl-C must not make errors of them.
    const target = new HttpTarget(connection.url, connection.headers, new AbortController().signal);
    await target.queueInfos();
    return shownOf(target.name, sourceOverHttp(target), false, () => Promise.resolve());
  }
  if (connection.kind === 'redis') {
    const broker = await connectRedis(connection, signal);
    return shownOf(connection.name, new BrokerSource(broker), false, () => broker.close());
  }
  const { path } = connection;
  const broker = await openFolder(path, isWritten ? 'change' : 'read', () => undefined);
  return shownOf(path, new BrokerSource(broker), !isWritten, () => broker.close());
}

function shownOf(title: string, source: TasksSource, isReadOnly: boolean, close: () => Promise<void>): Shown {
  return { title, source: Object.assign(source, { name: title }), parts: {}, isReadOnly, close };
}

/** The tasks of another process. What its API does not have is refused (409), and a search reads pages. */
export function sourceOverHttp(target: HttpTarget): TasksSource {
  return {
    name: target.name,
    queueInfos: () => answer(target.queueInfos()),
    getQueueInfo: (queue) => answer(target.getQueueInfo(queue)),
    removeQueue: (queue, force) => answer(target.removeQueue(queue, force)),
    history: (queue, days) => answer(target.history(queue, days)),
    groups: (queue) => answer(target.groups(queue)),
    limits: (queue) => answer(target.limits(queue)),
    setLimits: (queue, limits) => answer(target.setLimits(queue, limits)),
    keys: (queue, page) => answer(target.keys(queue, page ?? {})),
    pauseQueue: (queue) => answer(target.pauseQueue(queue)),
    unpauseQueue: (queue) => answer(target.unpauseQueue(queue)),
    list: (queue, state, page, group) => answer(target.list(queue, state, page, group)),
    getTaskInfo: (queue, id) => answer(target.getTaskInfo(queue, id)),
    change: (queue, which, change) => answer(target.change(queue, which, change)),
    cancelTask: (queue, id) => answer(target.cancelTask({ id, queue, outcome: 'retry' })),
    servers: () => answer(target.servers()),
    schedulerEntries: () => answer(target.schedulerEntries()),
    listSchedulerEnqueueEvents: (id, page) => answer(target.listSchedulerEnqueueEvents(id, page)),
  };
}

/** Rejects with what the dashboard answers to its own client. */
async function answer<R>(response: Promise<R>): Promise<R> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof Unreachable) throw new EscapementError('ERR_BROKER_UNAVAILABLE', error.message);
    if (error instanceof HttpStatusError) {
      const { status, message } = error;
      // Its client is the dashboard, whose own login is another one.
      if (status >= 500 || status === 401 || status === 403) throw new HttpError(502, message);
      throw new HttpError(status, message);
    }
    if (error instanceof CommandError) throw new HttpError(409, error.message);
    throw error;
  }
}
