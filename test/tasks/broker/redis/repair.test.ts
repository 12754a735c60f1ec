import { Redis } from 'ioredis';
import { Inspector, type Defect } from 'escapement/tasks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeTaskMessage } from '../../../../src/tasks/wire/message-codec.ts';
import {
  everythingOf,
  failure,
  idsIn,
  idsOf,
  LONG_MS,
  newTask,
  putIntoEach,
  QUEUE,
  takeAll,
  takeSet,
} from '../../../conformance/broker/support.ts';
import { runs } from '../../../runs.ts';
import { redisForTest, type RedisSetup } from './setup.ts';

const P = `asynq:{${QUEUE}}:`;

let setup: RedisSetup;
let redis: Redis;
let inspector: Inspector;

beforeEach(async () => {
  setup = await redisForTest();
  redis = setup.redis;
  inspector = new Inspector({ broker: setup.broker });
  await putIntoEach(setup.broker);
  await setup.broker.enqueue(newTask({ id: 'locked', uniqueKey: `${P}unique:t:1` }));
  await setup.broker.enqueue(newTask({ id: 'held', group: 'other' }));
  await takeSet(setup.broker, 'other');
});

afterEach(async () => {
  await inspector.close();
});

interface Damage {
  readonly damage: () => Promise<unknown>;
  readonly found: readonly Partial<Defect>[];
  /** What is read, or done, when it is repaired, and the result. */
  readonly then: () => Promise<unknown>;
  readonly is: unknown;
}

const stateOf = async (id: string): Promise<string> => (await setup.broker.task(QUEUE, id)).state;

async function recoveredIds(): Promise<string[]> {
  await setup.advance(1_000);
  return idsOf(await setup.broker.recover([QUEUE], 0, LONG_MS));
}

const DAMAGES: Record<string, Damage> = {
  ...Object.fromEntries(
    ['pending', 'active'].map((list): [string, Damage] => [
      `an id without a task in the list of those that are ${list}`,
      {
        damage: () => redis.lpush(`${P}${list}`, 'ghost'),
        found: [{ kind: 'id-without-task', id: 'ghost', where: `${P}${list}` }],
        then: () => redis.lpos(`${P}${list}`, 'ghost'),
        is: null,
      },
    ]),
  ),
  ...Object.fromEntries(
    ['scheduled', 'retry', 'archived', 'completed', 'lease', 'g:group'].map((zset): [string, Damage] => [
      `an id without a task in ${zset}`,
      {
        damage: () => redis.zadd(`${P}${zset}`, 1, 'ghost'),
        found: [{ kind: 'id-without-task', id: 'ghost', where: `${P}${zset}` }],
        then: () => redis.zscore(`${P}${zset}`, 'ghost'),
        is: null,
      },
    ]),
  ),
  'an id in a list of another state': {
    damage: () => redis.zadd(`${P}retry`, 1, 'archived'),
    found: [{ kind: 'id-in-wrong-list', id: 'archived', where: `${P}retry` }],
    then: async () => [await redis.zscore(`${P}retry`, 'archived'), await stateOf('archived')],
    is: [null, 'archived'],
  },
  ...Object.fromEntries(
    ['scheduled', 'retry', 'archived', 'completed'].map((state): [string, Damage] => [
      `a task that is ${state} and in no list`,
      {
        damage: () => redis.zrem(`${P}${state}`, state),
        found: [{ kind: 'task-in-no-list', id: state, where: '' }],
        then: () => redis.zscore(`${P}${state}`, state),
        is: expect.anything(),
      },
    ]),
  ),
  'a task that is pending and in no list': {
    damage: () => redis.lrem(`${P}pending`, 0, 'pending'),
    found: [{ kind: 'task-in-no-list', id: 'pending', where: '' }],
    then: () => takeAll(setup.broker),
    is: expect.arrayContaining(['pending']),
  },
  'a task that is active and in no list': {
    damage: async () => {
      await redis.lrem(`${P}active`, 0, 'active');
      await redis.zrem(`${P}lease`, 'active');
    },
    found: [{ kind: 'task-in-no-list', id: 'active', where: '' }],
    then: recoveredIds,
    is: ['active'],
  },
  'a task that is active and in the list of those that are pending': {
    damage: async () => {
      await redis.lmove(`${P}active`, `${P}pending`, 'RIGHT', 'LEFT');
      await redis.zrem(`${P}lease`, 'active');
    },
    found: [
      { kind: 'id-in-wrong-list', id: 'active', where: `${P}pending` },
      { kind: 'task-in-no-list', id: 'active', where: '' },
    ],
    then: recoveredIds,
    is: ['active'],
  },
  'a task that is active without a lease': {
    damage: () => redis.zrem(`${P}lease`, 'active'),
    found: [{ kind: 'active-without-lease', id: 'active' }],
    then: recoveredIds,
    is: ['active'],
  },
  'a task of a group that is in no list': {
    damage: () => redis.zrem(`${P}g:group`, 'aggregating'),
    found: [
      { kind: 'group-without-tasks', id: '', where: 'group' },
      { kind: 'task-in-no-list', id: 'aggregating', where: '' },
    ],
    then: () => setup.broker.groups(QUEUE),
    is: [{ group: 'group', size: 1 }],
  },
  'a group that is not listed': {
    damage: () => redis.srem(`${P}groups`, 'group'),
    found: [{ kind: 'group-not-listed', id: 'aggregating', where: 'group' }],
    then: () => setup.broker.groups(QUEUE),
    is: [{ group: 'group', size: 1 }],
  },
  'a group that is listed and has no tasks': {
    damage: () => redis.sadd(`${P}groups`, 'ghost'),
    found: [{ kind: 'group-without-tasks', id: '', where: 'ghost' }],
    then: () => redis.smembers(`${P}groups`),
    is: ['group'],
  },
  'a task whose key has another type': {
    damage: async () => {
      await redis.del(`${P}t:archived`);
      await redis.set(`${P}t:archived`, 'x');
    },
    found: [
      { kind: 'id-without-task', id: 'archived', where: `${P}archived` },
      { kind: 'task-without-message', id: 'archived', where: '' },
    ],
    then: () => setup.broker.enqueue(newTask({ id: 'archived' })),
    is: expect.objectContaining({ state: 'pending' }),
  },
  'a result that came after its task was removed': {
    damage: () => redis.hset(`${P}t:late`, 'result', 'x'),
    found: [{ kind: 'task-without-message', id: 'late', where: '' }],
    then: () => setup.broker.enqueue(newTask({ id: 'late' })),
    is: expect.objectContaining({ state: 'pending' }),
  },
  'a lock of a task that was removed': {
    damage: () => redis.set(`${P}unique:t:2`, 'nobody', 'EX', 100),
    found: [{ kind: 'leaked-lock', id: 'nobody', where: `${P}unique:t:2` }],
    then: () => setup.broker.enqueue(newTask({ uniqueKey: `${P}unique:t:2` })),
    is: expect.objectContaining({ state: 'pending' }),
  },
  'a lock of a task that is archived': {
    damage: () => redis.set(`${P}unique:t:2`, 'archived', 'EX', 100),
    found: [{ kind: 'leaked-lock', id: 'archived', where: `${P}unique:t:2` }],
    then: () => redis.exists(`${P}unique:t:2`),
    is: 0,
  },
};

test('a queue with tasks in every state has no defects', async () => {
  const before = await everythingOf(setup.broker);
  expect(await inspector.repair()).toEqual([]);
  expect(await inspector.repair({ apply: true })).toEqual([]);
  expect(await everythingOf(setup.broker)).toEqual(before);
});

test('a queue has no defects while servers use it', async () => {
  const { broker } = setup;
  const isDone = { value: false };
  const working = (async () => {
    for (let round = 0; round < runs(150); round++) {
      await broker.enqueueMany(Array.from({ length: 20 }, () => newTask({ retentionMs: LONG_MS })));
      for (const [n, task] of (await broker.dequeue(QUEUE, 20, LONG_MS)).entries()) {
        if (n % 3 === 0) await broker.complete(task);
        else if (n % 3 === 1) await broker.retry(task, failure(), 0);
        else await broker.release(task);
      }
      await broker.forward([QUEUE]);
    }
    isDone.value = true;
  })();
  while (!isDone.value) expect(await inspector.repair({ apply: true })).toEqual([]);
  await working;
});

describe('a defect', () => {
  for (const [name, { damage, found, then, is }] of Object.entries(DAMAGES)) {
    test(`${name} is found, and repaired if requested`, async () => {
      await damage();
      const expected = found.map((defect) => expect.objectContaining({ ...defect, queue: QUEUE }) as Defect);
      expect(await inspector.repair()).toEqual(expected);
      expect(await inspector.repair({ queues: [QUEUE] })).toEqual(expected); // it was a dry run
      expect(await inspector.repair({ apply: true })).toEqual(expected);
      expect(await inspector.repair()).toEqual([]);
      expect(await then()).toEqual(is);
    });
  }

  test.each([
    ['that cannot be decoded', Uint8Array.of(255, 255)],
    ['of another task', encodeTaskMessage(newTask({ id: 'other' }).message)],
  ])('a message %s is reported and not changed', async (_, msg) => {
    await redis.hset(`${P}t:pending`, 'msg', Buffer.from(msg));
    const defects = [{ kind: 'unreadable-message', queue: QUEUE, id: 'pending', where: '' }];
    expect(await inspector.repair({ apply: true })).toEqual(defects);
    expect(await inspector.repair()).toEqual(defects);
  });

  test('a defect is found among many tasks', async () => {
    await setup.broker.enqueueMany(Array.from({ length: 3_000 }, () => newTask()));
    await redis.lpush(`${P}pending`, 'ghost 1');
    await redis.rpush(`${P}pending`, 'ghost 2');
    const msg = Buffer.from(encodeTaskMessage(newTask({ id: 'lost' }).message));
    await redis.hset(`${P}t:lost`, 'msg', msg, 'state', 'pending');
    const defects = await inspector.repair({ apply: true });
    expect(defects.map(({ kind, id }) => `${kind} ${id}`).sort()).toEqual([
      'id-without-task ghost 1',
      'id-without-task ghost 2',
      'task-in-no-list lost',
    ]);
    expect(await inspector.repair()).toEqual([]);
  });

  test('repair handles queue names with characters of Redis patterns', async () => {
    const queue = 'a*[b]?\\';
    await setup.broker.enqueue(newTask({ queue }));
    await setup.broker.enqueue(newTask({ queue: 'axbc' }));
    await redis.hset(`asynq:{${queue}}:t:late`, 'result', 'x');
    await redis.hset('asynq:{axbc}:t:late', 'result', 'x');
    expect(await inspector.repair({ queues: [queue], apply: true })).toMatchObject([{ id: 'late', queue }]);
    expect(await inspector.repair()).toMatchObject([{ id: 'late', queue: 'axbc' }]);
  });
});

describe('a repair of a long list', () => {
  /** How often Redis has carried out a command since the last CONFIG RESETSTAT. */
  async function callsOf(command: string): Promise<number> {
    const stats = await redis.info('commandstats');
    return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+),`, 'mu').exec(stats)?.[1] ?? 0);
  }

  const ghosts = Array.from({ length: 2_000 }, (_, nth) => `ghost ${nth}`);

  test('ids without tasks are removed hundreds at a time, from among tasks that keep their order', async () => {
    const ids = await idsIn(setup.broker, 'pending');
    for (const [nth, id] of Array.from({ length: 50 }, (_, n) => `task ${n}`).entries()) {
      await setup.broker.enqueue(newTask({ id }));
      await redis.lpush(`${P}pending`, ...ghosts.slice(nth * 40, nth * 40 + 40));
      ids.push(id);
    }
    await redis.config('RESETSTAT');
    expect(await inspector.repair({ apply: true })).toHaveLength(ghosts.length);
    expect([await callsOf('lpos'), await callsOf('lrem')]).toEqual([0, 5]);
    expect(await idsIn(setup.broker, 'pending')).toEqual(ids);
  });

  test('ids without tasks behind the first task of a key are removed hundreds at a time', async () => {
    await setup.broker.enqueueMany(['k1', 'k2', 'k3'].map((id) => newTask({ id, key: 'k' })));
    await redis.linsert(`${P}x:next:k`, 'AFTER', 'k2', 'ghost');
    await redis.rpush(`${P}x:next:k`, ...ghosts);
    await redis.incrby(`${P}x:waiting`, 1 + ghosts.length);
    await redis.config('RESETSTAT');
    const found = (await inspector.repair({ apply: true })).map(({ kind, id }) => `${kind} ${id}`);
    expect(found.sort()).toEqual(['ghost', ...ghosts].map((id) => `id-without-task ${id}`).sort());
    expect([await callsOf('lpos'), await callsOf('lrem')]).toEqual([0, 5]);
    expect(await inspector.repair()).toEqual([]);
    expect((await takeAll(setup.broker)).filter((id) => id.startsWith('k'))).toEqual(['k1', 'k2', 'k3']);
  });

  test('a long list is searched for lost tasks for some milliseconds at a time', async () => {
    const lost = Array.from({ length: 300 }, () => newTask());
    await setup.broker.enqueueMany(lost);
    await redis.del(`${P}pending`);
    await redis.rpush(`${P}pending`, ...Array.from({ length: 10_000 }, (_, nth) => `ghost ${nth}`));
    await redis.config('RESETSTAT');
    expect((await inspector.repair()).length).toBeGreaterThan(10_000 + lost.length);
    const scripts = await callsOf('evalsha');
    await redis.config('RESETSTAT');
    expect((await inspector.repair({ apply: true })).length).toBeGreaterThan(10_000 + lost.length);
    expect(scripts - (await callsOf('evalsha'))).toBeGreaterThanOrEqual(2); // now the list is short
  });
});
