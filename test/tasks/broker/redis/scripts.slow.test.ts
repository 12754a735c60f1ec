import { readdirSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Script } from '../../../../src/tasks/broker/redis/script.ts';
import { TRANSFER } from '../../../../src/tasks/broker/transfer.ts';
import { failure, LONG_MS, newTask, QUEUE, take } from '../../../conformance/broker/support.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import {
  callOf,
  changeLimits,
  errorOf,
  fill,
  fillWithKeys,
  keysTouchedBy,
  MAKE,
  recovered,
  makeBroker,
  P,
  replay,
  restore,
  snapshotOf,
  typeOf,
  type ScriptCall,
  type ScriptsWorld,
  type Snapshot,
} from './scripts-world.ts';

/** How a script that is run is checked. */
interface Case {
  /** Runs the script in a filled database. */
  readonly act: (world: ScriptsWorld) => Promise<unknown>;
  /** Keys whose wrong type does not fail the call: the script skips them, and goes on. */
  readonly skips?: RegExp;
  /** Keys that the script replaces or deletes as a whole, whatever their type is. */
  readonly replaces?: RegExp;
  /** Whether the queue has keys and limits. */
  readonly hasKeys?: boolean;
}

const FOLDER = new URL('../../../../src/tasks/broker/redis/', import.meta.url);
const AT_ONCE = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };
const LATER_MS = 10 * LONG_MS;
const SERVER = {
  ...{ id: 's', host: 'h', pid: 7, concurrency: 1, queues: { [QUEUE]: 1 }, strictPriority: false },
  ...{ status: 'active' as const, startedAtMs: 1, workers: [] },
};

/** Tasks of a list: one of them must not stop the others. */
const TASKS = /\}:t:/u;
/** Keys that only queues with keys or limits have. */
const OURS = /:x:(?:limits|seq|waiting|ring|parked|run|rates)$/u;
/** Whether it is paused depends on the key alone. */
const PAUSED = /:paused$/u;

/** The same in a queue without keys and limits, and in one with them. */
const inBoth = (one: Case): readonly Case[] => [one, { ...one, hasKeys: true }];

const CASES: Record<string, readonly Case[]> = {
  ANNOUNCE_SCHEDULER: [
    {
      act: ({ broker }) => broker.announceScheduler('s', () => [], LONG_MS),
      replaces: /asynq:schedulers:/u,
    },
  ],
  ANNOUNCE_SERVER: [
    {
      act: ({ broker }) => broker.announceServer(() => SERVER, LONG_MS),
      replaces: /asynq:(?:servers|workers):/u,
    },
  ],
  ARCHIVE: [
    {
      act: async ({ broker }) => broker.archive(await take(broker), failure()),
      skips: /\}:t:old/u,
    },
  ],
  ARCHIVE_FROM_SET: [
    {
      act: async ({ broker }) => {
        await redis.hset(`${P}t:aggregating`, 'msg', 'unreadable');
        await broker.takeGroup(QUEUE, 'group', AT_ONCE, LONG_MS);
      },
      skips: TASKS,
    },
  ],
  ARCHIVE_SOME: (['pending', 'scheduled', 'aggregating'] as const).map((state) => ({
    act: ({ broker }: ScriptsWorld) =>
      broker.change(QUEUE, { state, group: state === 'aggregating' ? 'group' : undefined }, 'archive'),
    skips: state === 'scheduled' ? /\}:t:|:g:|:x:later:/u : /\}:t:|:unique:|:x:later:/u,
  })),
  ARCHIVE_TASK: [
    ...['pending', 'scheduled', 'late-grouped', 'retry', 'completed', 'aggregating'].map((id) => ({
      act: ({ broker }: ScriptsWorld) => broker.change(QUEUE, { id }, 'archive'),
      skips: /\}:t:(?:old|archived)|:g:late|:x:later:/u,
    })),
  ],
  ARCHIVE_UNREADABLE: [
    {
      act: async ({ broker, redis }) => {
        await redis.hset(`${P}t:pending`, 'msg', 'unreadable');
        await broker.dequeue(QUEUE, 10, LONG_MS);
      },
    },
  ],
  BOUND_BUCKETS: [{ act: changeLimits, hasKeys: true }],
  CANCEL: [{ act: ({ broker }) => broker.cancel({ taskId: 'active', queue: QUEUE, outcome: 'retry' }, 0) }],
  CHECK_GROUPS: [{ ...repairing(), skips: /\}:t:|:[gx]:/u, replaces: /:x:later:/u }],
  CHECK_LEASES: [repairing()],
  CHECK_LOCKS: [{ ...repairing(), skips: /:unique:|\}:t:/u }],
  CHECK_PLACE: [repairing()],
  CHECK_TASKS: [{ ...repairing(), replaces: TASKS }],
  CHECK_WAITING: [{ ...repairing(), hasKeys: true }],
  CLEAR_SOME: [
    {
      act: async (world) => {
        const { broker } = world;
        await broker.complete(await recovered(world));
        await broker.removeQueue(QUEUE, { force: true });
      },
      skips: /:unique:/u,
      replaces: /\}:t:|:x:later:/u,
    },
  ],
  COMPLETE: [
    { act: async ({ broker }) => broker.complete(await take(broker)), skips: TASKS },
    {
      skips: /\}:t:|:unique:/u,
      act: async ({ broker }) => {
        await broker.enqueue(newTask({ retentionMs: LONG_MS, uniqueKey: `${P}unique:t:2` }));
        const tasks = await broker.dequeue(QUEUE, 10, LONG_MS);
        await Promise.all(tasks.map((task) => broker.complete(task)));
      },
    },
  ],
  COUNT_HELD: [{ act: ({ broker }) => broker.queueStats(QUEUE), hasKeys: true }],
  DELETE_EXPIRED: [
    {
      act: async ({ broker }) => {
        await redis.zadd(`${P}archived`, 1, 'ghost-1', 1, 'ghost-2');
        await broker.deleteExpired([QUEUE], 100);
      },
      skips: TASKS,
    },
  ],
  DELETE_SOME: (['pending', 'scheduled', 'archived', 'aggregating'] as const).map((state) => ({
    act: ({ broker }: ScriptsWorld) =>
      broker.change(QUEUE, { state, group: state === 'aggregating' ? 'group' : undefined }, 'delete'),
    skips: state === 'scheduled' ? /\}:t:|:g:|:x:later:/u : /\}:t:|:unique:|:x:later:/u,
  })),
  DELETE_TASK: ['locked', 'scheduled', 'late-grouped', 'retry', 'completed', 'archived', 'aggregating'].map(
    (id) => ({
      act: ({ broker }: ScriptsWorld) => broker.change(QUEUE, { id }, 'delete'),
      skips: /:unique:|:g:late|:x:later:/u,
    }),
  ),
  DEQUEUE: [{ act: dequeueAll, skips: /\}:t:|:paused$/u }],
  DEQUEUE_IN_FLOW: [{ act: dequeueAll, skips: /\}:t:|:paused$/u, hasKeys: true }],
  DISCARD: [
    {
      act: async ({ broker }) => {
        const task = (await broker.dequeue(QUEUE, 10, LONG_MS)).find(
          ({ message }) => message.id === 'locked',
        );
        if (task !== undefined) await broker.discard(task);
      },
      skips: /:unique:/u,
    },
  ],
  ENQUEUE: [
    newTask(),
    newTask({ uniqueKey: `${P}unique:t:3` }),
    newTask({ group: 'new' }),
    newTask({ processAtMs: Date.now() + LATER_MS }),
    newTask({ processAtMs: Date.now() + LATER_MS, group: 'late' }),
  ].map((task) => ({ act: ({ broker }: ScriptsWorld) => broker.enqueue(task), skips: TASKS })),
  ENQUEUE_IN_FLOW: [
    newTask({ key: 'a' }),
    { ...newTask({ key: 'new' }), isNext: true },
    newTask({ key: 'b', group: 'new' }),
    newTask({ key: 'b', processAtMs: Date.now() + LATER_MS }),
  ].map((task) => ({
    act: ({ broker }: ScriptsWorld) => broker.enqueue(task),
    skips: TASKS,
    hasKeys: true,
  })),
  ENQUEUE_TICK: [
    newTask(),
    newTask({ group: 'new' }),
    newTask({ processAtMs: Date.now() + LATER_MS, group: 'late' }),
  ].map((task) => ({
    act: ({ broker }: ScriptsWorld) => broker.enqueueTick(task, { entryKey: 'entry', atMs: 2 }),
    skips: TASKS,
  })),
  EXTEND_LEASES: [
    {
      act: async ({ broker }) => broker.extendLeases(await broker.dequeue(QUEUE, 10, LONG_MS), LATER_MS),
      skips: TASKS,
    },
  ],
  FORWARD: inBoth({ act: ({ broker }) => broker.forward([QUEUE]), skips: /\}:t:|:x:later:/u }),
  LIST_GROUPS: [{ act: ({ broker }) => broker.groups(QUEUE), skips: /:g:/u }],
  LIST_KEYS: [{ act: ({ broker }) => broker.keys(QUEUE, { page: 1, size: 10 }), hasKeys: true }],
  SCAN_TASKS: (['active', 'pending', 'scheduled'] as const).map((state) => ({
    act: ({ broker }: ScriptsWorld) => broker.scan(QUEUE, [state], 10),
    skips: TASKS,
  })),
  PAUSE: [{ act: ({ broker }) => broker.pause(QUEUE), skips: PAUSED }],
  QUEUE_STATS: [{ act: ({ broker }) => broker.queueStats(QUEUE), skips: /\}:t:|:paused$/u }],
  READ_TASKS: [
    ...(['active', 'scheduled'] as const).map((state) => ({
      act: ({ broker }: ScriptsWorld) => broker.tasks(QUEUE, state, { page: 1, size: 10 }),
      skips: TASKS,
    })),
    {
      act: async ({ broker }) => {
        for await (const piece of broker[TRANSFER]().read()) expect(piece.kind).not.toBe('events');
      },
      skips: /\}:t:|:unique:/u,
    },
  ],
  REARRANGE: [{ act: changeLimits, hasKeys: true }],
  RECLAIM_SETS: [{ act: ({ broker }) => broker.reclaimSets([QUEUE]) }],
  RECORD_EVENT: [{ act: ({ broker }) => broker.recordEnqueueEvent('entry', { taskId: 'tick', atMs: 1 }) }],
  RECOVER: inBoth({
    act: async ({ broker, clock }) => {
      clock.advance(LATER_MS);
      await broker.recover([QUEUE], 0, LONG_MS);
    },
    skips: TASKS,
  }),
  RELEASE: inBoth({ act: async ({ broker }) => broker.release(await take(broker)) }),
  REMOVE_QUEUE: [
    {
      act: ({ broker }) => broker.removeQueue(QUEUE, { force: false }).catch(() => undefined),
    },
    {
      act: async ({ broker, redis }) => {
        await redis.flushdb();
        await broker.enqueue(newTask());
        await broker.complete(await take(broker));
        await broker.removeQueue(QUEUE, { force: false });
      },
      replaces: /:(?:lease|paused|x:epoch|x:ticks|processed|failed)/u,
    },
  ],
  REPLACE_SET: [
    {
      act: async ({ broker }) => {
        const { set } = await broker.takeGroup(QUEUE, 'group', AT_ONCE, LONG_MS);
        if (set !== undefined) await broker.replaceSet(set, newTask({ uniqueKey: `${P}unique:t:4` }));
      },
      skips: /\}:t:task/u,
      replaces: /\}:t:aggregating/u,
    },
  ],
  REPLACE_TASK: [{}, { group: 'new' }, { processAtMs: Date.now() + LATER_MS }].map((parts) => ({
    act: ({ broker }: ScriptsWorld) =>
      broker.enqueue({ ...newTask({ uniqueKey: `${P}unique:t:1`, ...parts }), onDuplicate: 'replace' }),
  })),
  RESUME: [
    {
      act: async ({ broker }) => {
        await broker.pause(QUEUE);
        await broker.resume(QUEUE);
      },
      replaces: PAUSED,
    },
  ],
  RETRY: [{ act: async ({ broker }) => broker.retry(await take(broker), failure(), LATER_MS) }],
  RUN_SOME: (['scheduled', 'archived', 'aggregating'] as const).map((state) => ({
    act: ({ broker }: ScriptsWorld) =>
      broker.change(QUEUE, { state, group: state === 'aggregating' ? 'group' : undefined }, 'run'),
    skips: state === 'scheduled' ? /\}:t:|:g:|:x:later:/u : /\}:t:|:x:later:/u,
  })),
  RUN_TASK: ['scheduled', 'late-grouped', 'retry', 'archived', 'completed', 'aggregating'].map((id) => ({
    act: ({ broker }) => broker.change(QUEUE, { id }, 'run'),
    skips: /:g:late|:x:later:/u,
  })),
  SET_LIMITS: [{ act: changeLimits, hasKeys: true }],
  TAKE_GROUP: [
    { act: ({ broker }) => broker.takeGroup(QUEUE, 'group', AT_ONCE, LONG_MS), skips: /\}:t:|:x:later:/u },
  ],
  TASK: ['active', 'scheduled', 'retry'].map((id) => ({ act: ({ broker }) => broker.task(QUEUE, id) })),
  UPDATE_MESSAGE: [{ act: ({ broker }) => broker.updatePayload(QUEUE, 'scheduled', new Uint8Array(1)) }],
  WRITE_QUEUE: [
    {
      act: ({ broker }) => {
        const counts = {
          days: [['2999-11-21', 2, 1]],
          processedTotal: 99,
          failedTotal: 98,
          limits: undefined,
        } as const;
        const queue = {
          name: QUEUE,
          isPaused: true,
          epoch: 99,
          ticks: [['entry', 9e12]],
          ...counts,
        } as const;
        return broker[TRANSFER]().write({ kind: 'queue', queue });
      },
    },
  ],
  WRITE_WHOLE: (['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const).map(
    (state) => ({
      act: ({ broker }: ScriptsWorld) => {
        const { message } = newTask({ group: 'new', uniqueKey: `${P}unique:t:5` });
        const others = { recoveries: 1, result: new Uint8Array(1), progress: '1' };
        const times = { atMs: Date.now() + LATER_MS, lockEndsMs: Date.now() + LATER_MS };
        const tasks = [{ message, state, ...others, ...times }];
        return broker[TRANSFER]().write({ kind: 'tasks', queue: QUEUE, tasks });
      },
      skips: /\}:t:|:unique:/u,
    }),
  ),
  WRITE_FIELD: [{ act: async ({ broker }) => broker.writeResult(await take(broker), new Uint8Array(1)) }],
};

const scripts = await allScripts();
let server: RedisProcess;
let redis: Redis;

beforeAll(async () => {
  server = await RedisProcess.start();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

test('every script of the broker has a case', () => {
  expect(Object.keys(CASES).sort()).toEqual([...scripts.keys()].sort());
});

describe('a script that finds a key of a wrong type changes nothing, and names the key', () => {
  for (const [name, script] of scripts) {
    test(`${name} changes nothing if a key has a wrong type, and its error names the key`, async () => {
      for (const one of CASES[name] ?? []) await checkCase(script, one);
    });

    const { inFlow } = script;
    if (inFlow === undefined) continue;
    test(`${name} changes nothing in a queue with limits if a key has a wrong type, and its error names the key`, async () => {
      for (const one of CASES[name] ?? []) await checkCase(inFlow, { ...one, hasKeys: true }, OURS);
    });
  }
});

/** @param which - the keys that are checked. */
async function checkCase(script: Script, one: Case, which = /^/u): Promise<void> {
  const world: ScriptsWorld = { ...makeBroker(server.url), redis };
  try {
    await redis.flushdb();
    await (one.hasKeys === true ? fillWithKeys : fill)(world);
    const call = await callOf(script, world, one.act);
    await restore(redis, call.before);
    const keys = await keysTouchedBy(redis, () => replay(script, redis, call));
    let current = await snapshotOf(redis);
    for (const key of keys.filter((each) => which.test(each))) {
      const right = typeOf(key);
      for (const type of Object.keys(MAKE)) {
        if (type === right) continue;
        await restore(redis, call.before, current);
        current = await checkKey(script, call, one, key, right, type);
      }
    }
  } finally {
    await world.broker.close();
  }
}

/** @returns what the script has left in the database. */
async function checkKey(
  script: Script,
  call: ScriptCall,
  { skips, replaces }: Case,
  key: string,
  right: string,
  type: string,
): Promise<Snapshot> {
  await redis.del(key);
  await MAKE[type]?.(redis, key);
  const before = await snapshotOf(redis);
  const error = await errorOf(replay(script, redis, call));
  const after = await snapshotOf(redis);
  const what = `${key}, which is a ${type}`;
  if (replaces?.test(key) === true) {
    expect(error, what).toBeUndefined();
  } else if (skips?.test(key) === true) {
    expect(error, what).toBeUndefined();
    expect(after.get(key), what).toEqual(before.get(key));
  } else {
    expect(after, what).toEqual(before);
    expect(String(error), what).toContain(`the Redis key '${key}' must be a ${right}. It is a ${type}`);
  }
  return after;
}

function dequeueAll({ broker }: ScriptsWorld): Promise<unknown> {
  return broker.dequeue(QUEUE, 100, LONG_MS);
}

function repairing(): Case {
  return {
    act: async ({ broker }) => {
      await redis.zrem(`${P}lease`, 'active');
      await redis.lpush(`${P}pending`, 'ghost');
      await redis.sadd(`${P}groups`, 'ghost');
      await broker.repair(QUEUE, { apply: true });
    },
    skips: TASKS,
  };
}

async function allScripts(): Promise<Map<string, Script>> {
  const found = new Map<string, Script>();
  for (const file of readdirSync(FOLDER)) {
    if (file === 'lease-thread-main.ts') continue; // Importing it runs it.
    const exports = (await import(new URL(file, FOLDER).href)) as Record<string, unknown>;
    for (const [name, value] of Object.entries(exports)) if (value instanceof Script) found.set(name, value);
  }
  return new Map([...found].sort());
}
