import type { TaskState } from '../../task-state.ts';
import type { GroupInfo } from '../broker.ts';
import { groups } from './aggregation.ts';
import { groupKeyOfSet, type QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';

/** Where tasks of a state are. */
export interface Source {
  readonly key: string;
  readonly isList: boolean;
  /** Of what aggregates, unless it is a set. */
  readonly group: string;
  readonly size: number;
}

/** The first keys of a queue, as the scripts that clear and remove it take them. */
export function placesOf(keys: QueueKeys): string[] {
  const { active, pending, scheduled, retry, archived, completed, groups, aggregationSets } = keys;
  return [active, pending, scheduled, retry, archived, completed, groups, aggregationSets];
}

/**
 * @param group - of what aggregates; undefined for all of them.
 * @param withSets - those that somebody aggregates, too.
 */
export async function sourcesOf(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
  withSets: boolean,
): Promise<readonly Source[]> {
  const keys = access.keysOf(queue);
  if (state !== 'aggregating') {
    const key = keys[state];
    const isList = state === 'active' || state === 'pending';
    const size = await access.ask((client) => (isList ? client.llen(key) : client.zcard(key)));
    return [{ key, isList, group: '', size }];
  }
  const infos = group === undefined ? await groups(access, queue) : [await groupOf(access, keys, group)];
  const sources: Source[] = infos.map((info) => ({
    key: keys.group(info.group),
    isList: false,
    group: info.group,
    size: info.size,
  }));
  if (withSets) sources.push(...(await setsOf(access, keys, group)));
  return sources;
}

async function groupOf(access: RedisAccess, keys: QueueKeys, group: string): Promise<GroupInfo> {
  return { group, size: await access.ask((client) => client.zcard(keys.group(group))) };
}

async function setsOf(access: RedisAccess, keys: QueueKeys, group: string | undefined): Promise<Source[]> {
  const names = await access.ask((client) => client.zrange(keys.aggregationSets, '0', '-1'));
  const ofGroup = names.filter((key) => group === undefined || groupKeyOfSet(key) === keys.group(group));
  return await Promise.all(
    ofGroup.map(async (key) => {
      const size = await access.ask((client) => client.zcard(key));
      return { key, isList: false, group: '', size };
    }),
  );
}
