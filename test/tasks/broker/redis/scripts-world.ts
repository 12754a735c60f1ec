import type { Redis } from 'ioredis';
import { ManualClock } from 'escapement';
import type { LeasedTask } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { vi } from 'vitest';
import { Script, type ScriptArgument, type ScriptReply } from '../../../../src/tasks/broker/redis/script.ts';
import {
  failure,
  LONG_MS,
  newTask,
  putIntoEach,
  QUEUE,
  recoverOne,
  take,
} from '../../../conformance/broker/support.ts';

export const P = `asynq:{${QUEUE}}:`;
export const LOCK = `${P}unique:t:1`;

const NOW = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };

/** A broker whose archive keeps two tasks, and the clock that moves its time. */
export interface ScriptsWorld {
  readonly broker: RedisBroker;
  readonly clock: ManualClock;
  readonly redis: Redis;
}

/** Everything in a database: the serialized value of each key, in Latin-1, and whether it expires. */
export type Snapshot = ReadonlyMap<string, { readonly value: string; readonly expires: boolean }>;

/** A call of a script, and the database just before it. */
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly ScriptArgument[];
  readonly before: Snapshot;
}

export function makeBroker(url: string): Omit<ScriptsWorld, 'redis'> {
  const clock = new ManualClock({ wallMs: Date.now() });
  return { clock, broker: new RedisBroker({ url, clock, maxArchived: 2 }) };
}

/** Tasks in every state, some of them due or expired, with groups, sets and locks. */
export async function fill({ broker, clock }: ScriptsWorld): Promise<void> {
  const soonMs = clock.wallNow() + 10_000;
  await broker.enqueue(newTask({ id: 'done', retentionMs: 1_000 }));
  await broker.complete(await take(broker));
  await broker.enqueue(newTask({ id: 'again' }));
  await broker.retry(await take(broker), failure(), soonMs);
  for (const id of ['old-1', 'old-2']) {
    await broker.enqueue(newTask({ id }));
    await broker.archive(await take(broker), failure());
    clock.advance(1_000);
  }
  await putIntoEach(broker);
  await broker.enqueue(newTask({ id: 'due', processAtMs: soonMs }));
  await broker.enqueue(newTask({ id: 'due-grouped', group: 'due', processAtMs: soonMs }));
  await broker.enqueue(newTask({ id: 'late-grouped', group: 'late', processAtMs: soonMs + LONG_MS }));
  await broker.enqueue(newTask({ id: 'locked', uniqueKey: LOCK }));
  await broker.enqueue(newTask({ id: 'held', group: 'held' }));
  await broker.takeGroup(QUEUE, 'held', NOW, 1_000);
  await broker.enqueueTick(newTask({ id: 'tick' }), { entryKey: 'entry', atMs: 1 });
  clock.advance(20_000);
}

/**
 * As `fill`, in a queue with limits: key `a` is parked with two tasks, and has active ones; key `b` is in the ring; the tasks without key
 * have come by themselves, as those of a Go client.
 */
export async function fillWithKeys(world: ScriptsWorld): Promise<void> {
  const { broker, redis } = world;
  await fill(world);
  await redis.rename(`${P}pending`, 'pending');
  const ofKey = { tasks: 3, perMs: LONG_MS };
  const rate = { tasks: 100, perMs: LONG_MS };
  await broker.setLimits(QUEUE, { concurrency: 100, rate, perKey: { concurrency: 20, rate: ofKey } });
  for (const id of ['a1', 'a2', 'a3', 'a4', 'a5']) await broker.enqueue(newTask({ id, key: 'a' }));
  await broker.dequeue(QUEUE, 10, LONG_MS);
  await broker.enqueue(newTask({ id: 'b1', key: 'b' }));
  await redis.rename('pending', `${P}pending`);
}

/** Does what runs a script, and returns the first call of it. */
export async function callOf(
  script: Script,
  world: ScriptsWorld,
  act: (world: ScriptsWorld) => Promise<unknown>,
): Promise<ScriptCall> {
  const run = Reflect.get<Script, 'run'>(Script.prototype, 'run');
  let call: ScriptCall | undefined;
  const spy = vi.spyOn(Script.prototype, 'run').mockImplementation(async function (this: Script, ...args) {
    const [, keys, words] = args;
    if (this === script) call ??= { keys, args: words, before: await snapshotOf(world.redis) };
    return run.apply(this, args);
  });
  try {
    await act(world);
  } finally {
    spy.mockRestore();
  }
  if (call === undefined) throw new Error('the script has not been run');
  return call;
}

export function replay(script: Script, redis: Redis, { keys, args }: ScriptCall): Promise<ScriptReply> {
  return script.run(redis, keys, args);
}

/** In one call: there are thousands of snapshots. */
const SNAPSHOT = `
  local entries = {}
  for _, key in ipairs(redis.call('KEYS', '*')) do
    table.insert(entries, {key, redis.call('DUMP', key), redis.call('PTTL', key)})
  end
  return entries`;

export async function snapshotOf(redis: Redis): Promise<Snapshot> {
  const entries = (await redis.callBuffer('EVAL', SNAPSHOT, '0')) as [Buffer, Buffer, number][];
  return new Map(
    entries
      .map(
        ([key, value, ttl]) =>
          [key.toString(), { value: value.toString('latin1'), expires: ttl >= 0 }] as const,
      )
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** Makes the database what it was. @param current - what it is now: only what differs is written. */
export async function restore(redis: Redis, snapshot: Snapshot, current?: Snapshot): Promise<void> {
  const commands = redis.pipeline();
  if (current === undefined) commands.flushdb();
  else for (const key of current.keys()) if (!snapshot.has(key)) commands.del(key);
  for (const [key, { value, expires }] of snapshot) {
    const there = current?.get(key);
    if (there?.expires === expires && there.value === value) continue;
    commands.restore(key, expires ? 3_600_000 : 0, Buffer.from(value, 'latin1'), 'REPLACE');
  }
  await commands.exec();
}

/** The keys that a script reads or writes, as Redis itself reports them. */
export async function keysTouchedBy(redis: Redis, run: () => Promise<unknown>): Promise<string[]> {
  const monitor = await redis.monitor();
  const commands: string[][] = [];
  const marker = `end of ${Math.random()}`;
  const isOver = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      if (source === 'lua') commands.push(args);
      if (args[1] === marker) resolve();
    });
  });
  await run();
  await redis.echo(marker);
  await isOver;
  monitor.disconnect();
  const keys = await Promise.all(commands.map((command) => keysOfCommand(redis, command)));
  return [...new Set(keys.flat())].sort();
}

async function keysOfCommand(redis: Redis, [name = '', ...args]: string[]): Promise<string[]> {
  if (/^(?:publish|time)$/iu.test(name)) return [];
  return (await redis.command('GETKEYS', name, ...args)) as string[];
}

/** The types of all keys. */
const TYPES: Record<string, RegExp> = {
  hash: /\}:t:|:x:(?:ticks|limits|first)$|^asynq:workers:/u,
  list: /:(?:pending|active|x:ring)$|:x:next:|^asynq:schedulers:/u,
  zset: /^asynq:\{\w+\}:(?:lease|scheduled|retry|archived|completed|aggregation_sets)$|:g:|:x:(?:parked|run|rates)$|^asynq:scheduler_history:/u,
  set: /:groups$|:x:later:|^asynq:queues$/u,
  string: /:(?:paused|x:epoch|x:waiting)$|:(?:processed|failed)\b|:unique:|^asynq:servers:/u,
};

/** How a key of each type is made. */
export const MAKE: Record<string, (redis: Redis, key: string) => Promise<unknown>> = {
  string: (redis, key) => redis.set(key, 'x'),
  list: (redis, key) => redis.rpush(key, 'x'),
  set: (redis, key) => redis.sadd(key, 'x'),
  zset: (redis, key) => redis.zadd(key, 1, 'x'),
  hash: (redis, key) => redis.hset(key, 'x', 'x'),
  stream: (redis, key) => redis.xadd(key, '1-1', 'x', 'x'),
};

/** The type that a key has. */
export function typeOf(key: string): string {
  const [type] = Object.entries(TYPES).find(([, keys]) => keys.test(key)) ?? [];
  if (type === undefined) throw new Error(`what type '${key}' has is not known here`);
  return type;
}

/** What a call rejects with, or what it answers for each of its tasks. */
export async function errorOf(reply: Promise<ScriptReply>): Promise<unknown> {
  try {
    const [first] = [await reply].flat();
    return first instanceof Error ? first : undefined;
  } catch (error) {
    return error;
  }
}

export async function changeLimits({ broker }: ScriptsWorld): Promise<void> {
  const rate = { tasks: 1, perMs: 1_000 };
  await broker.setLimits(QUEUE, { concurrency: 1, perKey: { concurrency: 1, rate } });
}

/** The active task, under a lease of the test's own. */
export async function recovered({ broker, redis }: ScriptsWorld): Promise<LeasedTask> {
  await redis.zrem(`${P}lease`, 'active');
  return recoverOne(broker);
}
