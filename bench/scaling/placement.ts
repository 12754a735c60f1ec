/** The slots and shards of Redis Cluster, and the shares of queues and keys on them. */
import type { SeededRandom } from '../lib/random.ts';

export const SLOTS = 16_384;

/** CRC-16/XMODEM, as the Redis Cluster specification requires. */
const POLYNOMIAL = 0x10_21;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80_00) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
  return crc;
});

const encoder = new TextEncoder();

export function crc16(text: string): number {
  let crc = 0;
  for (const byte of encoder.encode(text)) {
    crc = ((crc << 8) & 0xff_ff) ^ (TABLE[(crc >>> 8) ^ byte] as number);
  }
  return crc;
}

/** Hashes the text between the first `{` and the next `}`, unless it is empty or missing; else the whole key. */
export function slotOfKey(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  return crc16(close > open + 1 ? key.slice(open + 1, close) : key) % SLOTS;
}

/** The name of a queue is the hash tag of all its keys. */
export function slotOfQueue(queue: string): number {
  return slotOfKey(`asynq:{${queue}}:pending`);
}

/** Shards with equal ranges of slots, as `redis-cli --cluster create` assigns them. */
export function shardOfSlot(slot: number, shards: number): number {
  return Math.min(Math.floor((slot * shards) / SLOTS), shards - 1);
}

/** A queue, or a key, with its share of all tasks. */
export interface QueueLoad {
  readonly queue: string;
  /** The sum of all shares is 1. */
  readonly share: number;
}

const NAMES = 36 ** 6;

/** Returns a name whose slot is random. */
export function randomName(random: SeededRandom): string {
  return random.nextInt(NAMES).toString(36);
}

export function equalLoads(count: number, random: SeededRandom): QueueLoad[] {
  return zipfLoads(count, 0, random);
}

/** The n-th queue has 1 / n^exponent of the load of the first. */
export function zipfLoads(count: number, exponent: number, random: SeededRandom): QueueLoad[] {
  const weights = Array.from({ length: count }, (_, i) => (i + 1) ** -exponent);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => ({ queue: randomName(random), share: weight / sum }));
}

function split({ share }: QueueLoad, parts: number, nameOf: (part: number) => string): QueueLoad[] {
  return Array.from({ length: parts }, (_, part) => ({ queue: nameOf(part), share: share / parts }));
}

/** Splits a queue into `NAME:0`, `NAME:1`, … of equal shares. */
export function numbered(load: QueueLoad, parts: number): QueueLoad[] {
  return parts === 1 ? [load] : split(load, parts, (part) => `${load.queue}:${part}`);
}

/** Splits a queue into parts with unrelated names. */
export function renamed(load: QueueLoad, parts: number, random: SeededRandom): QueueLoad[] {
  return split(load, parts, () => randomName(random));
}

/**
 * Splits a queue into `NAME:0.0`, `NAME:1.3`, …: the number after the dot is the first one whose slot is in the part's
 * range, one of as many equal ranges as there are parts.
 */
export function spread(load: QueueLoad, parts: number): QueueLoad[] {
  return split(load, parts, (part) => nameInRange(`${load.queue}:${part}`, part, parts));
}

function nameInRange(name: string, range: number, ranges: number): string {
  for (let salt = 0; ; salt++) {
    const candidate = `${name}.${salt}`;
    if (Math.floor((slotOfQueue(candidate) * ranges) / SLOTS) === range) return candidate;
  }
}

/** Returns the share of each part of a queue if the key of a task selects the part. */
export function partsByKey(keys: readonly QueueLoad[], parts: number): Float64Array {
  return sumShares(keys, parts, (key) => crc16(key) % parts);
}

/** Returns the share of each shard. */
function shardShares(loads: readonly QueueLoad[], shards: number): Float64Array {
  return sumShares(loads, shards, (queue) => shardOfSlot(slotOfQueue(queue), shards));
}

function sumShares(
  loads: readonly QueueLoad[],
  count: number,
  placeOf: (queue: string) => number,
): Float64Array {
  const shares = new Float64Array(count);
  for (const { queue, share } of loads) {
    const place = placeOf(queue);
    shares[place] = (shares[place] as number) + share;
  }
  return shares;
}

/** Returns the largest share as a multiple of an equal share: 1 is perfect. */
export function imbalanceOf(shares: Float64Array): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  return (Math.max(...shares) * shares.length) / sum;
}

/** Returns the imbalance of the shards: with N of them, N is no better than one Redis. */
export function imbalance(loads: readonly QueueLoad[], shards: number): number {
  return imbalanceOf(shardShares(loads, shards));
}
