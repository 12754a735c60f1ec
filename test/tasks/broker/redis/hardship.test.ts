import { Inspector, type LeasedTask } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  failure,
  idsOf,
  LONG_MS,
  newTask,
  QUEUE,
  SERVER,
  take,
} from '../../../conformance/broker/support.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { until } from '../../../until.ts';
import { codeOf } from '../../support/bench.ts';
import { PATIENT_MS } from './setup.ts';

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
    broker = new RedisBroker({ url: server.url, timeoutMs: PATIENT_MS });
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
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ERR_BROKER_UNAVAILABLE' } });
      }
      expect(await redis.dbsize()).toBe(0);
    });

    it('a full Redis refuses new tasks of a queue with keys and limits, and stores no part of them', async () => {
      await broker.setLimits(QUEUE, { concurrency: 2, perKey: { concurrency: 1 } });
      await broker.enqueueMany(['1', '2', '3'].map((id) => newTask({ id, key: 'a' })));
      await take(broker);
      await fill();
      const refused = [{ key: 'a' }, { key: 'b' }, {}, { key: 'a', group: 'g' }].map((parts) =>
        newTask(parts),
      );
      for (const outcome of await broker.enqueueMany(refused))
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ERR_BROKER_UNAVAILABLE' } });
      await expect(broker.setLimits(QUEUE, { concurrency: 3 })).rejects.toThrow('OOM');
      expect([await redis.get(`${P}x:waiting`), (await redis.keys(`${P}t:*`)).length]).toEqual(['2', 3]);
    });

    it.each([
      ['', false],
      ['', true],
      ['a', true],
    ])(
      'a full Redis lets tasks be dequeued, leases be extended and runs end: key %j, limits %j',
      async (key, isLimited) => {
        const ids = ['complete', 'retain', 'retry', 'archive', 'release', 'discard'];
        if (isLimited) {
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

    it('a full Redis lets tasks be recovered while a key is held back', async () => {
      await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
      for (const id of ['1', '2']) await broker.enqueue(newTask({ id, key: 'a' }));
      await take(broker);
      await redis.zadd(`${P}lease`, 1, '1'); // it has ended
      await fill();
      const recovered = await broker.recover([QUEUE], 0, LONG_MS);
      expect(idsOf(recovered)).toEqual(['1']);
    });
  });

  it('operations of a user without the permission to publish succeed', async () => {
    await redis.call('ACL', 'SETUSER', 'mute', 'reset', 'on', 'nopass', '~*', '+@all');
    await broker.close();
    const url = server.url.replace('://', '://mute:any@');
    broker = new RedisBroker({ url, timeoutMs: PATIENT_MS });
    await broker.enqueue(newTask({ id: 'a' }));
    await broker.enqueue(newTask({ id: 'b', group: 'g' }));
    await broker.complete(await take(broker));
    await broker.change(QUEUE, { id: 'b' }, 'delete');
    expect(await redis.exists(`${P}t:a`, `${P}t:b`)).toBe(0);
  });

  it('a mark that is a day ahead is replaced by the next tick', async () => {
    await redis.hset(`${P}x:ticks`, 'e', Date.now() + 86_400_000);
    const tick = { entryKey: 'e', atMs: Date.now() };
    expect(await broker.enqueueTick(newTask(), tick)).toBeDefined();
    expect(await broker.enqueueTick(newTask(), tick)).toBeUndefined();
    expect(await broker.lastTickMs(QUEUE, 'e')).toBe(tick.atMs);
  });

  it.each(['replace', 'extend'] as const)(
    'a tick with onDuplicate: %o is not lost if its process dies between two calls of Redis',
    async (onDuplicate) => {
      const uniqueKey = `${P}unique:t:1`;
      const waiting = await broker.enqueue(newTask({ uniqueKey, processAtMs: Date.now() + LONG_MS }));
      const tick = { entryKey: 'e', atMs: Date.now() };
      const tickTask = { ...newTask({ uniqueKey, payload: new Uint8Array([2]) }), onDuplicate };
      const dying = new Redis(server.url);
      const mortal = new RedisBroker({ client: dying });
      vi.spyOn(dying, 'get').mockRejectedValue(new Error('the process has died'));
      await expect(mortal.enqueueTick(tickTask, tick)).rejects.toThrow('the process has died');
      await mortal.close();
      dying.disconnect();
      expect(await broker.enqueueTick(tickTask, tick)).toBeDefined();
      expect(await broker.enqueueTick(tickTask, tick)).toBeUndefined();
      const leased = await take(broker);
      expect([leased.message.id, leased.message.payload[0]]).toEqual([waiting.message.id, 2]);
    },
  );

  describe('a queue of many groups', () => {
    const GROUPS = 1_500;

    beforeEach(async () => {
      const tasks = Array.from({ length: GROUPS }, (_, at) => newTask({ group: `group-${at}` }));
      await broker.enqueueMany(tasks);
      await redis.sadd(`${P}groups`, 'stale');
      await broker.enqueue(newTask({ group: 'later', processAtMs: Date.now() + LONG_MS }));
    });

    it('a queue of many groups lists each group once', async () => {
      const { counts, groups, memoryBytes } = await broker.queueStats(QUEUE);
      expect(counts.aggregating).toBe(GROUPS);
      expect(groups).toBe(GROUPS);
      expect(memoryBytes).toBeGreaterThan(GROUPS * 100);
      expect(memoryBytes).toBeLessThan(GROUPS * 2_000);
      const names = (await broker.groups(QUEUE)).map(({ group }) => group);
      expect(new Set(names).size).toBe(GROUPS);
      expect(names).toHaveLength(GROUPS);
    });

    it('many groups are counted in several scripts, so that none blocks Redis for long', async () => {
      await broker.queueStats(QUEUE); // loads the scripts
      await redis.config('RESETSTAT');
      await broker.queueStats(QUEUE);
      expect(await redis.info('commandstats')).toMatch(/^cmdstat_evalsha:calls=[2-9],/m);
    });

    it('a queue of many groups is removed completely', async () => {
      await broker.removeQueue(QUEUE, { force: true });
      expect(await redis.keys('*')).toEqual([]);
    });
  });

  it('one of many concurrent calls sends the text of a script that Redis has lost', async () => {
    await broker.enqueue(newTask({ group: 'g' }));
    await broker.groups(QUEUE);
    await redis.script('FLUSH');
    await redis.config('RESETSTAT');
    const groups = await Promise.all(Array.from({ length: 50 }, () => broker.groups(QUEUE)));
    expect(groups).toEqual(Array.from({ length: 50 }, () => [{ group: 'g', size: 1 }]));
    expect(await redis.info('commandstats')).toMatch(/^cmdstat_eval:calls=1,/m);
  });

  it('a server that withdraws leaves no key, and reads nothing of the others', async () => {
    await broker.announceServer(() => SERVER, LONG_MS);
    await broker.announceServer(() => ({ ...SERVER, id: 'other' }), LONG_MS);
    await redis.config('RESETSTAT');
    await broker.withdrawServer(SERVER);
    expect(await redis.info('commandstats')).not.toMatch(/^cmdstat_(zrange|keys|scan)/m);
    expect((await redis.keys('*')).filter((key) => key.includes(`:${SERVER.id}}`))).toEqual([]);
    expect((await broker.servers()).map(({ id }) => id)).toEqual(['other']);
  });

  it('a key of another type at a lock stops no task', async () => {
    const lock = `${P}unique:t:1`;
    const tasks = [{ id: 'a' }, { id: 'b', uniqueKey: lock }, { id: 'c' }].map((parts) => newTask(parts));
    await broker.enqueueMany(tasks);
    await redis.del(lock);
    await redis.lpush(lock, 'no lock');
    const leased = await broker.dequeue(QUEUE, 3, LONG_MS);
    await Promise.all(leased.map((task) => broker.complete(task)));
    const [first, refused] = await broker.enqueueMany([newTask(), newTask({ uniqueKey: lock })]);
    expect(first?.status).toBe('fulfilled');
    const message = `the Redis key '${lock}' must be a string. It is a list`;
    const reason = { code: 'ERR_WIRE_MESSAGE', op: 'RedisBroker.enqueueMany', message };
    expect(refused).toMatchObject({ reason });
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

  describe('tasks with large payloads', () => {
    const COUNT = 12;

    async function put(key: string, group = ''): Promise<void> {
      const payload = new Uint8Array(3_000_000);
      for (let at = 0; at < COUNT; at++)
        await broker.enqueue(newTask({ id: `large-${at}`, key, group, payload }));
    }

    it.each(['', 'a'])(
      'tasks with large payloads are dequeued in several scripts, in their order: key %j',
      async (key) => {
        await put(key);
        const tasks = await broker.dequeue(QUEUE, 100, LONG_MS);
        expect(idsOf(tasks)).toEqual(Array.from({ length: COUNT }, (_, at) => `large-${at}`));
        expect(new Set(tasks.map(({ epoch }) => epoch)).size).toBe(COUNT);
        await Promise.all(tasks.map((task) => broker.complete(task)));
        expect(await broker.queueStats(QUEUE)).toMatchObject({ counts: { active: 0, pending: 0 } });
      },
    );

    it('a group of tasks with large payloads becomes several sets', async () => {
      await put('', 'g');
      const sizes: number[] = [];
      for (let size = 1; size > 0; sizes.push(size)) {
        const due = { graceMs: LONG_MS, maxDelayMs: 0, maxSize: 4 };
        size = (await broker.takeGroup(QUEUE, 'g', due, LONG_MS)).set?.messages.length ?? 0;
      }
      expect(sizes).toEqual([3, 3, 3, 0]);
    });

    it('tasks with large payloads are recovered in several scripts', async () => {
      await put('');
      expect(await broker.dequeue(QUEUE, COUNT, 0)).toHaveLength(COUNT);
      await redis.del(`${P}lease`);
      const tasks = await broker.recover([QUEUE], 0, LONG_MS);
      expect(new Set(idsOf(tasks)).size).toBe(COUNT);
    });
  });

  it('a reply that has arrived while the event loop was blocked is in time, also for a client that was passed in', async () => {
    const lost: string[] = [];
    const timeoutMs = 1_000;
    const onHealth = ({ state }: { state: string }): unknown => state === 'unavailable' && lost.push(state);
    const brokers = [{ url: server.url }, { client: redis }].map(
      (connection) => new RedisBroker({ ...connection, timeoutMs, onHealth }),
    );
    const pings = (): Promise<unknown> => Promise.all(brokers.map((each) => each.ping()));
    try {
      await until('both brokers answer', () => succeeds(pings()));
      lost.length = 0;
      const answers = pings();
      await new Promise((resolve) => {
        setImmediate(resolve); // they are sent
      });
      for (let n = 0; n < 20; n++) block(timeoutMs / 10); // in pieces: Redis gets its turn, too, after the machine has stopped
      await answers;
    } finally {
      await Promise.all(brokers.map((each) => each.close()));
    }
    expect(lost).toEqual([]);
  });

  it('a silent connection is given up once, however many operations wait for it', async () => {
    const warnings: string[] = [];
    const hear = ({ name }: Error): unknown => warnings.push(name);
    process.on('warning', hear);
    const impatient = new RedisBroker({ url: server.url, timeoutMs: 100 });
    const answers = (): Promise<boolean> => succeeds(impatient.ping());
    try {
      await until('the broker answers', answers);
      server.pause();
      const pings = await Promise.allSettled(Array.from({ length: 30 }, () => impatient.ping()));
      server.resume();
      for (const ping of pings) expect(ping).toMatchObject({ reason: { code: 'ERR_BROKER_UNAVAILABLE' } });
      await until('the broker answers again', answers);
    } finally {
      process.off('warning', hear);
      await impatient.close();
    }
    expect(warnings).toEqual([]);
  });
});

async function succeeds(promise: Promise<unknown>): Promise<boolean> {
  return (await codeOf(promise)) === undefined;
}

/** Holds the event loop. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
