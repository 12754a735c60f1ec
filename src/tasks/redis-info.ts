import { wrongType } from '../core/errors.ts';
import { requireBoolean, requireObject, requireString } from '../core/validate.ts';

/** The content of asynqmon's page on Redis, under asynqmon's names. `RedisBroker.redisInfo` returns it. */
export interface RedisInfo {
  /** Address of Redis without a password: `localhost:6379`; those of the nodes of a cluster, separated by commas. */
  readonly address: string;
  /** What Redis reports about itself, by name: `INFO`, or `CLUSTER INFO`. */
  readonly info: Readonly<Record<string, string>>;
  /** The same text as Redis writes it. */
  readonly raw_info: string;
  /** Whether it is a cluster. */
  readonly cluster: boolean;
  /** `CLUSTER NODES` as Redis writes it. @default '' */
  readonly raw_cluster_nodes?: string;
  /** The nodes of each queue. @default null */
  readonly queue_locations?: readonly QueueLocation[] | null;
}

/** The nodes of a cluster that keep a queue. */
export interface QueueLocation {
  /** Its name. */
  readonly queue: string;
  /** Hash slot of its keys. */
  readonly keyslot: number;
  /** Addresses, the primary first. */
  readonly nodes: readonly string[];
}

/** Returns a result of `redisInfo` with its defaults. @throws TypeError - asynqmon's page cannot show it. */
export function redisInfoOf(result: unknown): Required<RedisInfo> {
  requireObject('the result of redisInfo', result);
  const { raw_cluster_nodes: nodes = '', queue_locations: locations = null, ...given } = result as RedisInfo;
  const { address, raw_info, info, cluster } = given;
  const texts = { address, raw_info, raw_cluster_nodes: nodes };
  for (const [name, text] of Object.entries(texts)) requireString(`redisInfo().${name}`, text);
  requireObject('redisInfo().info', info);
  for (const [name, text] of Object.entries(info)) requireString(`redisInfo().info.${name}`, text);
  requireBoolean('redisInfo().cluster', cluster);
  if (locations !== null && !Array.isArray(locations))
    throw wrongType('redisInfo().queue_locations', 'an array or null', locations);
  return { ...texts, info, cluster, queue_locations: locations };
}
