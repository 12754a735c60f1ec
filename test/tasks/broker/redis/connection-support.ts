import { Redis, type RedisOptions } from 'ioredis';
import { expect, onTestFinished } from 'vitest';
import type {
  RedisConnectionOptions,
  RedisHealth,
} from '../../../../src/tasks/broker/redis/connection-options.ts';
import { RedisConnection } from '../../../../src/tasks/broker/redis/connection.ts';
import { measureRunningTime } from '../../../running-time.ts';
import { until } from '../../../until.ts';

/** A connection, and the changes of its health. */
export interface Opened {
  readonly connection: RedisConnection;
  readonly health: RedisHealth[];
}

const opened: RedisConnection[] = [];

export function open(options: RedisConnectionOptions): Opened {
  const health: RedisHealth[] = [];
  const connection = new RedisConnection({ onHealth: (each) => health.push(each), ...options });
  opened.push(connection);
  return { connection, health };
}

/** A client for the length of the test. */
export function clientOf(url: string, options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
  const client = new Redis(url, options);
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

/** For the end of a test. */
export async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((connection) => connection.close()));
}

/** A script that counts how often it has run, with a key as the scripts of the broker have them. */
export function count(connection: RedisConnection, queue = 'default'): Promise<unknown> {
  return connection.run((client) =>
    client.eval("return redis.call('INCR', KEYS[1])", 1, `asynq:{${queue}}:count`),
  );
}

/** Counts until it works. */
export function countUntilItWorks(connection: RedisConnection, queue?: string): Promise<void> {
  return until('Redis answers', async () => {
    await count(connection, queue);
    return true;
  });
}

/** Waits until it works, however busy the machine is, and counts nothing. */
export function untilReady(connection: RedisConnection, queue = 'default'): Promise<void> {
  return until('it is ready', async () => {
    await connection.run((client) => client.get(`asynq:{${queue}}:count`));
    return true;
  });
}

/** Waits for an operation that fails for that reason. On a busy machine the first ones reach their time limit before Redis refuses. */
export function untilRefused(connection: RedisConnection, error: object): Promise<void> {
  return until('it is refused', async () => {
    await expect(count(connection)).rejects.toMatchObject(error);
    return true;
  });
}

/** How long something takes while this process has its turns, in milliseconds. */
export async function timeOf(work: Promise<unknown>): Promise<number> {
  const end = measureRunningTime();
  await work;
  return end();
}

/** Checks that there was an outage, and each change of the health was reported once. On a busy machine there may be several. */
export function expectOutages(health: readonly RedisHealth[]): void {
  const states = health.map(({ state }) => state);
  const outages = Math.max(1, Math.floor(states.length / 2));
  expect(states).toEqual([
    'ready',
    ...Array.from({ length: outages }, () => ['unavailable', 'ready']).flat(),
  ]);
}

export const UNAVAILABLE = { name: 'EscapementError', code: 'ERR_BROKER_UNAVAILABLE' };

/** As above, for a reason. */
export function unavailableFor(reason: RegExp): object {
  return { ...UNAVAILABLE, message: expect.stringMatching(reason) as string };
}

export const CLOSED = { name: 'EscapementError', code: 'ERR_BROKER_CLOSED' };
