import { writeSync } from 'node:fs';
import type { Delivery } from '../../../src/diskqueue/backend-queue.ts';
import type { Durability } from '../../../src/log/commit-loop.ts';
import { hostFileSystem } from '../../../src/log/file-system.ts';
import type { QueueFormat } from '../../../src/diskqueue/stored/stored-queue.ts';
import { Random } from '../random.ts';
import { messageOf } from './history.ts';
import { openQueue } from './open-queue.ts';

/*
 * Works until it is killed, and says what it does, a line each: `call 7` before message 7 is put, `put 7` when that has
 * settled, `ack 7` before it is acknowledged, `flush 3` when the first 3 of these acknowledgements are flushed.
 */

const [folder = '', format, durability, seed, firstId] = process.argv.slice(2);
const random = new Random(Number(seed));
let nextId = Number(firstId);
let acks = 0;
const held: { id: number; delivery: Delivery }[] = [];

/** Whole and at once: what was said is in the pipe, whatever happens then. */
function say(line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let done = 0; done < bytes.length;) done += written(bytes.subarray(done));
}

/** The pipe may be full: then nobody can go on before it is read. */
function written(bytes: Buffer): number {
  try {
    return writeSync(1, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}

const queue = await openQueue(hostFileSystem, folder, {
  format: format as QueueFormat,
  durability: durability as Durability,
  maxBytesPerFile: random.pick([256, 5_000, 1_000_000]),
  syncEvery: 50,
  syncTimeoutMs: 5,
});
say('open');

function put(): Promise<void> {
  const id = nextId++;
  say(`call ${id}`);
  return queue.put(messageOf(id, random.chance(0.97) ? random.below(300) : 70_000)).then(() => {
    say(`put ${id}`);
  });
}

async function receive(): Promise<void> {
  if ((await queue.peek()) === undefined) return;
  const delivery = await queue.receive();
  held.push({ id: Buffer.from(delivery.data).readUInt32LE(0), delivery });
}

function ack(): void {
  const [taken] = held.splice(random.below(held.length), 1);
  if (taken === undefined) return;
  say(`ack ${taken.id}`);
  acks++;
  taken.delivery.ack();
}

async function flush(): Promise<void> {
  const before = acks;
  await queue.flush();
  say(`flush ${before}`);
}

for (;;) {
  const puts = Array.from({ length: random.below(8) }, put);
  for (let i = random.below(7); i > 0; i--) await receive();
  for (let i = random.below(7); i > 0; i--) ack();
  if (random.chance(0.1)) await flush();
  if (random.chance(0.5)) await Promise.all(puts);
}
