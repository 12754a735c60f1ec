import type { PartsShown } from '../../dashboard/runtime-parts.ts';
import { BrokerSource, type TasksSource } from '../../dashboard/tasks-source.ts';
import { EscapementError } from '../../core/errors.ts';
import { HttpError } from '../../tasks/http/http-error.ts';
import { CommandError } from '../command-error.ts';
import { connectBroker } from '../tasks/connect.ts';
import { connectionOf, type ConnectionOptions, type Environment } from '../tasks/connection.ts';
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
    return shownOf(sourceOverHttp(target), false, () => target.close());
  }
  const broker = await connectBroker(connection, signal, isWritten ? 'change' : 'read', () => undefined);
  const isReadOnly = connection.kind === 'folder' && !isWritten;
  return shownOf(new BrokerSource(broker, connection.name), isReadOnly, () => broker.close());
}

function shownOf(source: TasksSource, isReadOnly: boolean, close: () => Promise<void>): Shown {
  return { title: source.name, source, parts: {}, isReadOnly, close };
}

/**
 * Returns the tasks of another process as a source: each operation of the target, with the errors of a dashboard. What the API does not
 * have is refused (409), and a search reads pages.
 */
export function sourceOverHttp(target: HttpTarget): TasksSource {
  return new Proxy(target, {
    get(_, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...values: readonly unknown[]) => answer(() => Reflect.apply(member, target, values));
    },
  });
}

/** Rejects with what the dashboard answers to its own client. */
async function answer(operation: () => unknown): Promise<unknown> {
  try {
    return await operation();
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
