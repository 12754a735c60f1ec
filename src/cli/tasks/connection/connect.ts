import { CommandError } from '../../command-error.ts';
import { HttpApi } from '../target/http-api.ts';
import { HttpTarget } from '../target/http-target.ts';
import type { TasksTarget } from '../target/tasks-target.ts';
import type { Connection } from './connection.ts';

/** Reaches what a URI names. Of Redis, asks whether it is there; the HTTP API will say so with its first answer. */
export async function connectTarget(connection: Connection, signal: AbortSignal): Promise<TasksTarget> {
  if (connection.kind === 'http')
    return new HttpTarget(new HttpApi(connection.url, connection.headers, signal));
  return Promise.reject(new CommandError('Redis'));
}
