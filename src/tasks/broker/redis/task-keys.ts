import type { TaskState } from '../../task-state.ts';
import { groupsOf } from './groups.ts';
import { groupKeyOfSet } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';

/*
 * The keys that hold the tasks of a state:
 *
 *      active            a list
 *      pending           a list of those without a key; `waiting`, the number of those that have one, stands for their lists (see flow.ts)
 *      aggregating       a zset for each group, and one for each set, which a server is aggregating
 *      any other state   a zset
 */

/** Returns the keys of a state, without those of sets. @param group - for aggregating tasks; undefined for all groups. */
export async function keysOfTasks(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group?: string,
): Promise<readonly string[]> {
  const keys = redis.keysOf(queue);
  if (state === 'pending') return [keys.pending, keys.waiting];
  if (state !== 'aggregating') return [keys[state]];
  if (group !== undefined) return [keys.group(group)];
  return (await groupsOf(redis, queue)).map((info) => keys.group(info.group));
}

/** Yields all keys of a state. The sets are listed when the groups have been read: what is taken out of a group meanwhile is in a set. */
export async function* allKeysOfTasks(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group?: string,
): AsyncGenerator<string> {
  yield* await keysOfTasks(redis, queue, state, group);
  if (state !== 'aggregating') return;
  const keys = redis.keysOf(queue);
  for (const set of await redis.send((client) => client.zrange(keys.aggregationSets, '0', '-1')))
    if (group === undefined || groupKeyOfSet(set) === keys.group(group)) yield set;
}

export function isList(redis: RedisAccess, queue: string, key: string): boolean {
  const { active, pending, ring, nextPrefix } = redis.keysOf(queue);
  return key === active || key === pending || key === ring || key.startsWith(nextPrefix);
}

/** Returns the number of tasks that a key holds, or stands for. */
export function sizeOf(redis: RedisAccess, queue: string, key: string): Promise<number> {
  return redis.send(async (client) => {
    if (key === redis.keysOf(queue).waiting) return Number((await client.get(key)) ?? 0);
    return isList(redis, queue, key) ? client.llen(key) : client.zcard(key);
  });
}

/** Keys that Redis visits for one step of a scan. */
const PER_SCAN = 1_000;

/** Yields the keys that begin with a prefix, some at a time, on all nodes of a cluster. O(keys of Redis). */
export async function* keysWithPrefix(redis: RedisAccess, prefix: string): AsyncGenerator<string[]> {
  const pattern = `${prefix.replaceAll(/[*?[\]\\]/gu, String.raw`\$&`)}*`;
  const nodes = await redis.send((client) =>
    Promise.resolve('nodes' in client ? client.nodes('master') : [client]),
  );
  for (const node of nodes) {
    for (let cursor = ''; cursor !== '0';) {
      const [next, names] = await redis.send(() =>
        node.scan(cursor || '0', 'MATCH', pattern, 'COUNT', PER_SCAN),
      );
      cursor = next;
      if (names.length > 0) yield names;
    }
  }
}
