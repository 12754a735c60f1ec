import { isUnavailable } from '../../../tasks/broker/broker-errors.ts';
import type { RedisBroker, RedisBrokerOptions } from 'escapement/tasks/redis';
import { CommandError } from '../../command-error.ts';
import { BrokerTarget } from '../target/broker-target.ts';
import { HttpApi, Unreachable } from '../target/http-api.ts';
import { HttpTarget } from '../target/http-target.ts';
import type { TasksTarget } from '../target/tasks-target.ts';
import type { Connection, RedisConnection } from './connection.ts';

/** The way to Redis, which the package has outside of the command: with it comes a peer dependency. */
type RedisModule = typeof import('escapement/tasks/redis');

/** Reaches what a URI names. Of Redis, asks whether it is there; the HTTP API will say so with its first answer. */
export async function connectTarget(connection: Connection, signal: AbortSignal): Promise<TasksTarget> {
  if (connection.kind === 'redis') return connectRedis(connection, await redisModule(), signal);
  const { url, headers } = connection;
  return new HttpTarget(new HttpApi(url, headers, signal));
}

/** @throws Unreachable - the first attempt has failed: whoever sits there does not want to wait for the next one. */
async function connectRedis(
  { url, name, username, password, tls }: RedisConnection,
  { RedisBroker }: RedisModule,
  signal: AbortSignal,
): Promise<TasksTarget> {
  let fail: (cause: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = (cause) => {
      reject(unreachable(name, cause));
    };
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
  const broker = open(RedisBroker, {
    url,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
    onHealth: (health) => {
      if (health.state === 'unavailable') fail(health.cause);
    },
  });
  failed.catch(() => undefined); // later on, every operation says so itself
  try {
    await Promise.race([broker.ping(), failed]);
    return new BrokerTarget(name, broker);
  } catch (error) {
    await broker.close();
    throw isUnavailable(error) ? unreachable(name, (error as Error).cause) : error;
  }
}

/** @throws CommandError - the URI is wrong in a way that only the broker knows; its message has no password. */
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
    throw new CommandError('the way to Redis is a package that is not installed here: npm install ioredis');
  }
}

function unreachable(name: string, cause: unknown): Unreachable {
  return new Unreachable(`cannot reach Redis at ${name}: ${reasonOf(cause)}`);
}

/** An error of several attempts has no message of its own. */
function reasonOf(cause: unknown): string {
  const { message = '', code = '' } = cause as { message?: string; code?: string };
  return message === '' ? code : message;
}
