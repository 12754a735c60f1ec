import { Inspector, type LeasedTask } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { encodeTaskMessage } from '../../../../src/tasks/wire/task-message-codec.ts';
import {
  failure,
  idsOf,
  LONG_MS,
  newTask,
  QUEUE,
  stateOf,
  take,
  takeAll,
} from '../../../conformance/broker/support.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { redisSetup, type RedisSetup } from './setup.ts';

const P = `asynq:{${QUEUE}}:`;
let redis: Redis;
let broker: RedisBroker;

describe('a Redis in trouble', () => {
  let server: RedisProcess;

  beforeAll(async () => {
    server = await RedisProcess.start();
    redis = new Redis(server.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    broker = new RedisBroker({ url: server.url });
  });
  afterEach(async () => {
    await broker.close();
    await redis.config('SET', 'maxmemory', '0');
    await redis.flushall();
  });

  describe('a Redis whose memory is full', () => {
    const fill = (): Promise<unknown> => redis.config('SET', 'maxmemory', '1');

    it('a full Redis refuses new tasks and stores no part of them', async () => {
      await fill();
      const outcomes = await broker.enqueueMany([newTask(), newTask({ group: 'g' })]);
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'ReplyError' } });
      }
      expect(await redis.dbsize()).toBe(0);
    });

    it('a full Redis refuses new tasks of a queue with keys and limits, and stores no part of them', async () => {
      await broker.setLimits(QUEUE, { concurrency: 2, perKey: { concurrency: 1 } });
      await broker.enqueueMany(['1', '2', '3'].map((id) => newTask({ id, key: 'a' })));
      await take(broker);
      await fill();
      const refused = [
        newTask({ key: 'a' }),
        newTask({ key: 'b' }),
        newTask(),
        newTask({ key: 'a', group: 'g' }),
      ];
      for (const outcome of await broker.enqueueMany(refused))
        expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'ReplyError' } });
      await expect(broker.setLimits(QUEUE, { concurrency: 3 })).rejects.toThrow('OOM');
      expect([await redis.zcard(`${P}x:waiting`), (await redis.keys(`${P}t:*`)).length]).toEqual([2, 3]);
    });

    it.each(['', 'a'])(
      'a full Redis lets tasks be dequeued, leases be extended and runs end: key %j',
      async (key) => {
        const ids = ['complete', 'retain', 'retry', 'archive', 'release', 'discard'];
        if (key !== '') {
          const rate = { tasks: 100, perMs: 1_000 };
          await broker.setLimits(QUEUE, { concurrency: 6, rate, perKey: { concurrency: 6, rate } });
        }
        for (const id of ids) {
          await broker.enqueue(newTask({ id, key, retentionMs: id === 'retain' ? LONG_MS : 0 }));
        }
        await fill();
        const tasks = await broker.dequeue(QUEUE, ids.length, LONG_MS);
        expect(await broker.extendLeases(tasks, LONG_MS)).toEqual([]);
        const ends: ((task: LeasedTask) => Promise<void>)[] = [
          (task) => broker.complete(task),
          (task) => broker.complete(task),
          (task) => broker.retry(task, failure(), Date.now() + LONG_MS),
          (task) => broker.archive(task, failure()),
          (task) => broker.release(task),
          (task) => broker.discard(task),
        ];
        await Promise.all(tasks.map(async (task, at) => ends[at]?.(task)));
        const { counts } = await broker.queueStats(QUEUE);
        expect(counts).toMatchObject({ active: 0, completed: 1, retry: 1, archived: 1, pending: 1 });
      },
    );
  });

  describe('a user who may not publish', () => {
    beforeEach(async () => {
      await redis.call('ACL', 'SETUSER', 'mute', 'reset', 'on', 'nopass', '~*', '+@all');
      await broker.close();
      broker = new RedisBroker({ url: server.url.replace('://', '://mute:any@') });
    });

    it('operations of a user without the permission to publish succeed', async () => {
      await broker.enqueue(newTask({ id: 'a' }));
      await broker.enqueue(newTask({ id: 'b', group: 'g' }));
      await broker.complete(await take(broker));
      await broker.change(QUEUE, { id: 'b' }, 'delete');
      expect(await redis.exists(`${P}t:a`, `${P}t:b`)).toBe(0);
    });
  });

  describe('a scheduler whose clock is a day ahead', () => {
    const DAY_MS = 86_400_000;
    const now = (): number => Math.floor(Date.now());

    it('a scheduler whose clock is a day ahead enqueues nothing and stops no other scheduler', async () => {
      const atMs = now();
      const tomorrow = vi.spyOn(Date, 'now').mockReturnValue(atMs + DAY_MS);
      try {
        const ahead = broker.enqueueTick(newTask(), { entryKey: 'e', atMs: atMs + DAY_MS });
        await expect(ahead).rejects.toMatchObject({ code: 'ERR_TICK_EARLY' });
      } finally {
        tomorrow.mockRestore();
      }
      expect(await redis.keys('*')).toEqual([]);
      expect(await broker.enqueueTick(newTask(), { entryKey: 'e', atMs })).toBeDefined();
    });

    it('a mark that is a day ahead is replaced by the next tick', async () => {
      await redis.hset(`${P}x:ticks`, 'e', now() + DAY_MS);
      const tick = { entryKey: 'e', atMs: now() };
      expect(await broker.enqueueTick(newTask(), tick)).toBeDefined();
      expect(await broker.enqueueTick(newTask(), tick)).toBeUndefined();
      expect(await broker.lastTickMs(QUEUE, 'e')).toBe(tick.atMs);
    });
  });

  describe('a queue of many groups', () => {
    const GROUPS = 1_500;

    beforeEach(async () => {
      const tasks = Array.from({ length: GROUPS }, (_, at) => newTask({ group: `group-${at}` }));
      await broker.enqueueMany(tasks);
      await redis.sadd(`${P}groups`, 'stale');
    });

    it('a queue of many groups lists each group once', async () => {
      const { counts, groups, memoryBytes } = await broker.queueStats(QUEUE);
      expect(counts.aggregating).toBe(GROUPS);
      expect(groups).toBe(GROUPS);
      expect(memoryBytes).toBeGreaterThan(GROUPS * 200);
      expect(memoryBytes).toBeLessThan(GROUPS * 2_000);
      const names = (await broker.groups(QUEUE)).map(({ group }) => group);
      expect(new Set(names).size).toBe(GROUPS);
      expect(names).toHaveLength(GROUPS);
    });

    it('the tasks of one of many groups can be listed and run', async () => {
      expect(await broker.tasks(QUEUE, 'aggregating', { page: 1, size: 10 }, 'group-7')).toHaveLength(1);
      expect(await broker.tasks(QUEUE, 'aggregating', { page: 1, size: 10 }, 'none')).toEqual([]);
      expect(await broker.change(QUEUE, { state: 'aggregating', group: 'group-7' }, 'run')).toBe(1);
      expect(await broker.change(QUEUE, { state: 'aggregating', group: 'none' }, 'run')).toBe(0);
      expect(await broker.queueStats(QUEUE)).toMatchObject({
        counts: { aggregating: GROUPS - 1, pending: 1 },
      });
    });

    it('a queue of many groups is removed completely', async () => {
      await broker.removeQueue(QUEUE, { force: true });
      expect(await redis.keys('*')).toEqual([]);
    });
  });

  describe('data of other clients', () => {
    it('a message of another queue under the id of a task is archived', async () => {
      await broker.enqueue(newTask({ id: 'stray' }));
      const { message } = newTask({ id: 'stray', queue: 'elsewhere' });
      await redis.hset(`${P}t:stray`, 'msg', Buffer.from(encodeTaskMessage(message)));
      expect(await broker.dequeue(QUEUE, 1, LONG_MS)).toEqual([]);
      expect((await broker.task(QUEUE, 'stray')).state).toBe('archived');
    });

    it('a key of another type at a lock stops no task', async () => {
      const lock = `${P}unique:t:1`;
      await broker.enqueueMany([
        newTask({ id: 'a' }),
        newTask({ id: 'b', uniqueKey: lock }),
        newTask({ id: 'c' }),
      ]);
      await redis.del(lock);
      await redis.lpush(lock, 'no lock');
      const tasks = await broker.dequeue(QUEUE, 3, LONG_MS);
      await Promise.all(tasks.map((task) => broker.complete(task)));
      const [first, refused] = await broker.enqueueMany([newTask(), newTask({ uniqueKey: lock })]);
      expect(first?.status).toBe('fulfilled');
      expect(refused).toMatchObject({
        reason: {
          code: 'ERR_WIRE_MESSAGE',
          op: 'RedisBroker.enqueueMany',
          message: `the Redis key '${lock}' must be a string. It is a list`,
        },
      });
      expect((await broker.queueStats(QUEUE)).counts).toMatchObject({ active: 0, pending: 1 });
      expect(await redis.zcard(`${P}lease`)).toBe(0);
    });

    it('progress that is not JSON hides no task', async () => {
      const inspector = new Inspector({ broker });
      await broker.enqueue(newTask({ id: 'a' }));
      await redis.hset(`${P}t:a`, 'x:progress', '{no json');
      expect((await inspector.getTaskInfo(QUEUE, 'a')).progress).toBeUndefined();
      await inspector.close();
    });
  });

  describe('tasks with large payloads', () => {
    const COUNT = 12;

    beforeEach(async () => {
      const payload = new Uint8Array(3_000_000);
      for (let at = 0; at < COUNT; at++) await broker.enqueue(newTask({ id: `large-${at}`, payload }));
    });

    it('tasks with large payloads are dequeued in several scripts, in their order', async () => {
      const tasks = await broker.dequeue(QUEUE, 100, LONG_MS);
      expect(tasks.map(({ message }) => message.id)).toEqual(
        Array.from({ length: COUNT }, (_, at) => `large-${at}`),
      );
      expect(new Set(tasks.map(({ epoch }) => epoch)).size).toBe(COUNT);
      await Promise.all(tasks.map((task) => broker.complete(task)));
      expect(await broker.queueStats(QUEUE)).toMatchObject({ counts: { active: 0, pending: 0 } });
    });

    it('tasks with large payloads are recovered in several scripts', async () => {
      expect(await broker.dequeue(QUEUE, COUNT, 0)).toHaveLength(COUNT);
      await redis.del(`${P}lease`);
      const tasks = await broker.recover([QUEUE], 0, LONG_MS);
      expect(new Set(tasks.map(({ message }) => message.id)).size).toBe(COUNT);
    });
  });

  it('a silent connection is given up once, however many operations wait for it', async () => {
    const warnings: string[] = [];
    const hear = ({ name }: Error): unknown => warnings.push(name);
    process.on('warning', hear);
    const impatient = new RedisBroker({ url: server.url, timeoutMs: 100 });
    const answers = (): Promise<boolean> =>
      impatient.ping().then(
        () => true,
        () => false,
      );
    try {
      await vi.waitUntil(answers, { timeout: 20_000 });
      await redis.call('CLIENT', 'PAUSE', '500', 'ALL');
      const pings = await Promise.allSettled(Array.from({ length: 30 }, () => impatient.ping()));
      for (const ping of pings) expect(ping).toMatchObject({ reason: { code: 'ERR_BROKER_UNAVAILABLE' } });
      await redis.ping();
      await vi.waitUntil(answers, { timeout: 20_000 });
    } finally {
      process.off('warning', hear);
      await impatient.close();
    }
    expect(warnings).toEqual([]);
  });
});

describe('data that other programs have left', () => {
  const AT_ONCE = { graceMs: 0, maxDelayMs: 0, maxSize: 10 };

  let setup: RedisSetup;

  beforeEach(async () => {
    setup = await redisSetup();
    ({ broker, redis } = setup);
  });
  afterEach(() => setup.dispose());

  /** What a running server does again and again. */
  async function serve(): Promise<void> {
    await setup.advance(2 * LONG_MS);
    await broker.reclaimSets([QUEUE]);
    await broker.recover([QUEUE], 0, LONG_MS);
    await broker.forward([QUEUE]);
    await broker.deleteExpired([QUEUE], 1_000);
    await broker.dequeue(QUEUE, 100, LONG_MS);
  }

  /** How an id comes into a place without a task. */
  const PLACES: Record<string, () => Promise<unknown>> = {
    'active, with a lease': async () => {
      await redis.lpush(`${P}active`, 'ghost');
      await redis.zadd(`${P}lease`, 1, 'ghost');
    },
    'active, without a lease': () => redis.lpush(`${P}active`, 'ghost'),
    pending: () => redis.lpush(`${P}pending`, 'ghost'),
    scheduled: () => redis.zadd(`${P}scheduled`, 1, 'ghost'),
    retry: () => redis.zadd(`${P}retry`, 1, 'ghost'),
    archived: () => redis.zadd(`${P}archived`, 1, 'ghost'),
    completed: () => redis.zadd(`${P}completed`, 1, 'ghost'),
  };

  describe('an id without a message', () => {
    for (const [place, put] of Object.entries(PLACES)) {
      test(`an id without a message that is ${place} is removed by a running server, and can be used again`, async () => {
        await put();
        await redis.hset(`${P}t:ghost`, 'state', place.split(',')[0] ?? '');
        await serve();
        expect(await redis.keys(`${P}*`)).toEqual([]);
        await broker.enqueue(newTask({ id: 'ghost' }));
        expect(await takeAll(broker)).toEqual(['ghost']);
      });

      test(`an id without a message that is ${place} stops no other tasks, and does not change a later task with that id`, async () => {
        await put();
        await broker.enqueue(newTask({ id: 'ghost', processAtMs: broker.clock.wallNow() + 9 * LONG_MS }));
        await broker.enqueue(newTask({ id: 'other' }));
        await serve();
        expect(await stateOf(broker, newTask({ id: 'other' }).message)).toBe('active');
        expect(await stateOf(broker, newTask({ id: 'ghost' }).message)).toBe('scheduled');
      });
    }

    test('an id without a message does not stop its group', async () => {
      await broker.enqueue(newTask({ id: 'a', group: 'g' }));
      await redis.zadd(`${P}g:g`, 1, 'ghost');
      await redis.hset(`${P}t:ghost`, 'state', 'aggregating');
      await setup.advance(2_000);
      const { set } = await broker.takeGroup(QUEUE, 'g', AT_ONCE, LONG_MS);
      expect(set?.messages.map(({ id }) => id)).toEqual(['a']);
      expect(await redis.exists(`${P}t:ghost`)).toBe(0);
    });

    test('many pending ids without a message are removed in pieces, and the tasks behind them are dequeued', async () => {
      const ghosts = Array.from({ length: 5_000 }, (_, n) => `ghost-${n}`);
      await redis.lpush(`${P}pending`, ...ghosts);
      await broker.enqueue(newTask({ id: 'a' }));
      expect(await takeAll(broker)).toEqual(['a']);
      expect(await redis.llen(`${P}pending`)).toBe(0);
    });
  });

  describe('a task whose key has another type', () => {
    test('a task whose key has another type does not stop its queue', async () => {
      await broker.enqueueMany(['a', 'b', 'c'].map((id) => newTask({ id })));
      await redis.set(`${P}t:b`, 'x');
      expect(await takeAll(broker)).toEqual(['a', 'c']);
      const soonMs = broker.clock.wallNow() + 1_000;
      await broker.enqueueMany(['d', 'e', 'f'].map((id) => newTask({ id, processAtMs: soonMs })));
      await redis.set(`${P}t:e`, 'x');
      await setup.advance(5_000);
      expect(await broker.forward([QUEUE])).toBe(2);
      expect(await takeAll(broker)).toEqual(['d', 'f']);
    });
  });

  describe('a message that is not the one of its task', () => {
    const write = (id: string, msg: Uint8Array): Promise<number> =>
      redis.hset(`${P}t:${id}`, 'msg', Buffer.from(msg));
    const ofOther = encodeTaskMessage(newTask({ id: 'other' }).message);

    for (const [name, msg] of [
      ['that of another task', ofOther],
      ['unreadable', new Uint8Array([255, 255])],
    ] as const) {
      test(`a message that is ${name} is archived when it is dequeued`, async () => {
        await broker.enqueueMany(['a', 'odd', 'b'].map((id) => newTask({ id })));
        await write('odd', msg);
        expect(await takeAll(broker)).toEqual(['a', 'b']);
        const [shown] = await broker.tasks(QUEUE, 'archived', { page: 1, size: 10 });
        expect(shown?.message).toMatchObject({ id: 'odd', queue: QUEUE });
        expect(shown?.message.lastError).not.toBe('');
      });

      test(`a message that is ${name} is archived when it is recovered`, async () => {
        await broker.enqueue(newTask({ id: 'odd' }));
        await take(broker);
        await write('odd', msg);
        await setup.advance(2 * LONG_MS);
        expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
        await setup.advance(2 * LONG_MS);
        expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
        expect(await stateOf(broker, newTask({ id: 'odd' }).message)).toBe('archived');
        expect(await redis.exists(`${P}active`, `${P}lease`)).toBe(0);
      });

      test(`a message that is ${name} does not keep its group from being aggregated`, async () => {
        await broker.enqueueMany(['a', 'odd'].map((id) => newTask({ id, group: 'g' })));
        await write('odd', msg);
        await setup.advance(2_000);
        const { set } = await broker.takeGroup(QUEUE, 'g', AT_ONCE, LONG_MS);
        expect(set?.messages.map(({ id }) => id)).toEqual(['a']);
        expect(idsOf(await broker.tasks(QUEUE, 'archived', { page: 1, size: 10 }))).toEqual(['odd']);
      });
    }
  });

  describe('the name of a group', () => {
    const later = (id: string): ReturnType<RedisBroker['enqueue']> =>
      broker.enqueue(newTask({ id, group: 'g', processAtMs: broker.clock.wallNow() + LONG_MS }));
    const names = (): Promise<string[]> => redis.smembers(`${P}groups`);

    for (const [verb, leave] of Object.entries({
      deleted: () => broker.change(QUEUE, { id: 'a' }, 'delete'),
      'run now': () => broker.change(QUEUE, { id: 'a' }, 'run'),
      archived: () => broker.change(QUEUE, { id: 'a' }, 'archive'),
      'deleted with all scheduled ones': () => broker.change(QUEUE, { state: 'scheduled' }, 'delete'),
      'run with all scheduled ones': () => broker.change(QUEUE, { state: 'scheduled' }, 'run'),
      'archived with all scheduled ones': () => broker.change(QUEUE, { state: 'scheduled' }, 'archive'),
    })) {
      test(`the name of a group is removed when its only scheduled task is ${verb}`, async () => {
        await later('a');
        await leave();
        expect(await names()).toEqual([]);
        expect(await redis.keys(`${P}x:later:*`)).toEqual([]);
      });
    }

    test('the name of a group stays while it has tasks or scheduled tasks', async () => {
      await later('a');
      await later('b');
      await broker.change(QUEUE, { id: 'a' }, 'delete');
      expect(await names()).toEqual(['g']);
      await setup.advance(LONG_MS + 5_000);
      await broker.forward([QUEUE]);
      expect(await broker.groups(QUEUE)).toEqual([{ group: 'g', size: 1 }]);
      await broker.change(QUEUE, { id: 'b' }, 'delete');
      expect(await names()).toEqual([]);
    });

    test('repair finds the name of a group whose scheduled task a Go program has deleted', async () => {
      await later('a');
      await redis.del(`${P}t:a`);
      await redis.zrem(`${P}scheduled`, 'a');
      const found = [{ kind: 'group-without-tasks', queue: QUEUE, id: '', where: 'g' }];
      expect(await broker.repair(QUEUE, { apply: true })).toEqual(found);
      expect(await names()).toEqual([]);
      expect(await redis.keys(`${P}x:later:*`)).toEqual([]);
    });
  });
});
