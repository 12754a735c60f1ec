import { wrongType } from '../core/errors.ts';
import { requireObject } from '../core/validate.ts';

/** The content of asynqmon's page on Redis, under asynqmon's names. `RedisBroker.redisInfo` returns it. */
export interface RedisInfo {
  /** Where Redis is, without a password: `localhost:6379`; the nodes of a cluster, separated by commas. */
  readonly address: string;
  /** What Redis reports about itself, by name: `INFO`, or `CLUSTER INFO`. */
  readonly info: Readonly<Record<string, string>>;
  /** The same as Redis writes it. */
  readonly raw_info: string;
  /** Whether it is a cluster. */
  readonly cluster: boolean;
  /** `CLUSTER NODES` as Redis writes it. @default '' */
  readonly raw_cluster_nodes?: string;
  /** Where in the cluster each queue is. @default null */
  readonly queue_locations?: readonly QueueLocation[] | null;
}

/** The nodes of a cluster that keep a queue. */
export interface QueueLocation {
  /** Its name. */
  readonly queue: string;
  /** The hash slot of its keys. */
  readonly keyslot: number;
  /** Addresses, the primary first. */
  readonly nodes: readonly string[];
}

/** Fills in the defaults. @throws TypeError - asynqmon's page cannot show it. */
export function redisInfoOf(value: unknown): Required<RedisInfo> {
  requireObject('the result of redisInfo', value);
  const { address, info, cluster, ...raw } = value as Partial<Record<keyof RedisInfo, unknown>>;
  const { raw_info: rawInfo, raw_cluster_nodes: rawNodes = '', queue_locations: locations = null } = raw;
  const texts = { address, raw_info: rawInfo, raw_cluster_nodes: rawNodes };
  for (const [name, text] of Object.entries(texts)) requireString(name, text);
  requireObject('info of redisInfo', info);
  for (const [name, text] of Object.entries(info as object)) requireString(`info.${name}`, text);
  if (typeof cluster !== 'boolean') throw wrongType('cluster of redisInfo', 'a boolean', cluster);
  if (locations !== null && !Array.isArray(locations))
    throw wrongType('queue_locations of redisInfo', 'an array or null', locations);
  return { ...texts, info, cluster, queue_locations: locations } as Required<RedisInfo>;
}

function requireString(name: string, value: unknown): void {
  if (typeof value !== 'string') throw wrongType(`${name} of redisInfo`, 'a string', value);
}
