/** Queues, and how much of all tasks each has. */
import type { SeededRandom } from '../purgatory/seeded-random.ts';
import { crc16, slotOfQueue, SLOTS } from './hash-slot.ts';

export interface QueueLoad {
  readonly queue: string;
  /** Of all tasks; together they are 1. */
  readonly share: number;
}

const NAMES = 36 ** 6;

/** A name that nobody has thought about: its slot is any. */
export function randomName(random: SeededRandom): string {
  return random.nextInt(NAMES).toString(36);
}

export function equalLoads(count: number, random: SeededRandom): QueueLoad[] {
  return zipfLoads(count, 0, random);
}

/** The n-th queue has 1 / n^exponent of what the first has. */
export function zipfLoads(count: number, exponent: number, random: SeededRandom): QueueLoad[] {
  const weights = Array.from({ length: count }, (_, i) => (i + 1) ** -exponent);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => ({ queue: randomName(random), share: weight / sum }));
}

/** Into `NAME:0`, `NAME:1`, … of equal shares. */
export function numbered({ queue, share }: QueueLoad, parts: number): QueueLoad[] {
  if (parts === 1) return [{ queue, share }];
  return Array.from({ length: parts }, (_, part) => ({ queue: `${queue}:${part}`, share: share / parts }));
}

/** The same, by names that have nothing in common. */
export function renamed({ share }: QueueLoad, parts: number, random: SeededRandom): QueueLoad[] {
  return Array.from({ length: parts }, () => ({ queue: randomName(random), share: share / parts }));
}

/**
 * Into `NAME:0.0`, `NAME:1.3`, …: what is behind the dot is the first number that brings a part into its own range of the slots,
 * of as many equal ranges as there are parts.
 */
export function spread({ queue, share }: QueueLoad, parts: number): QueueLoad[] {
  return Array.from({ length: parts }, (_, part) => ({
    queue: nameInRange(`${queue}:${part}`, part, parts),
    share: share / parts,
  }));
}

function nameInRange(name: string, range: number, ranges: number): string {
  for (let salt = 0; ; salt++) {
    const candidate = `${name}.${salt}`;
    if (Math.floor((slotOfQueue(candidate) * ranges) / SLOTS) === range) return candidate;
  }
}

/** The shares of the parts of a queue if the key of a task says which part it goes to. */
export function partsByKey(keys: readonly QueueLoad[], parts: number): Float64Array {
  const shares = new Float64Array(parts);
  for (const { queue: key, share } of keys) {
    const part = crc16(key) % parts;
    shares[part] = (shares[part] as number) + share;
  }
  return shares;
}
