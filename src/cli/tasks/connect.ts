import type { RedisBroker, RedisBrokerOptions } from 'escapement/tasks/redis';
import { unlessAborted } from '../../core/signal-options.ts';
import { hostFileSystem } from '../../log/file-system.ts';
import { LogLock } from '../../log/log-lock.ts';
import { listSegments } from '../../log/recover-segments.ts';
import { isUnavailable } from '../../tasks/broker/broker-errors.ts';
import { LOG_NAME } from '../../tasks/broker/embedded/durable-store.ts';
import { EmbeddedBroker, FOR_READING } from '../../tasks/broker/embedded/embedded-broker.ts';
import { messageOf } from '../../tasks/http/http-requests.ts';
import { CommandError } from '../command-error.ts';
import { requireFolder } from '../options.ts';
import type { Connection, ToRedis } from './connection.ts';
import { HttpTarget, unreachable } from './target/http-target.ts';
import { BrokerTarget, type TasksTarget } from './target/tasks-target.ts';

/** What a command does with tasks: inspect them, or change them as well. */
export type FolderAccess = 'read' | 'change';

/** The Redis broker is imported from the package, not bundled with the command, because it has a peer dependency. */
type RedisModule = typeof import('escapement/tasks/redis');

/** Connects to the tasks. Redis must respond; the HTTP API is reached by the first request. */
export async function connectTarget(
  connection: Connection,
  signal: AbortSignal,
  access: FolderAccess,
): Promise<TasksTarget> {
  if (connection.kind === 'http') return new HttpTarget(connection.url, connection.headers, signal);
  let damages = 0;
  const broker = await connectBroker(connection, signal, access, () => damages++);
  const target = new BrokerTarget(broker, connection.name);
  target.damages = damages;
  return target;
}

/** Opens the broker of a folder, or one on Redis, which must respond. */
export function connectBroker(
  connection: Exclude<Connection, { readonly kind: 'http' }>,
  signal: AbortSignal,
  access: FolderAccess,
  onDamage: () => void,
): Promise<EmbeddedBroker | RedisBroker> {
  if (connection.kind === 'folder') return openFolder(connection.name, access, onDamage);
  return connectRedis(connection, signal);
}

/**
 * Opens the broker of a folder that no process has open. For reading, nothing in the folder changes: what is shown is what the next
 * process would find.
 *
 * @throws CommandError - there are no tasks, or a process has the folder.
 */
export async function openFolder(
  path: string,
  access: FolderAccess,
  onCorruption: () => void,
): Promise<EmbeddedBroker> {
  await requireTasks(path);
  await requireIdle(path);
  // 'os': what is done is synced when the broker is closed, and not for each task.
  const options = { durability: 'os', [FOR_READING]: access === 'read', onCorruption } as const;
  return EmbeddedBroker.open({ dataPath: path, ...options });
}

/** @throws CommandError - it is not a folder, or has no tasks. */
export async function requireTasks(path: string): Promise<void> {
  requireFolder(path);
  if ((await listSegments(hostFileSystem, path, LOG_NAME)).length > 0) return;
  throw new CommandError(`${path}: there are no tasks in this folder`);
}

/** @throws CommandError - a process has the folder open. */
export async function requireIdle(path: string): Promise<void> {
  if (!(await LogLock.isHeld(path, LOG_NAME))) return;
  const owner = (await LogLock.ownerOf(path, LOG_NAME)) ?? 'a process';
  throw new CommandError(
    `${path}: ${owner} has this folder open; reach its tasks by its HTTP API (tasksHandler): --url http://…`,
  );
}

/** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - the first attempt failed; the command does not wait for the next one. */
export async function connectRedis({ name, options }: ToRedis, signal: AbortSignal): Promise<RedisBroker> {
  const { RedisBroker } = await redisModule();
  const failure = new AbortController();
  const broker = open(RedisBroker, {
    ...options,
    onHealth: (health) => {
      if (health.state === 'unavailable') failure.abort(redisUnreachable(name, health.cause));
    },
  });
  try {
    await unlessAborted(AbortSignal.any([signal, failure.signal]), broker.ping());
    return broker;
  } catch (error) {
    await broker.close();
    throw isUnavailable(error) ? redisUnreachable(name, (error as Error).cause) : error;
  }
}

/** @throws CommandError - the URI is invalid in a way that only the broker checks; the message has no password. */
function open(RedisBroker: RedisModule['RedisBroker'], options: RedisBrokerOptions): RedisBroker {
  try {
    return new RedisBroker(options);
  } catch (error) {
    throw new CommandError((error as Error).message.replace('options.url', '--uri'));
  }
}

async function redisModule(): Promise<RedisModule> {
  try {
    return await import('escapement/tasks/redis');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes("'ioredis'")) throw error;
    throw new CommandError('Redis needs a package that is not installed: npm install ioredis');
  }
}

function redisUnreachable(name: string, cause: unknown): Error {
  return unreachable(`cannot reach Redis at ${name}: ${messageOf(cause)}`, cause);
}
