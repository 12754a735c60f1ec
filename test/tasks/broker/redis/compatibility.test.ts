import { type LeasedTask, Scheduler, Task } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { describe, expect, it } from 'vitest';
import { QUEUES_KEY } from '../../../../src/tasks/broker/redis/keys.ts';
import { newTask, putInto, putIntoEach, take } from '../../../conformance/broker/support.ts';
import { problemsIn } from '../../support/problems-in.ts';
import { AT_ONCE, BYTES, failure, HOUR_MS, keys, QUEUE, ruleWorlds, server, worker } from './rule-world.ts';

/*
 * What must hold for asynq beside us, rule by rule, by what is in Redis; test/interop asks asynq itself. Two of its rules leave
 * nothing to test. Rule 10 is about the text of an error that asynq's own scripts raise: those that Go calls are Go's, and ours
 * answer with numbers. Rule 11 says that scripts need not be the same.
 */

const world = ruleWorlds();

describe('rule 1: scores are whole seconds', () => {
  it('scores are whole seconds in every state, whatever the times are', async () => {
    const { broker, redis, advance } = world();
    const { clock } = broker;
    await putIntoEach(broker);
    await broker.enqueue(newTask({ processAtMs: clock.wallNow() + 1_234.567, retentionMs: 777.7 }));
    await broker.enqueue(newTask({ processAtMs: clock.wallNow() + 0.001, group: 'later' }));
    await broker.enqueue(newTask({ group: 'now' }));
    const [leased] = await broker.dequeue(QUEUE, 1, 1_500.5);
    await broker.extendLeases([leased as LeasedTask], 1_700.7);
    await broker.retry(leased as LeasedTask, failure, clock.wallNow() + 2_345.6);
    await broker.takeGroup(QUEUE, 'now', AT_ONCE, 2_345.6);
    await broker.announceServer(() => ({ ...server, workers: [worker] }), 1_234.5);
    await broker.announceScheduler('one', () => [], 1_234.5);
    await broker.recordEnqueueEvent('entry', { taskId: 'id', atMs: clock.wallNow() + 0.5 });
    expect(await problemsIn(redis, QUEUE)).toEqual([]);

    await advance(5_000);
    await broker.forward([QUEUE]);
    await broker.reclaimSets([QUEUE]);
    for (const task of await broker.dequeue(QUEUE, 2, 1_000.5)) await broker.complete(task);
    await broker.recover([QUEUE], 0.5, 999.9);
    await broker.change(QUEUE, { state: 'pending' }, 'archive');
    const zsets = [];
    for (const key of await redis.keys('asynq:*')) if ((await redis.type(key)) === 'zset') zsets.push(key);
    expect(zsets.length).toBeGreaterThan(6);
    expect(await problemsIn(redis, QUEUE)).toEqual([]);
  });

  it('rounding to seconds makes no task due early', async () => {
    const { broker, redis } = world();
    const atMs = broker.clock.wallNow() + 60_000.5;
    const { id } = (await broker.enqueue(newTask({ processAtMs: atMs }))).message;
    expect(Number(await redis.zscore(keys.scheduled, id)) * 1_000).toBeGreaterThanOrEqual(atMs);
  });
});

describe('rule 2: pending_since is digits, of nanoseconds', () => {
  it.each(['enqueue', 'forward', 'release', 'runTask', 'runAll'])(
    'pending_since is in nanoseconds after the task became pending by %s',
    async (way) => {
      const { broker, redis } = world();
      const { id } = newTask({ id: 'one' }).message;
      const beforeMs = Math.floor(broker.clock.wallNow());
      if (way === 'enqueue') await broker.enqueue(newTask({ id }));
      if (way === 'forward') {
        await broker.enqueue(newTask({ id, processAtMs: broker.clock.wallNow() + 1.5 }));
        await world().advance(2_000);
        await broker.forward([QUEUE]);
      }
      if (way === 'release') {
        await broker.enqueue(newTask({ id }));
        await broker.release(await take(broker));
      }
      if (way.startsWith('run')) {
        await broker.enqueue(newTask({ id, processAtMs: broker.clock.wallNow() + HOUR_MS }));
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
  it('no operation that removes tasks leaves an id without its hash', async () => {
    const { broker, redis } = world();
    await putIntoEach(broker);
    for (const id of ['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating']) {
      await broker.change(QUEUE, { id }, 'delete');
      expect(await problemsIn(redis, QUEUE)).toEqual([]);
    }
    expect(await redis.keys(`${keys.taskPrefix}*`)).toEqual([keys.task('active')]);
  });

  it('an id without a hash that another program has left becomes no task', async () => {
    const { broker, redis } = world();
    await broker.enqueue(newTask());
    await redis.rpush(keys.pending, 'ghost pending');
    for (const state of ['scheduled', 'retry', 'completed'] as const) {
      await redis.zadd(keys[state], 1, `ghost ${state}`);
    }
    await broker.forward([QUEUE]);
    await broker.deleteExpired([QUEUE], 100);
    await broker.dequeue(QUEUE, 10, HOUR_MS);
    expect(await redis.keys(`${keys.taskPrefix}ghost*`)).toEqual([]);
  });

  it('asynqmon can measure the memory of every task in a list', async () => {
    const { broker, redis } = world();
    await putIntoEach(broker);
    // What asynqmon's script does, which has no idea of a task that is not there.
    const weigh = `local sum = 0
      for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, 20)) do sum = sum + redis.call('MEMORY', 'USAGE', ARGV[1] .. id) end
      return sum`;
    for (const key of [keys.scheduled, keys.retry, keys.archived, keys.completed, keys.group('group')]) {
      expect(await redis.eval(weigh, 1, key, keys.taskPrefix)).toBeGreaterThan(0);
    }
  });

  it('a result that is written too late creates no hash', async () => {
    const { broker, redis } = world();
    await broker.enqueue(newTask());
    const leased = await take(broker);
    await broker.complete(leased);
    await expect(broker.writeResult(leased, BYTES)).rejects.toMatchObject({ code: 'ERR_LEASE_LOST' });
    await expect(broker.writeProgress(leased, '1')).rejects.toMatchObject({ code: 'ERR_LEASE_LOST' });
    expect(await redis.exists(keys.task(leased.message.id))).toBe(0);
  });
});

describe('rule 8: a queue with tasks is registered', () => {
  it.each([{}, { processInMs: HOUR_MS }, { group: 'g' }, { uniqueTtlMs: HOUR_MS }])(
    'a queue is registered when a task is enqueued with the options %j',
    async (options) => {
      await world().client.enqueue(new Task('t', null, { queue: 'another' }), options);
      expect(await world().redis.smembers(QUEUES_KEY)).toEqual(['another']);
    },
  );

  it('a queue is registered when a tick is enqueued', async () => {
    await world().broker.enqueueTick(newTask({ queue: 'another' }), { entryKey: 'e', atMs: 1 });
    expect(await world().redis.smembers(QUEUES_KEY)).toEqual(['another']);
  });

  it('a queue that another process has removed is registered by the next task', async () => {
    const { broker, redis } = world();
    const { id } = await world().client.enqueue(new Task('t'));
    await broker.change(QUEUE, { id }, 'delete');
    const other = new RedisBroker({ url: world().url });
    await other.removeQueue(QUEUE, { force: false });
    await other.close();
    expect(await redis.smembers(QUEUES_KEY)).toEqual([]);
    await world().client.enqueue(new Task('t'));
    expect(await redis.smembers(QUEUES_KEY)).toEqual([QUEUE]);
  });
});

describe('rule 12: our additions are where Go ignores them', () => {
  it('messages have only the fields of asynq', async () => {
    const { broker } = world();
    const { id } = await world().client.enqueue(
      new Task('t', null, { headers: { a: 'b' }, retentionMs: HOUR_MS }),
    );
    expect((await world().messageOf(id)).$unknown).toBeUndefined();
    const leased = await take(broker);
    await broker.writeProgress(leased, '1');
    await broker.complete(leased);
    const message = await world().messageOf(id);
    expect([message.$unknown, message.headers]).toEqual([undefined, { a: 'b' }]);
  });

  it('our own fields and keys have x: in their names', async () => {
    const { broker, redis } = world();
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
      const { broker } = world();
      const { id } = await world().client.enqueue(new Task('t'));
      const scheduler = new Scheduler({ broker });
      const tick = new Promise<string>((resolve) =>
        scheduler.on('enqueued', (info) => {
          resolve(info.id);
        }),
      );
      const entry = scheduler.register('@every 1s', new Task('t', { any: '/:run' }, { queue: 'another' }));
      await scheduler.start();
      const ids: Record<string, string> = { task: id, tick: await tick, entry };
      await scheduler.shutdown();
      // asynqmon's own verbs are words: `…/ID:run`.
      expect(ids[what]).toMatch(/^[\da-f-]{32,36}(:\d+)?$/);
    },
  );
});

describe('rule 14: a cluster has all keys of a queue together', () => {
  it('every key of a queue has its hash tag, and scripts use no other key except the set of queues', async () => {
    const { broker, redis } = world();
    await putIntoEach(broker);
    await putInto(broker, 'aggregating', { group: 'taken', uniqueKey: 'asynq:{default}:unique:t:' });
    await broker.takeGroup(QUEUE, 'taken', AT_ONCE, HOUR_MS);
    await broker.enqueueTick(newTask(), { entryKey: 'e', atMs: 1 });
    await broker.pause(QUEUE);
    const all = await redis.keys('*');
    expect(all.length).toBeGreaterThan(15);
    expect(all.filter((key) => !key.startsWith('asynq:{default}:'))).toEqual([QUEUES_KEY]);
  });
});
