import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { QueueLocation, RedisInfo } from '../../redis-info.ts';
import { queueNames } from './inspection.ts';
import type { RedisAccess } from './redis-access.ts';

/** A range of slots, as `CLUSTER SLOTS` writes it: the primary is the first node. */
type SlotRange = readonly [
  first: number,
  last: number,
  ...nodes: (readonly [host: string | null, port: number])[],
];

/** Returns what Redis reports about itself in the shape of asynqmon's page, or of its page on clusters. */
export async function describeRedis(redis: RedisAccess): Promise<RedisInfo> {
  if (redis.isCluster) return await describeCluster(redis);
  return await redis.send(async (client) => {
    const text = await client.info();
    return { address: addressOf(client), info: parseInfo(text), raw_info: text, cluster: false };
  });
}

/** Parses the lines of `INFO` and `CLUSTER INFO`. A value may contain colons. */
export function parseInfo(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\r\n').filter((line) => line.includes(':') && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}

async function describeCluster(redis: RedisAccess): Promise<RedisInfo> {
  const text = await redis.send((client) => client.cluster('INFO'));
  return {
    address: await redis.send((client) => Promise.resolve(addressOf(client))),
    info: parseInfo(text),
    raw_info: text,
    cluster: true,
    raw_cluster_nodes: (await redis.send((client) => client.cluster('NODES'))) as string,
    queue_locations: await locateQueues(redis),
  };
}

async function locateQueues(redis: RedisAccess): Promise<readonly QueueLocation[]> {
  const ranges = (await redis.send((client) => client.cluster('SLOTS'))) as unknown as readonly SlotRange[];
  return await Promise.all(
    (await queueNames(redis)).map(async (queue) => {
      const { pending } = redis.keysOf(queue);
      const keyslot = await redis.send((client) => client.cluster('KEYSLOT', pending));
      const range = ranges.find(([first, last]) => first <= keyslot && keyslot <= last);
      const [, , ...nodes] = range ?? [keyslot, keyslot];
      return { queue, keyslot, nodes: nodes.map(([host, port]) => hostAndPort(host ?? '', port)) };
    }),
  );
}

/** With sentinels, the address of the primary. */
export function addressOf(client: Redis | Cluster): string {
  if (client.isCluster) {
    const nodes = (client as Cluster).nodes('all').map(({ options }) => options);
    return nodes.map(({ host = '', port = 0 }) => hostAndPort(host, port)).join(',');
  }
  const { options, stream } = client as { options: RedisOptions; stream?: Redis['stream'] }; // none before it connects
  const { remoteAddress = '', remotePort = 0 } = stream ?? {};
  if (options.sentinels != null) return hostAndPort(remoteAddress, remotePort);
  return options.path ?? hostAndPort(options.host ?? remoteAddress, options.port ?? remotePort);
}

function hostAndPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
