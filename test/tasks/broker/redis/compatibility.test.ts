import { fromBinary } from '@bufbuild/protobuf';
import { type LeasedTask, Scheduler, Server, Task } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { describe, expect, it } from 'vitest';
import {
  QUEUES_KEY,
  schedulerKey,
  SCHEDULERS_KEY,
  serverKey,
  SERVERS_KEY,
  workersKey,
} from '../../../../src/tasks/broker/redis/keys.ts';
import {
  SchedulerEntrySchema,
  ServerInfoSchema,
  WorkerInfoSchema,
} from '../../../../src/tasks/wire/asynq-messages.gen.ts';
import { newTask, putInto, putIntoEach, take } from '../../../conformance/broker/support.ts';
import { until } from '../../../redis/until.ts';
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

describe('rule 4: there is a timeout or a deadline', () => {
  const written = async (options: object): Promise<bigint[]> => {
    const { id } = await world().client.enqueue(new Task('t'), options);
    const { timeout, deadline } = await world().messageOf(id);
    return [timeout, deadline];
  };

  it.each([
    ['none', {}, [1_800n, 0n]],
    ['a timeout', { timeoutMs: 1_000 }, [1n, 0n]],
    ['a timeout of less than a second', { timeoutMs: 1 }, [1n, 0n]],
    ['a deadline', { deadline: 5_000 }, [0n, 5n]],
    ['a deadline of less than a second', { deadline: 1 }, [0n, 1n]],
    ['any time', { timeoutMs: 0 }, [3_155_760_000n, 0n]],
    ['a deadline that is none', { deadline: 0 }, [3_155_760_000n, 0n]],
  ])('a message has a timeout or a deadline if the client is given %s', async (_, options, expected) => {
    expect(await written(options)).toEqual(expected);
  });

  it('a task without a time limit has none after its retries either', async () => {
    const { broker } = world();
    const { id } = await world().client.enqueue(new Task('t'), { timeoutMs: 0 });
    const leased = await take(broker);
    expect(leased.message.timeoutMs).toBe(0);
    await broker.retry(leased, failure, 0);
    expect((await world().messageOf(id)).timeout).toBe(3_155_760_000n);
    expect((await broker.task(QUEUE, id)).message.timeoutMs).toBe(0);
  });
});

describe('rule 5: strings are UTF-8', () => {
  it.each(['half \ud83d of a pair', '\udc00'])(
    'an error message that is not well-formed UTF-8 is stored as UTF-8: %j',
    async (error) => {
      const { broker } = world();
      for (const way of ['retry', 'archive'] as const) {
        const { id } = (await broker.enqueue(newTask())).message;
        const leased = await take(broker);
        if (way === 'retry') await broker.retry(leased, { ...failure, error }, HOUR_MS);
        else await broker.archive(leased, { ...failure, error });
        expect((await world().messageOf(id)).errorMsg).toBe(error.toWellFormed());
      }
    },
  );

  it('a task is settled whatever its handler throws', async () => {
    const { broker } = world();
    const one = new Server({ broker, retryDelayMs: () => HOUR_MS, concurrency: 1 });
    await one.start((task) => {
      if (task.type === 'half') throw new Error('\ud83d');
      throw BYTES; // eslint-disable-line @typescript-eslint/only-throw-error -- some do
    });
    const ids = [
      (await world().client.enqueue(new Task('bytes'))).id,
      (await world().client.enqueue(new Task('half'))).id,
    ];
    for (const id of ids) {
      await until('it waits for a retry', async () => (await broker.task(QUEUE, id)).state === 'retry');
      expect((await world().messageOf(id)).errorMsg.isWellFormed()).toBe(true);
    }
    await one.shutdown();
  });

  it('names that are not valid are rejected before anything is written', async () => {
    const { broker, redis } = world();
    const half = '\ud83d';
    for (const options of [{ queue: half }, { taskId: half }, { group: half }, { headers: { a: half } }]) {
      await expect(world().client.enqueue(new Task('t'), options)).rejects.toThrow(/well-formed/);
    }
    expect(() => new Task(half)).toThrow(/well-formed/);
    for (const message of [{ id: half }, { type: half }, { uniqueKey: half }, { group: half }]) {
      await expect(broker.enqueue(newTask(message))).rejects.toMatchObject({ code: 'ERR_WIRE_MESSAGE' });
    }
    expect(await redis.keys('*')).toEqual([]);
  });
});

describe('rule 6: counts fit 32 bits', () => {
  const MOST = 2 ** 31 - 1;

  it('the maximum number of retries is stored as a 32-bit number', async () => {
    const { broker } = world();
    const { id } = await world().client.enqueue(new Task('t', null, { maxRetry: MOST }));
    expect((await world().messageOf(id)).retry).toBe(MOST);
    await expect(world().client.enqueue(new Task('t'), { maxRetry: MOST + 1 })).rejects.toThrow(RangeError);
    const tooMany = broker.enqueue(newTask({ maxRetry: MOST + 1 }));
    await expect(tooMany).rejects.toMatchObject({ code: 'ERR_WIRE_MESSAGE' });
  });

  it('a task whose count of retries is at the maximum is archived', async () => {
    const { broker } = world();
    const { id } = (await broker.enqueue(newTask({ maxRetry: MOST, retried: MOST }))).message;
    const one = new Server({ broker });
    await one.start(() => {
      throw new Error('again');
    });
    await until('it is archived', async () => (await broker.task(QUEUE, id)).state === 'archived');
    await one.shutdown();
  });

  it('a server with unlimited concurrency is stored with the greatest 32-bit number', async () => {
    const { broker, redis } = world();
    const greatest = Number.MAX_SAFE_INTEGER;
    const state = { ...server, concurrency: greatest, queues: { [QUEUE]: greatest }, workers: [] };
    await broker.announceServer(() => state, 10_000);
    const info = fromBinary(ServerInfoSchema, (await redis.getBuffer(serverKey('h', 7, 's'))) ?? BYTES);
    expect([info.concurrency, info.queues]).toEqual([MOST, { [QUEUE]: MOST }]);
  });
});

describe("rule 7: never is Go's zero time", () => {
  const GO_ZERO = { seconds: -62_135_596_800n, nanos: 0 };

  it('a schedule entry that never ticks has no zero time of Go', async () => {
    const { broker, redis } = world();
    const entry = { id: 'e', spec: '@yearly', taskType: 't', payload: BYTES, options: [] };
    await broker.announceScheduler(
      'one',
      () => [{ ...entry, nextEnqueueAtMs: 0, prevEnqueueAtMs: 0 }],
      10_000,
    );
    const [bytes] = await redis.lrangeBuffer(schedulerKey('one'), 0, -1);
    const { prevEnqueueTime, nextEnqueueTime } = fromBinary(SchedulerEntrySchema, bytes ?? BYTES);
    expect([prevEnqueueTime, nextEnqueueTime]).toMatchObject([GO_ZERO, GO_ZERO]);
    expect(await broker.scheduleEntries()).toMatchObject([{ nextEnqueueAtMs: 0, prevEnqueueAtMs: 0 }]);
  });

  it('a scheduler that has just started has no zero time of Go', async () => {
    const { broker, redis } = world();
    const scheduler = new Scheduler({ broker });
    scheduler.register('@yearly', new Task('t'));
    await scheduler.start();
    const [bytes] = await redis.lrangeBuffer(schedulerKey(scheduler.id), 0, -1);
    expect(fromBinary(SchedulerEntrySchema, bytes ?? BYTES).prevEnqueueTime).toMatchObject(GO_ZERO);
    await scheduler.shutdown();
    expect(await redis.exists(SCHEDULERS_KEY)).toBe(0);
  });

  it('a run without a deadline has no zero time of Go', async () => {
    const { broker, redis } = world();
    await broker.announceServer(() => ({ ...server, workers: [worker] }), 10_000);
    const bytes = await redis.hgetBuffer(workersKey('h', 7, 's'), 'id');
    expect(fromBinary(WorkerInfoSchema, bytes ?? BYTES).deadline).toMatchObject(GO_ZERO);
  });
});

describe('rule 9: values are bytes', () => {
  it('payloads and results are stored and read as bytes', async () => {
    const { broker, redis } = world();
    const { id } = await world().client.enqueue(new Task('t', BYTES, { retentionMs: HOUR_MS }));
    expect(Buffer.from((await world().messageOf(id)).payload)).toEqual(BYTES);
    const leased = await take(broker);
    expect(Buffer.from(leased.message.payload)).toEqual(BYTES);
    await broker.writeResult(leased, BYTES);
    await broker.complete(leased);
    expect(await redis.hgetBuffer(keys.task(id), 'result')).toEqual(BYTES);
    const { message, result } = await broker.task(QUEUE, id);
    expect([Buffer.from(message.payload), Buffer.from(result ?? [])]).toEqual([BYTES, BYTES]);
    const [listed] = await broker.tasks(QUEUE, 'completed', { page: 1, size: 10 });
    expect(Buffer.from(listed?.result ?? [])).toEqual(BYTES);
  });

  it('retries, groups and changes by an inspector keep the bytes of payloads', async () => {
    const { broker } = world();
    const { id } = await world().client.enqueue(new Task('t', 'other', { processInMs: HOUR_MS }));
    await broker.updatePayload(QUEUE, id, BYTES);
    await broker.change(QUEUE, { id }, 'run');
    await broker.retry(await take(broker), failure, HOUR_MS);
    expect(Buffer.from((await world().messageOf(id)).payload)).toEqual(BYTES);
    await world().client.enqueue(new Task('t', BYTES, { group: 'g' }));
    const { set } = await broker.takeGroup(QUEUE, 'g', AT_ONCE, HOUR_MS);
    expect(set?.messages.map(({ payload }) => Buffer.from(payload))).toEqual([BYTES]);
  });

  it('payloads of workers and schedule entries are stored as bytes', async () => {
    const { broker } = world();
    const entry = { id: 'e', spec: '@yearly', taskType: 't', payload: BYTES, options: [] };
    await broker.announceServer(() => ({ ...server, workers: [worker] }), 10_000);
    await broker.announceScheduler(
      'one',
      () => [{ ...entry, nextEnqueueAtMs: 1, prevEnqueueAtMs: 1 }],
      10_000,
    );
    const [shown] = await broker.servers();
    expect(Buffer.from(shown?.workers[0]?.payload ?? [])).toEqual(BYTES);
    expect(Buffer.from((await broker.scheduleEntries())[0]?.payload ?? [])).toEqual(BYTES);
    await broker.withdrawServer('s');
    expect(await world().redis.exists(SERVERS_KEY)).toBe(0);
  });
});
