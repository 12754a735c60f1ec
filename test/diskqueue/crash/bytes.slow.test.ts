import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import { folderOfFile } from '../../folder.ts';
import { Random } from '../random.ts';
import { FIRST_SEED, runs } from '../../runs.ts';
import {
  allRemains,
  nothingRemains,
  RecordingFileSystem,
  someRemains,
  type Disk,
} from '../recording-file-system.ts';
import { inCase, openQueue, receiveAll, type Setup } from './open-queue.ts';

const folder = folderOfFile();

const LIVES = 6;
const RUNS = runs(60);

function sumOf(messages: Iterable<{ readonly data: Uint8Array }>): number {
  return [...messages].reduce((sum, { data }) => sum + data.length, 0);
}

function setupOf(random: Random): Setup {
  const durability = random.pick(['always', 'interval', 'os'] as const);
  return { durability, maxBytesPerFile: random.pick([256, 700, 3_000, 1_000_000]) };
}

/** Puts, receives, acknowledges out of order and gives back; `bytes` is right after each of them. */
async function live(queue: DiskQueue, waiting: number, random: Random): Promise<void> {
  const held: Awaited<ReturnType<typeof queue.receive>>[] = [];
  let ready = waiting;
  let { bytes } = queue;
  for (let i = random.below(25); i >= 0; i--) {
    if (random.chance(0.4)) {
      const lengths = Array.from({ length: 1 + random.below(5) }, () => lengthOf(random));
      await Promise.all(lengths.map((length) => queue.put(Buffer.alloc(length, i))));
      ready += lengths.length;
      bytes += lengths.reduce((sum, length) => sum + length, 0);
    }
    for (let n = Math.min(ready, random.below(6)); n > 0; n--, ready--) held.push(await queue.receive());
    for (let n = random.below(6); n > 0 && held.length > 0; n--) {
      const [delivery] = held.splice(random.below(held.length), 1);
      if (random.chance(0.2)) {
        delivery?.nack();
        ready++;
      } else {
        bytes -= delivery?.data.length ?? 0;
        delivery?.ack();
      }
    }
    if (random.chance(0.1)) await queue.flush();
    if (random.chance(0.03)) {
      await queue.empty();
      held.length = ready = bytes = 0;
    }
    for (let n = random.below(4); n > 0; n--) await nextTurn();
    expect(queue.bytes).toBe(bytes);
  }
}

function lengthOf(random: Random): number {
  return random.chance(0.98) ? random.below(90) : 140_000;
}

/** What a queue leaves behind when it is closed, killed, or the machine loses its power. */
async function end(queue: DiskQueue, files: RecordingFileSystem, random: Random): Promise<Disk> {
  const { length } = files.log;
  const killed = files.disk;
  await queue.close();
  const how = random.pick(['close', 'kill', 'cut', 'cut in the midst'] as const);
  if (how === 'close') return files.disk;
  if (how === 'kill') return killed;
  const point = how === 'cut' ? length : random.below(files.log.length + 1);
  return files.afterPowerCut(point, random.chance(0.2) ? allRemains : someRemains(random));
}

/** That a queue knows when it is opened how many bytes it will hand out. @returns how many, and of how many messages. */
async function checkStart(disk: Disk, setup: Setup): Promise<{ bytes: number; depth: number }> {
  const queue = await openQueue(new RecordingFileSystem(disk), folder, setup);
  const { bytes, depth } = queue;
  const deliveries = await receiveAll(queue);
  expect(bytes).toBe(sumOf(deliveries));
  expect(queue.bytes).toBe(bytes);
  await queue.close();
  return { bytes, depth };
}

async function rightFromTheStart(seed: number): Promise<void> {
  const random = new Random(seed);
  const setup = setupOf(random);
  let disk: Disk = new Map();
  for (let life = 0; life < LIVES; life++) {
    const { bytes, depth } = await checkStart(disk, setup);
    const files = new RecordingFileSystem(disk);
    const queue = await openQueue(files, folder, setup);
    expect(queue.bytes).toBe(bytes);
    await live(queue, depth, random);
    disk = await end(queue, files, random);
  }
}

/** Some bytes of a segment are changed, zeros or gone; or all of them are. */
function damage(disk: Disk, random: Random): Disk {
  const damaged = new Map([...disk].map(([path, bytes]) => [path, Buffer.from(bytes)]));
  const paths = [...damaged.keys()].filter(
    (path) => path.endsWith('.segment') && damaged.get(path)?.length !== 0,
  );
  if (paths.length === 0) return damaged;
  const path = random.pick(paths);
  const bytes = damaged.get(path) as Buffer;
  const at = random.below(bytes.length);
  const how = random.pick(['flip', 'flip', 'zeros', 'zeros', 'cut', 'header', 'remove'] as const);
  if (how === 'flip') bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << random.below(8)), at);
  else if (how === 'zeros') bytes.fill(0, at, Math.min(at + random.below(300), bytes.length));
  else if (how === 'header') bytes.fill(0, 0, Math.min(128, bytes.length));
  else if (how === 'cut') damaged.set(path, Buffer.from(bytes.subarray(0, at)));
  else damaged.delete(path);
  return damaged;
}

/** After damage the bytes are exact when the queue has been read to its end, and from then on. */
async function rightWhenItIsFound(seed: number): Promise<void> {
  const random = new Random(seed);
  const setup = setupOf(random);
  let files = new RecordingFileSystem();
  const open = (): Promise<DiskQueue> => openQueue(files, folder, setup, () => undefined);
  for (let life = 0; life < LIVES; life++) {
    const finding = await open();
    const left = await receiveAll(finding);
    expect({ life, bytes: finding.bytes }).toEqual({ life, bytes: sumOf(left) });
    expect(finding.depth).toBe(left.length);
    await finding.close();
    const queue = await open();
    const again = await receiveAll(queue);
    expect({ life, bytes: queue.bytes }).toEqual({ life, bytes: sumOf(left) });
    for (const delivery of again) {
      if (random.chance(0.5)) delivery.ack();
      else delivery.nack();
    }
    await live(queue, queue.depth, random);
    files = new RecordingFileSystem(damage(await end(queue, files, random), random));
  }
}

/** Checks one seed after the other. */
async function eachSeed(check: (seed: number) => Promise<void>): Promise<void> {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
    await inCase(`ESCAPEMENT_FUZZ_SEED=${seed}`, () => check(seed));
  }
}

test(
  'the bytes of a queue are those of its unacknowledged messages after every open, whatever was before',
  { timeout: 60_000 + RUNS * 1_000 },
  async () => {
    await eachSeed(rightFromTheStart);
  },
);

test('the bytes of a queue are right after a power cut that has spared acknowledgements, and not their messages', async () => {
  const setup: Setup = { durability: 'os' };
  let files = new RecordingFileSystem();
  const first = await openQueue(files, folder, setup);
  for (const length of [3, 5]) await first.put(Buffer.alloc(length));
  await first.flush();
  for (const length of [9, 17]) await first.put(Buffer.alloc(length));
  const before = files.log.length;
  const [, second, , fourth] = await receiveAll(first);
  second?.ack();
  fourth?.ack();
  const isWritten = (): boolean => files.log.slice(before).some(({ kind }) => kind === 'write');
  while (!isWritten()) await nextTurn();
  const spared = [...files.disk].filter(([path]) => path.endsWith('.cursor'));
  const disk = new Map([...files.afterPowerCut(files.log.length, nothingRemains), ...spared]);
  await first.close();
  expect(await checkStart(disk, setup)).toEqual({ bytes: 3, depth: 1 });
  files = new RecordingFileSystem(disk);
  const queue = await openQueue(files, folder, setup);
  for (const length of [33, 65]) await queue.put(Buffer.alloc(length));
  (await receiveAll(queue))[1]?.ack();
  await queue.close();
  expect(await checkStart(files.disk, setup)).toEqual({ bytes: 3 + 65, depth: 2 });
  for (let point = 0; point <= files.log.length; point++) {
    for (const remains of [nothingRemains, allRemains]) {
      await checkStart(files.afterPowerCut(point, remains), setup);
    }
  }
});

test(
  'the bytes of a queue are right after damage, once the queue has been read to its end',
  { timeout: 60_000 + RUNS * 1_000 },
  async () => {
    await eachSeed(rightWhenItIsFound);
  },
);
