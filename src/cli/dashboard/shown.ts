import type { PartsShown } from '../../dashboard/runtime-parts.ts';
import { BrokerSource, type TasksSource } from '../../dashboard/tasks-source.ts';
import { connectBroker } from '../tasks/connect.ts';
import { connectionOf, type ConnectionOptions, type Environment } from '../tasks/connection.ts';
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
    return shownOf(target, false, () => target.close());
  }
  const broker = await connectBroker(connection, signal, isWritten ? 'change' : 'read', () => undefined);
  const isReadOnly = connection.kind === 'folder' && !isWritten;
  return shownOf(new BrokerSource(broker, connection.name), isReadOnly, () => broker.close());
}

function shownOf(source: TasksSource, isReadOnly: boolean, close: () => Promise<void>): Shown {
  return { title: source.name, source, parts: {}, isReadOnly, close };
}
