import { systemClock } from 'escapement';
import { Inspector, Scheduler, Task } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { UPDATE_MESSAGE } from '../../../../src/tasks/broker/redis/administration.ts';
import {
  QueueKeys,
  schedulerHistoryKey,
  schedulerKey,
  serverKey,
  workersKey,
} from '../../../../src/tasks/broker/redis/keys.ts';
import { TRANSFER } from '../../../../src/tasks/broker/transfer.ts';
import { encodeTaskMessage } from '../../../../src/tasks/wire/message-codec.ts';
import {
  expectCode,
  failure,
  idsIn,
  LONG_MS,
  newTask,
  QUEUE,
  take,
  takeSet,
} from '../../../conformance/broker/support.ts';
import { redisForTest, type RedisSetup } from './setup.ts';

const keys = new QueueKeys('low');

/** Returns the hash tag as Redis defines it: the text between the first `{` and the next `}`, or the whole key if that is empty. */
function hashTagOf(key: string): string {
  const from = key.indexOf('{') + 1;
  const to = key.indexOf('}', from);
  return to > from ? key.slice(from, to) : key;
}

describe('the keys of a queue', () => {
  it('keys of counts have UTC days', () => {
    const lastOfTheDay = Date.UTC(2026, 10, 21, 23, 59, 59, 999);
    expect(keys.processedOn(lastOfTheDay)).toBe('asynq:{low}:processed:2026-11-21');
    expect(keys.failedOn(lastOfTheDay + 1)).toBe('asynq:{low}:failed:2026-11-22');
  });

  it.each(['low', 'a}b', '{', '{x}', 'with space', 'ä:😀'])(
    'all keys of a queue are on one cluster node: %s',
    (queue) => {
      const tags = (Object.values(new QueueKeys(queue)) as string[]).map(hashTagOf);
      expect(new Set(tags).size).toBe(1);
    },
  );

  it.each(['}', '}x', '', ' ', '\ud83d', undefined])('the queue name %j is rejected', (queue) => {
    expect(() => new QueueKeys(queue as string)).toThrow(/^queue must be/);
  });
});

it("keys of servers and schedulers are asynq's", () => {
  expect(serverKey('h', 7, 's')).toBe('asynq:servers:{h:7:s}');
  expect(workersKey('h', 7, 's')).toBe('asynq:workers:{h:7:s}');
  expect(schedulerKey('h:7:s')).toBe('asynq:schedulers:{h:7:s}');
  expect(schedulerHistoryKey('e')).toBe('asynq:scheduler_history:e');
});

let setup: RedisSetup;

beforeEach(async () => {
  setup = await redisForTest();
});

describe('names of other programs', () => {
  let inspector: Inspector;

  beforeEach(() => {
    inspector = new Inspector({ broker: setup.broker });
  });
  afterEach(() => inspector.close());

  test('a queue whose keys could be those of another queue is not listed, changed or removed', async () => {
    const { broker, redis } = setup;
    await broker.enqueue(newTask({ queue: 'c', id: 'a', group: 'g}:pending' }));
    await redis.sadd('asynq:queues', 'c}:g:g');
    expect(await inspector.queues()).toEqual(['c']);
    expect(await inspector.repair({ apply: true })).toEqual([]);
    for (const act of [
      () => inspector.getQueueInfo('c}:g:g'),
      () => inspector.listPendingTasks('c}:g:g'),
      () => inspector.deleteAllPendingTasks('c}:g:g'),
      () => inspector.deleteQueue('c}:g:g', { force: true }),
    ]) {
      await expect(async () => act()).rejects.toThrow(
        "queue must be a queue name that does not begin with '}' and does not contain '}:'. Received 'c}:g:g'",
      );
    }
    expect((await broker.task('c', 'a')).state).toBe('aggregating');
  });

  test.each(['a{b', 'a}b', '{x}'])(
    'a queue with an unusual name is listed and removed if its keys are its own: %s',
    async (queue) => {
      const { redis } = setup;
      const { message } = newTask({ queue, id: 'a' });
      await redis.sadd('asynq:queues', queue);
      await redis.lpush(`asynq:{${queue}}:pending`, 'a');
      const msg = Buffer.from(encodeTaskMessage(message));
      await redis.hset(`asynq:{${queue}}:t:a`, 'state', 'pending', 'msg', msg);
      expect(await inspector.queues()).toEqual([queue]);
      expect(await inspector.listPendingTasks(queue)).toHaveLength(1);
      await inspector.deleteQueue(queue, { force: true });
      expect(await redis.keys('*')).toEqual([]);
    },
  );

  test('a schedule entry leaves nothing in Redis 400 days after it was unregistered', async () => {
    const { broker, redis } = setup;
    const scheduler = new Scheduler({ broker });
    const id = scheduler.register('@every 1s', new Task('tick', undefined, { queue: 'ticks' }));
    const enqueued = new Promise((resolve) => scheduler.once('enqueued', resolve));
    await scheduler.start();
    await setup.advance(1_000);
    await enqueued;
    scheduler.unregister(id);
    await scheduler.shutdown();
    expect(await inspector.listSchedulerEnqueueEvents(id)).toHaveLength(1);
    await setup.advance(91 * 86_400_000);
    expect(await inspector.listSchedulerEnqueueEvents(id)).toEqual([]);
    expect(await broker.lastTickMs('ticks', id)).toBeDefined();
    await setup.advance(310 * 86_400_000);
    const leftovers = (await redis.keys('*')).filter((key) => key.includes(id) || key.includes('x:ticks'));
    expect(leftovers.filter((key) => !key.includes(':t:'))).toEqual([]);
  });
});

const P = `asynq:{${QUEUE}}:`;
let client: Redis;

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
  let slow: RedisBroker;

  beforeEach(async () => {
    client = new Redis(setup.url, { maxRetriesPerRequest: 0 });
    await client.ping();
    slow = new RedisBroker({ client });
  });
  afterEach(async () => {
    await slow.close();
    client.disconnect();
  });

  test('a queue that could not be removed lists no groups or sets without tasks', async () => {
    const { broker, redis } = setup;
    await broker.enqueue(newTask({ id: 'held', group: 'held' }));
    await takeSet(broker, 'held');
    await broker.enqueue(newTask({ id: 'grouped', group: 'group' }));
    meanwhile('callBuffer', async () => {
      await broker.enqueue(newTask());
      await take(broker);
    });
    await expectCode('ERR_QUEUE_NOT_EMPTY', slow.removeQueue(QUEUE, { force: true }));
    expect(await redis.keys(`${P}g:*`)).toEqual([]);
    expect(await redis.exists(`${P}groups`, `${P}aggregation_sets`)).toBe(0);
  });

  test('a removed queue is not paused when it is created again', async () => {
    const { broker, redis } = setup;
    await broker.enqueue(newTask());
    meanwhile('sismember', () => broker.removeQueue(QUEUE, { force: true }));
    await expectCode('ERR_QUEUE_NOT_FOUND', slow.pause(QUEUE));
    expect(await redis.keys('*')).toEqual([]);
  });
});

test('the archive of a queue keeps the latest maxArchived tasks, also of those that an inspector archives', async () => {
  const broker = new RedisBroker({ url: setup.url, clock: setup.broker.clock, maxArchived: 2 });
  for (const id of ['1', '2', '3', '4', '5']) {
    await broker.enqueue(newTask({ id }));
    if (id === '4') await broker.archive(await take(broker), failure());
    else if (id === '5') await broker.change(QUEUE, { state: 'pending' }, 'archive');
    else await broker.change(QUEUE, { id }, 'archive');
    await setup.advance(1_000);
    expect(await idsIn(broker, 'archived')).toEqual(
      [String(Number(id) - 1), id].filter((each) => each > '0'),
    );
  }
  await broker.close();
});

test('a payload is not written over a message that has changed since it was read', async () => {
  const { broker, redis } = setup;
  await broker.enqueue(newTask({ id: 'a', processAtMs: broker.clock.wallNow() + LONG_MS }));
  expect(await UPDATE_MESSAGE.run(redis, [P], ['a', 'another message', 'new'])).toBe(-1);
  await broker.updatePayload(QUEUE, 'a', new Uint8Array([7]));
  expect((await broker.task(QUEUE, 'a')).message.payload).toEqual(new Uint8Array([7]));
});

test('tasks in a set are listed with those of their own group, also if its name is the beginning of another name', async () => {
  const { broker } = setup;
  await broker.enqueue(newTask({ id: 'own', group: 'a:b' }));
  await takeSet(broker, 'a:b');
  expect(await idsIn(broker, 'aggregating', 'a:b')).toEqual(['own']);
  expect(await idsIn(broker, 'aggregating', 'a')).toEqual([]);
});

test('the latency of a queue is exact, although Redis has since when its task waits in nanoseconds', async () => {
  let wallMs = Date.UTC(2100, 0, 1) + 4;
  const clock = { ...systemClock, wallNow: () => wallMs };
  await using broker = new RedisBroker({ url: setup.url, clock });
  await broker.enqueue(newTask());
  expect(await broker.queueStats(QUEUE)).toMatchObject({ latencyMs: 0, runnableMs: 0 });
  wallMs += 1_234;
  expect(await broker.queueStats(QUEUE)).toMatchObject({ latencyMs: 1_234, runnableMs: 1_234 });
});

test('a copy has the locks and the times of tasks without pending_since, active ones and those that a Go server has returned', async () => {
  const { broker, redis } = setup;
  const ofQueue = new QueueKeys(QUEUE);
  for (const id of ['1', '2']) {
    await broker.enqueue(newTask({ id, uniqueKey: `${ofQueue.lockPrefix}${id}` }));
  }
  for (let leased = 0; leased < 3; leased++) {
    const tasks = [];
    for await (const piece of broker[TRANSFER]().read())
      if (piece.kind === 'tasks') tasks.push(...piece.tasks);
    expect(tasks).toHaveLength(2);
    for (const { atMs, lockEndsMs } of tasks) {
      expect(lockEndsMs).toBeGreaterThan(broker.clock.wallNow());
      expect(Math.abs(atMs - broker.clock.wallNow())).toBeLessThan(5_000);
    }
    await redis.hdel(ofQueue.task('2'), 'pending_since');
    if (leased < 2) await take(broker);
  }
});
