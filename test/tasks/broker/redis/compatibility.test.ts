import { fromBinary } from '@bufbuild/protobuf';
import { once } from 'node:events';
import { Client, type LeasedTask, Scheduler, Task, type TaskInfo, type ScheduleTick } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { QUEUES_KEY, QueueKeys } from '../../../../src/tasks/broker/redis/keys.ts';
import { TaskMessageSchema } from '../../../../src/tasks/wire/asynq-messages.gen.ts';
import {
  failure,
  LONG_MS,
  newTask,
  putInto,
  putIntoEach,
  QUEUE,
  SERVER,
  take,
} from '../../../conformance/broker/support.ts';
import { checkQueues } from '../../support/check-redis.ts';
import { dumpOf } from '../../support/redis-dump.ts';
import { redisForTest, type RedisSetup } from './setup.ts';

/*
 * What must hold for asynq beside us, rule by rule, by what is in Redis; test/interop asks asynq itself. Rules 4, 6 and 7 are about the
 * bytes of messages (test/tasks/wire), and rule 9, that values are bytes, holds for every broker (test/conformance). Two rules leave
 * nothing to test. Rule 10 is about the text of an error that asynq's own scripts raise: those that Go calls are Go's, and ours
 * answer with numbers. Rule 11 says that scripts need not be the same.
 */

const keys = new QueueKeys(QUEUE);
const AT_ONCE = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };

let setup: RedisSetup;
let client: Client;

beforeEach(async () => {
  setup = await redisForTest({ isChecked: true });
  client = new Client({ broker: setup.broker });
});

/** Returns the protobuf message of a task of the default queue. */
async function messageOf(id: string): Promise<ReturnType<typeof fromBinary<typeof TaskMessageSchema>>> {
  const bytes = await setup.redis.hgetBuffer(keys.task(id), 'msg');
  if (bytes === null) throw new Error(`${id} has no msg`);
  return fromBinary(TaskMessageSchema, bytes);
}

describe('rule 1: scores are whole seconds', () => {
  it('scores are whole seconds in every state, whatever the times are', async () => {
    const { broker, redis, advance } = setup;
    const { clock } = broker;
    const run = { taskId: 'id', taskType: 't', payload: new Uint8Array(0), queue: QUEUE, deadlineMs: 0 };
    const worker = { ...run, startedAtMs: 1_700_000_000_000.5 };
    const state = { ...SERVER, startedAtMs: 1_700_000_000_000.5, workers: [worker] };
    await putIntoEach(broker);
    await broker.enqueue(newTask({ processAtMs: clock.wallNow() + 1_234.567, retentionMs: 777.7 }));
    await broker.enqueue(newTask({ processAtMs: clock.wallNow() + 0.001, group: 'later' }));
    await broker.enqueue(newTask({ group: 'now' }));
    const [leased] = await broker.dequeue(QUEUE, 1, 1_500.5);
    await broker.extendLeases([leased as LeasedTask], 1_700.7);
    await broker.retry(leased as LeasedTask, failure(), clock.wallNow() + 2_345.6);
    await broker.takeGroup(QUEUE, 'now', AT_ONCE, 2_345.6);
    await broker.announceServer(() => state, 1_234.5);
    await broker.announceScheduler('one', () => [], 1_234.5);
    await broker.recordEnqueueEvent('entry', { taskId: 'id', atMs: clock.wallNow() + 0.5 });
    checkQueues(await dumpOf(redis));

    await advance(5_000);
    await broker.forward([QUEUE]);
    await broker.reclaimSets([QUEUE]);
    for (const task of await broker.dequeue(QUEUE, 2, 1_000.5)) await broker.complete(task);
    await broker.recover([QUEUE], 0.5, 999.9);
    await broker.change(QUEUE, { state: 'pending' }, 'archive');
    const zsets = [];
    for (const key of await redis.keys('asynq:*')) if ((await redis.type(key)) === 'zset') zsets.push(key);
    expect(zsets.length).toBeGreaterThan(6);
    checkQueues(await dumpOf(redis));
  });
});

describe('rule 2: pending_since is digits, of nanoseconds', () => {
  it.each(['enqueue', 'forward', 'release', 'runTask', 'runAll'])(
    'pending_since is in nanoseconds after the task became pending by %s',
    async (way) => {
      const { broker, redis } = setup;
      const { id } = newTask({ id: 'one' }).message;
      const beforeMs = Math.floor(broker.clock.wallNow());
      if (way === 'enqueue') await broker.enqueue(newTask({ id }));
      if (way === 'forward') {
        await broker.enqueue(newTask({ id, processAtMs: broker.clock.wallNow() + 1.5 }));
        await setup.advance(2_000);
        await broker.forward([QUEUE]);
      }
      if (way === 'release') {
        await broker.enqueue(newTask({ id }));
        await broker.release(await take(broker));
      }
      if (way.startsWith('run')) {
        await broker.enqueue(newTask({ id, processAtMs: broker.clock.wallNow() + LONG_MS }));
        await (way === 'runTask'
          ? broker.change(QUEUE, { id }, 'run')
          : broker.change(QUEUE, { state: 'scheduled' }, 'run'));
      }
      const since = await redis.hget(keys.task(id), 'pending_since');
      expect(since).toMatch(/^\d{13}000000$/);
      expect(BigInt(since ?? 0) / 1_000_000n).toBeGreaterThanOrEqual(beforeMs);
      await take(broker);
      expect(await redis.hexists(keys.task(id), 'pending_since')).toBe(0);
    },
  );
});

describe('rule 3: no id is left without its hash', () => {
  it('asynqmon can measure the memory of every task in a list', async () => {
    const { broker, redis } = setup;
    await putIntoEach(broker);
    // What asynqmon's script does, which has no idea of a task that is not there.
    const weigh = `local sum = 0
      for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, 20)) do sum = sum + redis.call('MEMORY', 'USAGE', ARGV[1] .. id) end
      return sum`;
    for (const key of [keys.scheduled, keys.retry, keys.archived, keys.completed, keys.group('group')]) {
      expect(await redis.eval(weigh, 1, key, keys.taskPrefix)).toBeGreaterThan(0);
    }
  });
});

describe('rule 5: strings are UTF-8', () => {
  it('names that are not valid are rejected before anything is written', async () => {
    const { broker, redis } = setup;
    const half = '\ud83d';
    for (const options of [{ queue: half }, { taskId: half }, { group: half }, { headers: { a: half } }]) {
      await expect(client.enqueue(new Task('t'), options)).rejects.toThrow(/well-formed/);
    }
    expect(() => new Task(half)).toThrow(/well-formed/);
    for (const message of [{ id: half }, { type: half }, { uniqueKey: half }, { group: half }]) {
      await expect(broker.enqueue(newTask(message))).rejects.toMatchObject({ code: 'ERR_WIRE_MESSAGE' });
    }
    expect(await redis.keys('*')).toEqual([]);
  });
});

describe('rule 8: a queue with tasks is registered', () => {
  it.each([{}, { processInMs: LONG_MS }, { group: 'g' }, { uniqueTtlMs: LONG_MS }])(
    'a queue is registered when a task is enqueued with the options %j',
    async (options) => {
      await client.enqueue(new Task('t', null, { queue: 'another' }), options);
      expect(await setup.redis.smembers(QUEUES_KEY)).toEqual(['another']);
    },
  );

  it('a queue is registered when a tick is enqueued', async () => {
    await setup.broker.enqueueTick(newTask({ queue: 'another' }), { entryKey: 'e', atMs: 1 });
    expect(await setup.redis.smembers(QUEUES_KEY)).toEqual(['another']);
  });

  it('a queue that another process has removed is registered by the next task', async () => {
    const { broker, redis } = setup;
    const { id } = await client.enqueue(new Task('t'));
    await broker.change(QUEUE, { id }, 'delete');
    const other = new RedisBroker({ url: setup.url });
    await other.removeQueue(QUEUE, { force: false });
    await other.close();
    expect(await redis.smembers(QUEUES_KEY)).toEqual([]);
    await client.enqueue(new Task('t'));
    expect(await redis.smembers(QUEUES_KEY)).toEqual([QUEUE]);
  });
});

describe('rule 12: our additions are where Go ignores them', () => {
  it('messages have only the fields of asynq', async () => {
    const { broker } = setup;
    const { id } = await client.enqueue(new Task('t', null, { headers: { a: 'b' }, retentionMs: LONG_MS }));
    expect((await messageOf(id)).$unknown).toBeUndefined();
    const leased = await take(broker);
    await broker.writeProgress(leased, '1');
    await broker.complete(leased);
    const message = await messageOf(id);
    expect([message.$unknown, message.headers]).toEqual([undefined, { a: 'b' }]);
  });

  it('our own fields and keys have x: in their names', async () => {
    const { broker, redis } = setup;
    await putIntoEach(broker);
    await broker.enqueueTick(newTask({ id: 'tick' }), { entryKey: 'e', atMs: 1 });
    const theirs = ['msg', 'state', 'pending_since', 'unique_key', 'group', 'result'];
    for (const key of await redis.keys(`${keys.taskPrefix}*`)) {
      for (const field of await redis.hkeys(key)) {
        if (!theirs.includes(field)) expect(field).toMatch(/^x:/);
      }
    }
    const known =
      /^(pending|active|lease|scheduled|retry|archived|completed|groups|(processed|failed)(:\d{4}-\d\d-\d\d)?|[tgx]:.+)$/;
    for (const key of await redis.keys(`${keys.prefix}*`))
      expect(key.slice(keys.prefix.length)).toMatch(known);
  });
});

describe('rule 13: generated ids are safe in URLs', () => {
  it.each(['task', 'tick', 'entry'])(
    'the id of a %s has only characters that are safe in URLs',
    async (what) => {
      const { broker } = setup;
      const { id } = await client.enqueue(new Task('t'));
      const scheduler = new Scheduler({ broker });
      const tick = once(scheduler, 'enqueued') as Promise<[TaskInfo, ScheduleTick]>;
      const entry = scheduler.register('@every 1s', new Task('t', { any: '/:run' }, { queue: 'another' }));
      await scheduler.start();
      const ids: Record<string, string> = { task: id, tick: (await tick)[0].id, entry };
      await scheduler.shutdown();
      // asynqmon's own verbs are words: `…/ID:run`.
      expect(ids[what]).toMatch(/^[\da-f-]{32,36}(:\d+)?$/);
    },
  );
});

describe('rule 14: a cluster has all keys of a queue together', () => {
  it('every key of a queue has its hash tag, and scripts use no other key except the set of queues', async () => {
    const { broker, redis } = setup;
    await putIntoEach(broker);
    await putInto(broker, 'aggregating', { group: 'taken', uniqueKey: 'asynq:{default}:unique:t:' });
    await broker.takeGroup(QUEUE, 'taken', AT_ONCE, LONG_MS);
    await broker.enqueueTick(newTask(), { entryKey: 'e', atMs: 1 });
    await broker.pause(QUEUE);
    const all = await redis.keys('*');
    expect(all.length).toBeGreaterThan(15);
    expect(all.filter((key) => !key.startsWith('asynq:{default}:'))).toEqual([QUEUES_KEY]);
  });
});
