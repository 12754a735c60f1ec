import { Redis } from 'ioredis';
import { Inspector, type Defect } from 'escapement/tasks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeTaskMessage } from '../../../../src/tasks/wire/message-codec.ts';
import {
  everythingOf,
  failure,
  LONG_MS,
  newTask,
  putIntoEach,
  QUEUE,
  take,
  takeAll,
} from '../../../conformance/broker/support.ts';
import { runs } from '../../../runs.ts';
import { redisSetup, type RedisSetup } from './setup.ts';

const P = `asynq:{${QUEUE}}:`;

let setup: RedisSetup;
let redis: Redis;
let inspector: Inspector;

beforeEach(async () => {
  setup = await redisSetup();
  redis = setup.redis;
  inspector = new Inspector({ broker: setup.broker });
  await putIntoEach(setup.broker);
  await setup.broker.enqueue(newTask({ id: 'locked', uniqueKey: `${P}unique:t:1` }));
  await setup.broker.enqueue(newTask({ id: 'held', group: 'other' }));
  const limits = { graceMs: LONG_MS, maxDelayMs: 0, maxSize: 1 };
  await setup.broker.takeGroup(QUEUE, 'other', limits, LONG_MS);
});

afterEach(async () => {
  await inspector.close();
  await setup.dispose();
});

interface Damage {
  readonly damage: () => Promise<unknown>;
  readonly found: readonly Partial<Defect>[];
  /** What holds when it is repaired. */
  readonly then: () => Promise<unknown>;
}

const stateOf = async (id: string): Promise<string> => (await setup.broker.task(QUEUE, id)).state;

const DAMAGES: Record<string, Damage> = {
  ...Object.fromEntries(
    ['pending', 'active'].map((list): [string, Damage] => [
      `an id without a task in the list of those that are ${list}`,
      {
        damage: () => redis.lpush(`${P}${list}`, 'ghost'),
        found: [{ kind: 'id-without-task', id: 'ghost', where: `${P}${list}` }],
        then: async () => {
          expect(await redis.lpos(`${P}${list}`, 'ghost')).toBeNull();
        },
      },
    ]),
  ),
  ...Object.fromEntries(
    ['scheduled', 'retry', 'archived', 'completed', 'lease', 'g:group'].map((zset): [string, Damage] => [
      `an id without a task in ${zset}`,
      {
        damage: () => redis.zadd(`${P}${zset}`, 1, 'ghost'),
        found: [{ kind: 'id-without-task', id: 'ghost', where: `${P}${zset}` }],
        then: async () => {
          expect(await redis.zscore(`${P}${zset}`, 'ghost')).toBeNull();
        },
      },
    ]),
  ),
  'an id in a list of another state': {
    damage: () => redis.zadd(`${P}retry`, 1, 'archived'),
    found: [{ kind: 'id-in-wrong-list', id: 'archived', where: `${P}retry` }],
    then: async () => {
      expect(await redis.zscore(`${P}retry`, 'archived')).toBeNull();
      expect(await stateOf('archived')).toBe('archived');
    },
  },
  ...Object.fromEntries(
    ['scheduled', 'retry', 'archived', 'completed'].map((state): [string, Damage] => [
      `a task that is ${state} and in no list`,
      {
        damage: () => redis.zrem(`${P}${state}`, state),
        found: [{ kind: 'task-in-no-list', id: state, where: '' }],
        then: async () => {
          expect(await redis.zscore(`${P}${state}`, state)).not.toBeNull();
        },
      },
    ]),
  ),
  'a task that is pending and in no list': {
    damage: () => redis.lrem(`${P}pending`, 0, 'pending'),
    found: [{ kind: 'task-in-no-list', id: 'pending', where: '' }],
    then: async () => {
      expect(await takeAll(setup.broker)).toContain('pending');
    },
  },
  'a task that is active and in no list': {
    damage: async () => {
      await redis.lrem(`${P}active`, 0, 'active');
      await redis.zrem(`${P}lease`, 'active');
    },
    found: [{ kind: 'task-in-no-list', id: 'active', where: '' }],
    then: async () => {
      await setup.advance(1_000);
      const recovered = await setup.broker.recover([QUEUE], 0, LONG_MS);
      expect(recovered.map(({ message }) => message.id)).toEqual(['active']);
    },
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
    then: async () => {
      await setup.advance(1_000);
      expect(await setup.broker.recover([QUEUE], 0, LONG_MS)).toHaveLength(1);
    },
  },
  'a task that is active without a lease': {
    damage: () => redis.zrem(`${P}lease`, 'active'),
    found: [{ kind: 'active-without-lease', id: 'active' }],
    then: async () => {
      await setup.advance(1_000);
      expect(await setup.broker.recover([QUEUE], 0, LONG_MS)).toHaveLength(1);
    },
  },
  'a task of a group that is in no list': {
    damage: () => redis.zrem(`${P}g:group`, 'aggregating'),
    found: [
      { kind: 'group-without-tasks', id: '', where: 'group' },
      { kind: 'task-in-no-list', id: 'aggregating', where: '' },
    ],
    then: async () => {
      expect(await setup.broker.groups(QUEUE)).toEqual([{ group: 'group', size: 1 }]);
    },
  },
  'a group that is not listed': {
    damage: () => redis.srem(`${P}groups`, 'group'),
    found: [{ kind: 'group-not-listed', id: 'aggregating', where: 'group' }],
    then: async () => {
      expect(await setup.broker.groups(QUEUE)).toEqual([{ group: 'group', size: 1 }]);
    },
  },
  'a group that is listed and has no tasks': {
    damage: () => redis.sadd(`${P}groups`, 'ghost'),
    found: [{ kind: 'group-without-tasks', id: '', where: 'ghost' }],
    then: async () => {
      expect(await redis.smembers(`${P}groups`)).toEqual(['group']);
    },
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
    then: async () => {
      await setup.broker.enqueue(newTask({ id: 'archived' }));
    },
  },
  'a result that came after its task was removed': {
    damage: () => redis.hset(`${P}t:late`, 'result', 'x'),
    found: [{ kind: 'task-without-message', id: 'late', where: '' }],
    then: async () => {
      await setup.broker.enqueue(newTask({ id: 'late' }));
    },
  },
  'a lock of a task that was removed': {
    damage: () => redis.set(`${P}unique:t:2`, 'nobody', 'EX', 100),
    found: [{ kind: 'leaked-lock', id: 'nobody', where: `${P}unique:t:2` }],
    then: async () => {
      await setup.broker.enqueue(newTask({ uniqueKey: `${P}unique:t:2` }));
    },
  },
  'a lock of a task that is archived': {
    damage: () => redis.set(`${P}unique:t:2`, 'archived', 'EX', 100),
    found: [{ kind: 'leaked-lock', id: 'archived', where: `${P}unique:t:2` }],
    then: async () => {
      expect(await redis.exists(`${P}unique:t:2`)).toBe(0);
    },
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
  for (const [name, { damage, found, then }] of Object.entries(DAMAGES)) {
    test(`${name} is found, and repaired if requested`, async () => {
      await damage();
      const expected = found.map((defect) => expect.objectContaining({ ...defect, queue: QUEUE }) as Defect);
      expect(await inspector.repair()).toEqual(expected);
      expect(await inspector.repair({ queues: [QUEUE] })).toEqual(expected); // it was a dry run
      expect(await inspector.repair({ apply: true })).toEqual(expected);
      expect(await inspector.repair()).toEqual([]);
      await then();
    });
  }

  test('a message that cannot be decoded is reported and not changed', async () => {
    await redis.hset(`${P}t:pending`, 'msg', Buffer.from([255, 255]));
    const defects = [{ kind: 'unreadable-message', queue: QUEUE, id: 'pending', where: '' }];
    expect(await inspector.repair({ apply: true })).toEqual(defects);
    expect(await inspector.repair()).toEqual(defects);
  });

  test('a message of another task is reported and not changed', async () => {
    const { message } = newTask({ id: 'other' });
    await redis.hset(`${P}t:pending`, 'msg', Buffer.from(encodeTaskMessage(message)));
    const defects = [{ kind: 'unreadable-message', queue: QUEUE, id: 'pending', where: '' }];
    expect(await inspector.repair({ apply: true })).toEqual(defects);
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

  test('a task that is leased during a repair is not a defect', async () => {
    await take(setup.broker);
    expect(await inspector.repair({ apply: true })).toEqual([]);
  });
});
