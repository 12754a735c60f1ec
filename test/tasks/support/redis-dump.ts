import { Cluster, type Redis } from 'ioredis';

/** Everything in a database, at one moment. */
export interface RedisDump {
  readonly strings: ReadonlyMap<string, string>;
  readonly lists: ReadonlyMap<string, readonly string[]>;
  readonly sets: ReadonlyMap<string, ReadonlySet<string>>;
  /** Scores as Redis writes them. */
  readonly zsets: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly hashes: ReadonlyMap<string, ReadonlyMap<string, Buffer>>;
  /** Milliseconds, of keys that expire. */
  readonly ttls: ReadonlyMap<string, number>;
}

const DUMP = `
local READ = {
  string = { 'GET' }, list = { 'LRANGE', 0, -1 }, set = { 'SMEMBERS' }, hash = { 'HGETALL' },
  zset = { 'ZRANGE', 0, -1, 'WITHSCORES' },
}
local reply = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local read = READ[kind]
  reply[#reply + 1] = { key, kind, redis.call('PTTL', key), redis.call(read[1], key, unpack(read, 2)) }
end
return reply
`;

type Row =
  | [key: Buffer, kind: Buffer, ttl: number, value: Buffer]
  | [key: Buffer, kind: Buffer, ttl: number, value: Buffer[]];

/** Reads everything, of all primaries if it is a cluster. */
export async function dumpOf(redis: Redis | Cluster): Promise<RedisDump> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const rows = await Promise.all(nodes.map((node) => node.callBuffer('eval', DUMP, 0) as Promise<Row[]>));
  const dump = {
    strings: new Map<string, string>(),
    lists: new Map<string, string[]>(),
    sets: new Map<string, Set<string>>(),
    zsets: new Map<string, Map<string, string>>(),
    hashes: new Map<string, Map<string, Buffer>>(),
    ttls: new Map<string, number>(),
  };
  for (const [name, kind, ttlMs, value] of rows.flat()) {
    const key = name.toString();
    if (ttlMs >= 0) dump.ttls.set(key, ttlMs);
    if (Buffer.isBuffer(value)) dump.strings.set(key, value.toString());
    else if (kind.equals(Buffer.from('list'))) dump.lists.set(key, value.map(String));
    else if (kind.equals(Buffer.from('set'))) dump.sets.set(key, new Set(value.map(String)));
    else if (kind.equals(Buffer.from('hash'))) dump.hashes.set(key, pairsOf(value));
    else {
      const scores = [...pairsOf(value)].map(([id, score]): [string, string] => [id, score.toString()]);
      dump.zsets.set(key, new Map(scores));
    }
  }
  return dump;
}

function pairsOf(flat: readonly Buffer[]): Map<string, Buffer> {
  const pairs = new Map<string, Buffer>();
  for (let at = 0; at < flat.length; at += 2) pairs.set(String(flat[at]), flat[at + 1] as Buffer);
  return pairs;
}
