import type { TaskState } from 'escapement/tasks';
import type { RedisBroker } from 'escapement/tasks/redis';
import { expect } from 'vitest';
import type { ScanPosition } from '../../../../src/tasks/broker/broker-types.ts';
import { TRANSFER } from '../../../../src/tasks/broker/transfer.ts';
import type { NewTask } from '../../../../src/tasks/broker/broker.ts';
import {
  failure,
  LONG_MS,
  newTask,
  QUEUE,
  SERVER,
  take,
  type TaskParts,
} from '../../../conformance/broker/support.ts';
import { changeLimits, recovered, P, type ScriptsWorld } from './scripts-world.ts';

/** How a script that is run is checked. */
export interface ScriptCase {
  /** Runs the script in a filled database. */
  readonly act: (world: ScriptsWorld) => Promise<unknown>;
  /** Keys whose wrong type does not fail the call: the script skips them, and goes on. */
  readonly skips?: RegExp;
  /** Keys that the script replaces or deletes as a whole, whatever their type is. */
  readonly replaces?: RegExp;
  /** Whether the queue has keys and limits. */
  readonly hasKeys?: boolean;
}

const AT_ONCE = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };
const LATER_MS = 10 * LONG_MS;

/** Tasks of a list: one of them must not stop the others. */
const TASKS = /\}:t:/u;
/** Whether it is paused depends on the key alone. */
const PAUSED = /:paused$/u;

/** A case, after how it is checked. */
function when(how: Omit<ScriptCase, 'act'>, act: ScriptCase['act']): ScriptCase {
  return { ...how, act };
}

/** Changes all tasks of a state. */
function changing(
  change: Parameters<RedisBroker['change']>[2],
  ...states: readonly TaskState[]
): ScriptCase[] {
  const others = change === 'run' ? /\}:t:|:x:later:/u : /\}:t:|:unique:|:x:later:/u;
  return states.map((state) => {
    const group = state === 'aggregating' ? 'group' : undefined;
    const skips = state === 'scheduled' ? /\}:t:|:g:|:x:later:/u : others;
    return when({ skips }, ({ broker }) => broker.change(QUEUE, { state, group }, change));
  });
}

/** The cases of each script, by the name of its constant. */
export const CASES: Record<string, readonly ScriptCase[]> = {
  ANNOUNCE_SCHEDULER: [
    when({ replaces: /asynq:schedulers:/u }, ({ broker }) =>
      broker.announceScheduler('s', () => [], LONG_MS),
    ),
  ],
  ANNOUNCE_SERVER: [
    when({ replaces: /asynq:(?:servers|workers):/u }, ({ broker }) =>
      broker.announceServer(() => SERVER, LONG_MS),
    ),
  ],
  ARCHIVE: [
    when({ skips: /\}:t:old/u }, async ({ broker }) => broker.archive(await take(broker), failure())),
  ],
  ARCHIVE_FROM_SET: [
    when({ skips: TASKS }, async ({ broker, redis }) => {
      await redis.hset(`${P}t:aggregating`, 'msg', 'unreadable');
      await broker.takeGroup(QUEUE, 'group', AT_ONCE, LONG_MS);
    }),
  ],
  ARCHIVE_SOME: changing('archive', 'pending', 'scheduled', 'aggregating'),
  ARCHIVE_TASK: ['pending', 'scheduled', 'late-grouped', 'retry', 'completed', 'aggregating'].map((id) =>
    when({ skips: /\}:t:(?:old|archived)|:g:late|:x:later:/u }, ({ broker }) =>
      broker.change(QUEUE, { id }, 'archive'),
    ),
  ),
  ARCHIVE_UNREADABLE: [
    when({}, async ({ broker, redis }) => {
      await redis.hset(`${P}t:pending`, 'msg', 'unreadable');
      await broker.dequeue(QUEUE, 10, LONG_MS);
    }),
  ],
  BOUND_BUCKETS: [{ act: changeLimits, hasKeys: true }],
  CANCEL: [{ act: ({ broker }) => broker.cancel({ taskId: 'active', queue: QUEUE, outcome: 'retry' }, 0) }],
  CHECK_GROUPS: [{ ...repairing(), skips: /\}:t:|:[gx]:/u, replaces: /:x:later:/u }],
  CHECK_FIRSTS: [{ ...repairing(), hasKeys: true }],
  CHECK_LEASES: [repairing(), { ...repairing(), hasKeys: true }],
  CHECK_LOCKS: [{ ...repairing(), skips: /:unique:|\}:t:/u }],
  CHECK_PLACE: [repairing()],
  CHECK_TASKS: [{ ...repairing(), replaces: TASKS }],
  CHECK_TURNS: [{ ...repairing(), hasKeys: true }],
  COMPLETE: [
    when({ skips: TASKS }, async ({ broker }) => broker.complete(await take(broker))),
    when({ skips: /\}:t:|:unique:/u }, async ({ broker }) => {
      await broker.enqueue(newTask({ retentionMs: LONG_MS, uniqueKey: `${P}unique:t:2` }));
      const tasks = await broker.dequeue(QUEUE, 10, LONG_MS);
      await Promise.all(tasks.map((task) => broker.complete(task)));
    }),
  ],
  COUNT_HELD: [{ act: ({ broker }) => broker.queueStats(QUEUE), hasKeys: true }],
  DELETE_EXPIRED: [
    when({ skips: TASKS }, async ({ broker, redis }) => {
      await redis.zadd(`${P}archived`, 1, 'ghost-1', 1, 'ghost-2');
      await broker.deleteExpired([QUEUE], 100);
    }),
  ],
  DELETE_SOME: changing('delete', 'pending', 'scheduled', 'archived', 'aggregating'),
  DELETE_TASK: ['locked', 'scheduled', 'late-grouped', 'retry', 'completed', 'archived', 'aggregating'].map(
    (id) =>
      when({ skips: /:unique:|:g:late|:x:later:/u }, ({ broker }) => broker.change(QUEUE, { id }, 'delete')),
  ),
  DEQUEUE: [{ act: dequeueAll, skips: /\}:t:|:paused$/u }],
  DEQUEUE_IN_FLOW: [{ act: dequeueAll, skips: /\}:t:|:paused$|:x:next:/u, hasKeys: true }],
  DISCARD: [
    when({ skips: /:unique:/u }, async ({ broker }) => {
      const tasks = await broker.dequeue(QUEUE, 10, LONG_MS);
      const task = tasks.find(({ message }) => message.id === 'locked');
      if (task !== undefined) await broker.discard(task);
    }),
  ],
  ENQUEUE: [
    newTask(),
    newTask({ uniqueKey: `${P}unique:t:3` }),
    newTask({ group: 'new' }),
    newTask({ processAtMs: Date.now() + LATER_MS }),
    newTask({ processAtMs: Date.now() + LATER_MS, group: 'late' }),
  ].map((task) => when({ skips: TASKS }, ({ broker }) => broker.enqueue(task))),
  ENQUEUE_IN_FLOW: [
    newTask({ key: 'a' }),
    { ...newTask({ key: 'new' }), isNext: true },
    newTask({ key: 'b', group: 'new' }),
    newTask({ key: 'b', processAtMs: Date.now() + LATER_MS }),
  ].map((task) =>
    when({ skips: TASKS, replaces: /:x:next:/u, hasKeys: true }, ({ broker }) => broker.enqueue(task)),
  ),
  ENQUEUE_TICK: [{}, { group: 'new' }, { processAtMs: Date.now() + LATER_MS, group: 'late' }].map((parts) =>
    when({ skips: TASKS }, ({ broker }) =>
      broker.enqueueTick(newTask(parts), { entryKey: 'entry', atMs: 2 }),
    ),
  ),
  EXTEND_LEASES: [
    when({ skips: TASKS }, async ({ broker }) =>
      broker.extendLeases(await broker.dequeue(QUEUE, 10, LONG_MS), LATER_MS),
    ),
  ],
  FORWARD: [{ act: ({ broker }) => broker.forward([QUEUE]), skips: /\}:t:|:x:later:/u }],
  FREE_PARKED: [{ act: changeLimits, hasKeys: true }],
  LIST_GROUPS: [{ act: ({ broker }) => broker.groups(QUEUE), skips: /:g:/u }],
  LIST_KEYS: [
    { act: ({ broker }) => broker.keys(QUEUE, { page: 1, size: 10 }), skips: TASKS, hasKeys: true },
  ],
  SCAN_TASKS: (['active', 'pending', 'scheduled'] as const).map((state) =>
    when({ skips: TASKS }, ({ broker }) => broker.scan(QUEUE, [state], 10)),
  ),
  SCAN_KEYS: [{ act: scanPending, skips: TASKS, hasKeys: true }],
  PARK_HELD: [{ act: changeLimits, hasKeys: true }],
  PAUSE: [{ act: ({ broker }) => broker.pause(QUEUE), skips: PAUSED }],
  QUEUE_STATS: [{ act: ({ broker }) => broker.queueStats(QUEUE), skips: /\}:t:|:paused$/u }],
  READ_IN_TURNS: [
    { act: listPending, skips: TASKS, hasKeys: true },
    { act: readAll, skips: /\}:t:|:unique:/u, hasKeys: true },
  ],
  READ_TASKS: [
    ...(['active', 'scheduled'] as const).map((state) =>
      when({ skips: TASKS }, ({ broker }) => broker.tasks(QUEUE, state, { page: 1, size: 10 })),
    ),
    { act: readAll, skips: /\}:t:|:unique:/u },
  ],
  RECLAIM_SETS: [{ act: ({ broker }) => broker.reclaimSets([QUEUE]) }],
  RECORD_EVENT: [{ act: ({ broker }) => broker.recordEnqueueEvent('entry', { taskId: 'tick', atMs: 1 }) }],
  RECOVER: [
    when({ skips: TASKS }, async ({ broker, clock }) => {
      clock.advance(LATER_MS);
      await broker.recover([QUEUE], 0, LONG_MS);
    }),
  ],
  RELEASE: [{ act: async ({ broker }) => broker.release(await take(broker)) }],
  REMOVE_QUEUE: [
    when({ skips: /:unique:/u, replaces: /\}:t:|:x:later:/u }, async (world) => {
      const { broker } = world;
      await broker.complete(await recovered(world));
      await broker.removeQueue(QUEUE, { force: true });
    }),
    when({}, async (world) => {
      const { broker } = world;
      await broker.complete(await recovered(world));
      await broker.removeQueue(QUEUE, { force: false }).catch(() => undefined);
    }),
    when({ replaces: /:(?:lease|paused|x:epoch|x:ticks|processed|failed)/u }, async ({ broker, redis }) => {
      await redis.flushdb();
      await broker.enqueue(newTask());
      await broker.complete(await take(broker));
      await broker.removeQueue(QUEUE, { force: false });
    }),
  ],
  REPLACE_SET: [
    when({ skips: /\}:t:task/u, replaces: /\}:t:aggregating/u }, async ({ broker }) => {
      const { set } = await broker.takeGroup(QUEUE, 'group', AT_ONCE, LONG_MS);
      if (set !== undefined) await broker.replaceSet(set, newTask({ uniqueKey: `${P}unique:t:4` }));
    }),
  ],
  REPLACE_TASK: [{}, { group: 'new' }, { processAtMs: Date.now() + LATER_MS }].flatMap((parts) => [
    when({}, ({ broker }) => broker.enqueue(replacing(parts))),
    when({}, ({ broker }) => broker.enqueueTick(replacing(parts), { entryKey: 'entry', atMs: Date.now() })),
  ]),
  RESUME: [
    when({ replaces: PAUSED }, async ({ broker }) => {
      await broker.pause(QUEUE);
      await broker.resume(QUEUE);
    }),
  ],
  RETRY: [{ act: async ({ broker }) => broker.retry(await take(broker), failure(), LATER_MS) }],
  RUN_SOME: changing('run', 'scheduled', 'archived', 'aggregating'),
  RUN_TASK: ['scheduled', 'late-grouped', 'retry', 'archived', 'completed', 'aggregating'].map((id) =>
    when({ skips: /:g:late|:x:later:/u }, ({ broker }) => broker.change(QUEUE, { id }, 'run')),
  ),
  SET_LIMITS: [{ act: changeLimits, hasKeys: true }],
  TAKE_GROUP: [
    { act: ({ broker }) => broker.takeGroup(QUEUE, 'group', AT_ONCE, LONG_MS), skips: /\}:t:|:x:later:/u },
  ],
  TASK: ['active', 'scheduled', 'retry'].map((id) => ({ act: ({ broker }) => broker.task(QUEUE, id) })),
  UPDATE_MESSAGE: [{ act: ({ broker }) => broker.updatePayload(QUEUE, 'scheduled', new Uint8Array(1)) }],
  WRITE_QUEUE: [
    when({}, ({ broker }) => {
      const days = [['2999-11-21', 2, 1]] as const;
      const counts = { days, processedTotal: 99, failedTotal: 98, limits: undefined };
      const ticks = [['entry', 9e12]] as const;
      const queue = { name: QUEUE, isPaused: true, epoch: 99, ticks, ...counts };
      return broker[TRANSFER]().write({ kind: 'queue', queue });
    }),
  ],
  WRITE_WHOLE: (['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const).map(
    (state) =>
      when({ skips: /\}:t:|:unique:/u }, ({ broker }) => {
        const { message } = newTask({ group: 'new', uniqueKey: `${P}unique:t:5` });
        const others = { recoveries: 1, result: new Uint8Array(1), progress: '1' };
        const times = { atMs: Date.now() + LATER_MS, lockEndsMs: Date.now() + LATER_MS };
        const tasks = [{ message, state, ...others, ...times }];
        return broker[TRANSFER]().write({ kind: 'tasks', queue: QUEUE, tasks });
      }),
  ),
  WRITE_FIELD: [{ act: async ({ broker }) => broker.writeResult(await take(broker), new Uint8Array(1)) }],
};

/** A task that replaces the one with the lock. */
function replacing(parts: TaskParts): NewTask {
  return { ...newTask({ uniqueKey: `${P}unique:t:1`, ...parts }), onDuplicate: 'replace' };
}

function dequeueAll({ broker }: ScriptsWorld): Promise<unknown> {
  return broker.dequeue(QUEUE, 100, LONG_MS);
}

function listPending({ broker }: ScriptsWorld): Promise<unknown> {
  return broker.tasks(QUEUE, 'pending', { page: 1, size: 10 });
}

async function scanPending({ broker }: ScriptsWorld): Promise<void> {
  let position: ScanPosition | undefined;
  do position = (await broker.scan(QUEUE, ['pending'], 10, position)).next;
  while (position !== undefined);
}

async function readAll({ broker }: ScriptsWorld): Promise<void> {
  for await (const piece of broker[TRANSFER]().read()) expect(piece.kind).not.toBe('events');
}

function repairing(): ScriptCase {
  return when({ skips: TASKS }, async ({ broker, redis }) => {
    await redis.zrem(`${P}lease`, 'active');
    await redis.lpush(`${P}pending`, 'ghost');
    await redis.sadd(`${P}groups`, 'ghost');
    await broker.repair(QUEUE, { apply: true });
  });
}
