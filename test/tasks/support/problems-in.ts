import { fromBinary } from '@bufbuild/protobuf';
import type { Redis } from 'ioredis';
import { QueueKeys, QUEUES_KEY } from '../../../src/tasks/broker/redis/keys.ts';
import { TaskMessageSchema } from '../../../src/tasks/wire/asynq-messages.gen.ts';

/** Where tasks of a state are, and which ids are there. */
type Places = Map<string, { readonly state: string; readonly ids: readonly string[] }>;

/**
 * What asynq would stumble over in a queue that nobody works on at the moment: empty, if all is well. It knows nothing of what
 * we have written, but reads all of it.
 */
export async function problemsIn(redis: Redis, queue: string): Promise<string[]> {
  const keys = new QueueKeys(queue);
  const places = await placesIn(redis, keys);
  return [
    ...(await wrongScores(redis)),
    ...(await wrongTasks(redis, keys, places)),
    ...(await strays(redis, keys, places)),
    ...(await wrongSets(redis, keys, queue, places)),
    ...(await wrongTurns(redis, keys, places)),
  ];
}

async function placesIn(redis: Redis, keys: QueueKeys): Promise<Places> {
  const places: Places = new Map();
  for (const state of ['pending', 'active'] as const) {
    places.set(keys[state], { state, ids: await redis.lrange(keys[state], 0, -1) });
  }
  for (const state of ['scheduled', 'retry', 'archived', 'completed'] as const) {
    places.set(keys[state], { state, ids: await redis.zrange(keys[state], '0', '-1') });
  }
  const waiting = await redis.zrange(keys.waiting, '0', '-1');
  places.set(keys.waiting, { state: 'pending', ids: waiting.map((member) => partsOf(member).id) });
  for (const key of await redis.keys(`${escaped(keys.groupPrefix)}*`)) {
    places.set(key, { state: 'aggregating', ids: await redis.zrange(key, '0', '-1') });
  }
  return places;
}

/** Lists of asynq before 0.26 read whole numbers only. */
async function wrongScores(redis: Redis): Promise<string[]> {
  const problems: string[] = [];
  for (const key of await redis.keys('asynq:*')) {
    if ((await redis.type(key)) !== 'zset' || key.includes('}:x:')) continue; // asynq does not read ours
    const rows = await redis.zrange(key, '0', '-1', 'WITHSCORES');
    for (let at = 0; at < rows.length; at += 2) {
      if (!/^\d+$/.test(rows[at + 1] ?? ''))
        problems.push(`${key}: ${rows[at]} has the score ${rows[at + 1]}`);
    }
  }
  return problems;
}

/** An id without its hash would become a task of nothing when it is dequeued. */
async function wrongTasks(redis: Redis, keys: QueueKeys, places: Places): Promise<string[]> {
  const problems: string[] = [];
  for (const [key, { state, ids }] of places) {
    for (const id of ids) {
      const task = await redis.hgetall(keys.task(id));
      const msg = await redis.hgetBuffer(keys.task(id), 'msg');
      if (msg === null) problems.push(`${key}: ${id} has no msg`);
      else problems.push(...wrongMessage(keys, id, msg));
      if (task['state'] !== state) problems.push(`${key}: ${id} says that it is ${task['state']}`);
      const since = task['pending_since'];
      if (since !== undefined && !/^\d{19}$/.test(since)) problems.push(`${id}: pending_since is ${since}`);
      if (state === 'active' && since !== undefined && task['x:key'] === undefined)
        problems.push(`${id}: active, and pending_since ${since}`);
    }
  }
  return problems;
}

function wrongMessage(keys: QueueKeys, id: string, msg: Uint8Array): string[] {
  const message = fromBinary(TaskMessageSchema, msg); // as Go: no UTF-8, no message
  const problems: string[] = [];
  if (message.id !== id) problems.push(`${id}: its msg is that of ${message.id}`);
  if (`asynq:{${message.queue}}:` !== keys.prefix)
    problems.push(`${id}: its msg is of queue ${message.queue}`);
  if (message.timeout === 0n && message.deadline === 0n)
    problems.push(`${id}: has neither timeout nor deadline`);
  return problems;
}

/** A hash that is nowhere keeps its id for ever. */
async function strays(redis: Redis, keys: QueueKeys, places: Places): Promise<string[]> {
  const counts = new Map<string, number>();
  for (const { ids } of places.values()) for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  const problems: string[] = [];
  for (const key of await redis.keys(`${escaped(keys.taskPrefix)}*`)) {
    const count = counts.get(key.slice(keys.taskPrefix.length)) ?? 0;
    if (count !== 1) problems.push(`${key} is in ${count} places`);
  }
  return problems;
}

async function wrongSets(redis: Redis, keys: QueueKeys, queue: string, places: Places): Promise<string[]> {
  const problems: string[] = [];
  const leased = await redis.zrange(keys.lease, '0', '-1');
  const active = places.get(keys.active)?.ids ?? [];
  if (leased.sort().join() !== [...active].sort().join())
    problems.push(`leased: ${leased.join()}; active: ${active.join()}`);
  const sets = await redis.zrange(keys.aggregationSets, '0', '-1');
  const groups = await redis.smembers(keys.groups);
  for (const [key, { state }] of places) {
    if (state !== 'aggregating' || sets.includes(key)) continue;
    if (!groups.includes(key.slice(keys.groupPrefix.length))) problems.push(`${key} is not among the groups`);
  }
  const hasTasks = [...places.values()].some(({ ids }) => ids.length > 0);
  if (hasTasks && (await redis.sismember(QUEUES_KEY, queue)) === 0)
    problems.push(`${queue} is not among the queues`);
  return problems;
}

/** Keys whose tasks no server would find, or that have a turn without a task; places that no run has. */
async function wrongTurns(redis: Redis, keys: QueueKeys, places: Places): Promise<string[]> {
  if ((await redis.exists(keys.limits, keys.sequence)) === 0) return [];
  const listed = places.get(keys.pending)?.ids ?? [];
  const members = await redis.zrange(keys.waiting, '0', '-1');
  const withTasks = new Set([
    ...members.map((member) => partsOf(member).key),
    ...(listed.length > 0 ? [''] : []),
  ]);
  const turns = [
    ...(await redis.zrange(keys.ring, '0', '-1')),
    ...(await redis.zrange(keys.parked, '0', '-1')),
  ];
  const problems = turns
    .filter((key, at) => !withTasks.has(key) || turns.indexOf(key) !== at)
    .map((key) => `'${key}' has a turn without a task, or two`);
  for (const key of withTasks) if (!turns.includes(key)) problems.push(`'${key}' has tasks and no turn`);
  for (const member of members) {
    const { id, place } = partsOf(member);
    if ((await redis.hget(keys.task(id), 'x:key')) !== place) problems.push(`'${id}' is not at '${place}'`);
  }
  const active: string[] = [];
  for (const id of places.get(keys.active)?.ids ?? []) {
    const key = (await redis.hget(keys.task(id), 'x:key'))?.slice(16) ?? '';
    if (key !== '') active.push(`${Buffer.byteLength(key)}:${key}:${id}`);
  }
  const runs = await redis.zrange(keys.runs, '0', '-1');
  if (runs.sort().join() !== active.sort().join())
    problems.push(`runs: ${runs.join()}; active: ${active.join()}`);
  return problems;
}

/** The key, the field x:key and the id of a member of x:waiting. */
function partsOf(member: string): { key: string; place: string; id: string } {
  const size = Number.parseInt(member, 10);
  const rest = Buffer.from(member.slice(String(size).length + 1));
  const key = rest.subarray(0, size).toString();
  return {
    key,
    place: rest.subarray(size + 1, size + 17).toString() + key,
    id: rest.subarray(size + 18).toString(),
  };
}

/** As a pattern that is just that. */
function escaped(text: string): string {
  return text.replace(/[*?[\]^\\]/g, '\\$&');
}
