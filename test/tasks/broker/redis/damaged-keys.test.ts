import type { Redis } from 'ioredis';
import type { Defect } from 'escapement/tasks';
import type { RedisBroker } from 'escapement/tasks/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { QueueKeys } from '../../../../src/tasks/broker/redis/keys.ts';
import {
  expectCode,
  idsIn,
  idsOf,
  LONG_MS,
  newTask,
  QUEUE,
  take,
  takeAll,
} from '../../../conformance/broker/support.ts';
import { redisForTest, type RedisSetup } from './setup.ts';

const keys = new QueueKeys(QUEUE);
let setup: RedisSetup;
let broker: RedisBroker;
let redis: Redis;

beforeEach(async () => {
  setup = await redisForTest();
  ({ broker, redis } = setup);
});

/** Tasks whose ids are their keys and a number. */
async function put(...ids: readonly string[]): Promise<void> {
  await broker.enqueueMany(ids.map((id) => newTask({ id, key: id.replace(/\d+$/u, '') })));
}

function idsOfKey(key: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${key}${n + 1}`);
}

/** All tasks, which a server takes some at a time. */
async function takeInPieces(): Promise<string[]> {
  const ids: string[] = [];
  for (let some = ['']; some.length > 0;) {
    some = idsOf(await broker.dequeue(QUEUE, 3, LONG_MS));
    ids.push(...some);
  }
  return ids;
}

const IN_TURNS = ['a1', 'b1', '1', 'a2', '2', 'a3'];
const ANY = expect.any(String) as string;

interface Damage {
  readonly damage: () => Promise<unknown>;
  readonly found: readonly Partial<Defect>[];
  /** The order in which the tasks are taken when it is repaired, if that is not the order of before. */
  readonly then?: readonly string[];
}

const wrongCount = (where: string): Partial<Defect> => ({ kind: 'wrong-count', id: '', where });
const inNoList = (id: string, where: string): Partial<Defect> => ({ kind: 'task-in-no-list', id, where });

/** To a queue with the tasks a1, a2, a3, b1, 1 and 2. */
const DAMAGES: Record<string, Damage> = {
  'a key that has two turns': {
    damage: () => redis.rpush(keys.ring, 'a'),
    found: [wrongCount(keys.ring)],
  },
  'a key that has a turn and is held back': {
    damage: () => redis.zadd(keys.parked, '+inf', 'a'),
    found: [wrongCount(keys.parked)],
  },
  'a key without tasks that has a turn': {
    damage: () => redis.lpush(keys.ring, 'c'),
    found: [wrongCount(keys.ring)],
  },
  'a key without tasks that is held back': {
    damage: () => redis.zadd(keys.parked, '+inf', 'c'),
    found: [wrongCount(keys.parked)],
  },
  'a key that has lost its turn': {
    damage: () => redis.lrem(keys.ring, 0, 'a'),
    found: [wrongCount(keys.ring)],
    then: ['b1', '1', 'a1', '2', 'a2', 'a3'],
  },
  'the tasks without key that have lost their turn': {
    damage: () => redis.lrem(keys.ring, 0, ''),
    found: [wrongCount(keys.ring)],
  },
  'a key that has lost its first task': {
    damage: () => redis.hdel(keys.firsts, 'a'),
    found: [
      ...[inNoList('a2', `${keys.nextPrefix}a`), inNoList('a1', '')],
      ...[wrongCount(keys.ring), wrongCount(keys.waiting)],
    ],
    then: ['a2', 'b1', '1', 'a3', '2', 'a1'],
  },
  'the first tasks of all keys are lost': {
    damage: () => redis.del(keys.firsts),
    found: [
      ...[inNoList('a2', `${keys.nextPrefix}a`), inNoList(ANY, ''), inNoList(ANY, '')],
      ...[wrongCount(keys.ring), wrongCount(keys.waiting)],
    ],
    then: ['a2', 'b1', '1', 'a3', '2', 'a1'],
  },
  ...Object.fromEntries(
    ['7', '0', '-7', 'many', '1e400'].map((count): [string, Damage] => [
      `a number of tasks that is ${count}`,
      { damage: () => redis.set(keys.waiting, count), found: [wrongCount(keys.waiting)] },
    ]),
  ),
};

describe('what another program has damaged in a queue with keys', () => {
  beforeEach(() => put('a1', 'a2', 'a3', 'b1', '1', '2'));

  for (const [name, { damage, found, then = IN_TURNS }] of Object.entries(DAMAGES)) {
    it(`${name}: it is found, and repaired if requested`, async () => {
      await damage();
      const expected = found.map((defect) => expect.objectContaining(defect) as Defect);
      expect(await broker.repair(QUEUE, { apply: false })).toEqual(expected);
      expect(await broker.repair(QUEUE, { apply: true })).toEqual(expected);
      expect(await broker.repair(QUEUE, { apply: false })).toEqual([]);
      expect((await idsIn(broker, 'pending')).sort()).toEqual(['1', '2', 'a1', 'a2', 'a3', 'b1']);
      await setup.check?.();
      expect(await takeInPieces()).toEqual(then);
      await setup.check?.();
    });

    it(`${name}: the queue can be listed and removed all the same`, async () => {
      await damage();
      await broker.tasks(QUEUE, 'pending', { page: 1, size: 10 });
      await broker.keys(QUEUE, { page: 1, size: 10 });
      await broker.queueStats(QUEUE);
      await broker.removeQueue(QUEUE, { force: true });
      expect(await broker.queues()).toEqual([]);
      expect(await redis.exists(keys.firsts, keys.ring, keys.parked, keys.waiting)).toBe(0);
    });
  }

  it('no task of a key that has two turns is lost, and they keep their order', async () => {
    await put(...idsOfKey('c', 20));
    await redis.rpush(keys.ring, 'c', 'c', '', 'a');
    const taken = await takeInPieces();
    expect(taken).toHaveLength(26);
    for (const key of ['a', 'c', '']) {
      const ofKey = taken.filter((id) => id.replace(/\d+$/u, '') === key);
      expect(ofKey).toEqual(idsOfKey(key, ofKey.length));
    }
  });

  it('ids that do not belong in the list of tasks without key are dropped', async () => {
    await broker.enqueue(newTask({ id: 'archived' }));
    await broker.change(QUEUE, { id: 'archived' }, 'archive');
    await redis.hset(keys.task('ghost'), 'state', 'pending');
    await redis.lpush(keys.pending, 'ghost', 'archived', 'none', '2', '1');
    expect(await takeInPieces()).toEqual(IN_TURNS);
    expect(await redis.exists(keys.task('ghost'))).toBe(0);
    await setup.check?.();
  });

  it.each(['many', '9223372036854775807'])(
    'tasks are added and taken if their number is %s',
    async (count) => {
      await redis.set(keys.waiting, count);
      await put('a4');
      await redis.set(keys.waiting, count);
      await broker.change(QUEUE, { id: 'b1' }, 'delete');
      await redis.set(keys.waiting, count);
      expect(await takeInPieces()).toEqual(['a1', '1', 'a2', '2', 'a3', 'a4']);
    },
  );

  it('a queue whose tasks are counted wrongly is not removed with them', async () => {
    await broker.change(QUEUE, { id: 'b1' }, 'archive');
    await redis.set(keys.waiting, -3);
    await expectCode('ERR_QUEUE_NOT_EMPTY', broker.removeQueue(QUEUE, { force: false }));
  });
});

it('thousands of tasks behind a first one that is lost keep their order', async () => {
  await put(...idsOfKey('a', 3_000), ...idsOfKey('b', 1_000));
  await redis.hdel(keys.firsts, 'a');
  await broker.repair(QUEUE, { apply: true });
  expect(await broker.repair(QUEUE, { apply: true })).toEqual([]);
  const taken = await takeAll(broker);
  expect(taken.filter((id) => id.startsWith('a'))).toEqual([...idsOfKey('a', 3_000).slice(1), 'a1']);
  await setup.check?.();
});

it('the turns of thousands of keys are repaired in their order', async () => {
  const ids = Array.from({ length: 2_500 }, (_, n) => `key-${n}-1`);
  await put(...ids);
  await redis.rpush(keys.ring, 'key-0-', 'key-1-');
  expect(await broker.repair(QUEUE, { apply: true })).toMatchObject([wrongCount(keys.ring)]);
  expect(await broker.repair(QUEUE, { apply: true })).toEqual([]);
  expect(await takeAll(broker)).toEqual(ids);
  await setup.check?.();
});

describe('what another program has damaged in a queue whose keys have limits', () => {
  beforeEach(async () => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    await put('a1', 'a2', 'b1');
    await take(broker);
  });

  it('a repair finds a run that no limit counts, and then the limit counts it', async () => {
    await redis.del(keys.runs);
    const found = [{ kind: 'wrong-count', queue: QUEUE, id: 'a1', where: keys.runs }];
    expect(await broker.repair(QUEUE, { apply: false })).toEqual(found);
    expect(await broker.repair(QUEUE, { apply: true })).toEqual(found);
    expect(await broker.repair(QUEUE, { apply: false })).toEqual([]);
    await broker.recover([QUEUE], LONG_MS, LONG_MS); // which lets keys with a place have their turn
    expect(await takeAll(broker)).toEqual(['b1']);
    await setup.check?.();
  });

  it('a key at its limit that has lost its turn is held back again', async () => {
    await redis.del(keys.ring, keys.parked);
    expect(await broker.repair(QUEUE, { apply: true })).toMatchObject([wrongCount(keys.ring)]);
    expect(await broker.repair(QUEUE, { apply: true })).toEqual([]);
    expect(await redis.zscore(keys.parked, 'a')).toBe('inf');
    expect(await takeAll(broker)).toEqual(['b1']);
    await setup.check?.();
  });

  it('a member of the runs that is not a run is removed by the next recovery', async () => {
    await redis.zadd(keys.runs, 0, 'x', 0, '-9:a:b', 0, '-1:a:gone');
    expect(await broker.recover([QUEUE], LONG_MS, LONG_MS)).toEqual([]);
    expect(await redis.zcard(keys.runs)).toBe(1);
    await setup.check?.();
  });
});

it('a scan that has failed at a key of a wrong type does not go on as if it had read everything', async () => {
  await broker.enqueue(newTask({ id: '1' }));
  const states = ['pending', 'completed'] as const;
  const { next } = await broker.scan(QUEUE, states, 1);
  await redis.set(keys.completed, 'text');
  await expectCode('ERR_WIRE_MESSAGE', broker.scan(QUEUE, states, 1, next));
  await expect(broker.scan(QUEUE, states, 1, next)).rejects.toThrow('a position that no call has used');
});
