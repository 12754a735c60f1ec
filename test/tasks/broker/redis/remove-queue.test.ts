import { Redis } from 'ioredis';
import { RedisBroker } from 'escapement/tasks/redis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LONG_MS, newTask, QUEUE, take } from '../../../conformance/broker/support.ts';
import { redisSetup, type RedisSetup } from './setup.ts';

const P = `asynq:{${QUEUE}}:`;

let setup: RedisSetup;
let client: Redis;
let slow: RedisBroker;

beforeEach(async () => {
  setup = await redisSetup();
  client = new Redis(setup.url, { maxRetriesPerRequest: 0 });
  await client.ping();
  slow = new RedisBroker({ client });
});

afterEach(async () => {
  await slow.close();
  client.disconnect();
  await setup.dispose();
});

/** Something that happens after the first script, or command, that the slow broker has run, and before its next one. */
function meanwhile(method: 'callBuffer' | 'sismember', happen: () => Promise<unknown>): void {
  const call = client[method].bind(client) as (...args: unknown[]) => Promise<unknown>;
  const interposed = async (...args: unknown[]): Promise<unknown> => {
    const reply = await call(...args);
    Reflect.deleteProperty(client, method);
    await happen();
    return reply;
  };
  Object.assign(client, { [method]: interposed });
}

describe('a queue that is removed while other processes use it', () => {
  test('a queue that could not be removed lists no groups or sets without tasks', async () => {
    const { broker, redis } = setup;
    await broker.enqueue(newTask({ id: 'held', group: 'held' }));
    await broker.takeGroup(QUEUE, 'held', { graceMs: LONG_MS, maxDelayMs: 0, maxSize: 1 }, LONG_MS);
    await broker.enqueue(newTask({ id: 'grouped', group: 'group' }));
    meanwhile('callBuffer', async () => {
      await broker.enqueue(newTask());
      await take(broker);
    });
    await expect(slow.removeQueue(QUEUE, { force: true })).rejects.toMatchObject({
      code: 'ERR_QUEUE_NOT_EMPTY',
    });
    expect(await redis.keys(`${P}g:*`)).toEqual([]);
    expect(await redis.exists(`${P}groups`, `${P}aggregation_sets`)).toBe(0);
  });

  test('a removed queue is not paused when it is created again', async () => {
    const { broker, redis } = setup;
    await broker.enqueue(newTask());
    meanwhile('sismember', () => broker.removeQueue(QUEUE, { force: true }));
    await expect(slow.pause(QUEUE)).rejects.toMatchObject({ code: 'ERR_QUEUE_NOT_FOUND' });
    expect(await redis.keys('*')).toEqual([]);
  });
});

describe('a queue whose only tasks are in a set', () => {
  test('a queue whose only tasks are in a set is not removed without force', async () => {
    const { broker } = setup;
    await broker.enqueue(newTask({ id: 'held', group: 'g' }));
    const limits = { graceMs: LONG_MS, maxDelayMs: 0, maxSize: 1 };
    await broker.takeGroup(QUEUE, 'g', limits, LONG_MS);
    await expect(broker.removeQueue(QUEUE, { force: false })).rejects.toMatchObject({
      code: 'ERR_QUEUE_NOT_EMPTY',
    });
    expect((await broker.task(QUEUE, 'held')).state).toBe('aggregating');
  });
});
