import type { RedisBroker } from 'escapement/tasks/redis';
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import { encodeTaskMessage } from '../../../../src/tasks/wire/message-codec.ts';
import {
  idsOf,
  LONG_MS,
  newTask,
  QUEUE,
  stateOf,
  take,
  takeAll,
  takeSet,
} from '../../../conformance/broker/support.ts';
import { until } from '../../../until.ts';
import { redisForTest, type RedisSetup } from './setup.ts';

const P = `asynq:{${QUEUE}}:`;
let redis: Redis;
let broker: RedisBroker;

describe('data that other programs have left', () => {
  const AT_ONCE = { graceMs: 0, maxDelayMs: 0, maxSize: 10 };

  let setup: RedisSetup;

  beforeEach(async () => {
    setup = await redisForTest();
    ({ broker, redis } = setup);
  });

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

  test('a lock that only the message of a grouped task names, as with asynq, is freed when its set is replaced', async () => {
    const lock = `${P}unique:t:1`;
    await broker.enqueue(newTask({ id: 'a', group: 'g', uniqueKey: lock }));
    await redis.hdel(`${P}t:a`, 'unique_key');
    const set = await takeSet(broker, 'g');
    expect(await redis.get(lock)).toBe('a');
    await broker.replaceSet(set, newTask());
    expect(await redis.exists(lock)).toBe(0);
  });

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

  describe('a message that is not the one of its task', () => {
    const write = (id: string, msg: Uint8Array): Promise<number> =>
      redis.hset(`${P}t:${id}`, 'msg', Buffer.from(msg));
    const messageOf = (parts: object): Uint8Array => encodeTaskMessage(newTask(parts).message);

    for (const [name, msg] of [
      ['that of another task', messageOf({ id: 'other' })],
      ['that of another queue', messageOf({ id: 'odd', queue: 'elsewhere' })],
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
        const heard: string[] = [];
        await broker.subscribe({ settled: (_, id) => heard.push(id) }, [QUEUE]);
        const { set } = await broker.takeGroup(QUEUE, 'g', AT_ONCE, LONG_MS);
        expect(set?.messages.map(({ id }) => id)).toEqual(['a']);
        expect(idsOf(await broker.tasks(QUEUE, 'archived', { page: 1, size: 10 }))).toEqual(['odd']);
        await until('the listener is notified', () => heard.includes('odd'));

        await setup.advance(2 * LONG_MS);
        expect(await broker.reclaimSets([QUEUE])).toBe(1);
        await write('a', msg);
        expect((await broker.takeGroup(QUEUE, 'g', AT_ONCE, LONG_MS)).set).toBeUndefined();
        expect(await redis.exists(`${P}g:g`, `${P}aggregation_sets`)).toBe(0);
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
