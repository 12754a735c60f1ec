import { describe, expect, test } from 'vitest';
import { folderOfFile } from '../../folder.ts';
import { Random } from '../random.ts';
import { FIRST_SEED, runs } from '../../runs.ts';
import {
  allBut,
  allRemains,
  nothingRemains,
  only,
  orderedRemains,
  RecordingFileSystem,
  someRemains,
  type Disk,
  type Remains,
} from '../recording-file-system.ts';
import type { History } from './history.ts';
import { inCase, openQueue, problemsOf, receiveAll, type Setup } from './open-queue.ts';
import { Workload } from './workload.ts';

const folder = folderOfFile();

const DURABILITIES = ['always', 'interval', 'os'] as const;

/**
 * What is on the disk after a power cut, as a queue sees it: all that was promised, and whatever happens next.
 *
 * @returns the messages that a queue delivers.
 */
async function checkDisk(
  disk: Disk,
  history: History,
  crashedAt: number,
  setup: Setup,
  random: Random,
  crashesLeft = 1,
): Promise<Uint8Array[]> {
  const files = new RecordingFileSystem(disk);
  expect(await problemsOf(files, folder)).toEqual([]);
  const first = await deliveredBy(files, setup);
  history.check(first, crashedAt);
  if (crashesLeft > 0 && random.chance(0.3)) {
    const again = files.afterPowerCut(random.below(files.log.length + 1), remainsOf(setup, random));
    await checkDisk(again, history, crashedAt, setup, random, crashesLeft - 1);
  }
  expect(textsOf(await deliveredBy(files, setup))).toEqual(textsOf(first));
  await checkUse(files, setup, first, random);
  expect(await problemsOf(files, folder)).toEqual([]);
  expect(files.handles).toBe(0);
  return first;
}

/** A text that is the same for equal disks. */
function imageOf(disk: Disk): string {
  const files = [...disk].sort(([a], [b]) => (a < b ? -1 : 1));
  return files.map(([path, bytes]) => `${path}\n${bytes.toString('latin1')}`).join('\n');
}

async function deliveredBy(files: RecordingFileSystem, setup: Setup): Promise<Uint8Array[]> {
  const queue = await openQueue(files, folder, setup);
  const { depth, bytes } = queue;
  const delivered = await receiveAll(queue);
  expect({ depth, bytes }).toEqual({ depth: delivered.length, bytes: bytesOf(delivered) });
  expect(queue.bytes).toBe(bytes);
  await queue.close();
  return delivered.map(({ data }) => data);
}

/** New messages come behind the old ones, and what is acknowledged then is gone. */
async function checkUse(
  files: RecordingFileSystem,
  setup: Setup,
  old: readonly Uint8Array[],
  random: Random,
): Promise<void> {
  const queue = await openQueue(files, folder, setup);
  const added = [Buffer.from('new'), Buffer.alloc(700, 'newer'), Buffer.alloc(0)];
  for (const data of added) await queue.put(data);
  const deliveries = await receiveAll(queue);
  expect(textsOf(deliveries.map(({ data }) => data))).toEqual(textsOf([...old, ...added]));
  const notAcked = deliveries.filter(() => random.chance(0.2));
  for (const delivery of deliveries) if (!notAcked.includes(delivery)) delivery.ack();
  const [first] = notAcked;
  const kept = setup.format === 'nsq' && first ? deliveries.slice(deliveries.indexOf(first)) : notAcked;
  await queue.close();
  const last = await openQueue(files, folder, setup);
  expect({ depth: last.depth, bytes: last.bytes }).toEqual({ depth: kept.length, bytes: bytesOf(kept) });
  const left = await receiveAll(last);
  expect(textsOf(left.map(({ data }) => data))).toEqual(textsOf(kept.map(({ data }) => data)));
  for (const delivery of left) delivery.ack();
  expect({ depth: last.depth, bytes: last.bytes }).toEqual({ depth: 0, bytes: 0 });
  await last.close();
}

/** Texts are compared faster than bytes. */
function textsOf(messages: readonly Uint8Array[]): string[] {
  return messages.map((data) => Buffer.from(data).toString('latin1'));
}

function bytesOf(deliveries: readonly { data: Uint8Array }[]): number {
  return deliveries.reduce((sum, { data }) => sum + data.length, 0);
}

/** The records of NSQ have no checksums: what is left of them must be a beginning. */
function remainsOf({ format }: Setup, random: Random): Remains {
  return format === 'nsq' ? orderedRemains(random) : someRemains(random);
}

interface State {
  readonly point: number;
  readonly remains: () => Remains;
}

/** Nothing or all of what was not synced, one thing alone, or all but one. */
function everyState(files: RecordingFileSystem, setup: Setup, random: Random): State[] {
  const states: State[] = [];
  for (let point = 0; point <= files.log.length; point++) {
    states.push({ point, remains: () => nothingRemains }, { point, remains: () => allRemains });
    if (setup.format === 'nsq') {
      states.push({ point, remains: () => orderedRemains(random) });
      continue;
    }
    for (let nth = files.unsyncedAt(point) - 1; nth >= 0; nth--) {
      states.push({ point, remains: () => only(nth) }, { point, remains: () => allBut(nth) });
    }
  }
  return states;
}

async function record(
  setup: Setup,
  steps: number,
  random: Random,
): Promise<{ files: RecordingFileSystem; history: History }> {
  const files = new RecordingFileSystem();
  const workload = new Workload(files, folder, setup, random, () => files.log.length);
  await workload.run(steps);
  expect(files.handles).toBe(0);
  return { files, history: workload.history };
}

const FORMATS = DURABILITIES.flatMap((durability) =>
  (['checked', 'nsq'] as const).map((format) => [durability, format] as const),
);

describe.each(FORMATS)('a power cut, with durability %s and format %s', (durability, format) => {
  const RUNS = runs(6);
  const POINTS = 8;

  test(
    'a power cut at a random step of random work costs nothing that was promised',
    { timeout: 120_000 + RUNS * 20_000 },
    async () => {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
        const random = new Random(seed);
        const setup: Setup = {
          durability,
          format,
          maxBytesPerFile: random.pick([256, 600, 3_000, 1_000_000]),
        };
        const { files, history } = await record(setup, 30, random);
        for (let i = 0; i < POINTS; i++) {
          const point = random.below(files.log.length + 1);
          const disk = files.afterPowerCut(point, i === 0 ? nothingRemains : remainsOf(setup, random));
          await inCase(`ESCAPEMENT_FUZZ_SEED=${seed}, cut ${i} at ${point}`, () =>
            checkDisk(disk, history, point, setup, random),
          );
        }
      }
    },
  );

  // As many states as there are with ESCAPEMENT_FUZZ_RUNS=30000; else some that are spread over all of them.
  test(
    'a power cut at every step of a little work costs nothing that was promised, whatever remains',
    { timeout: 600_000 },
    async () => {
      const random = new Random(1);
      const setup: Setup = { durability, format, maxBytesPerFile: 700 };
      const { files, history } = await record(setup, 10, random);
      const states = everyState(files, setup, random);
      const stride = Math.max(1, Math.floor(states.length / runs(60)));
      // Many states leave the same on the disk. What differs then is what was promised.
      const deliveredFrom = new Map<string, Uint8Array[]>();
      for (let i = random.below(stride); i < states.length; i += stride) {
        const { point, remains } = states[i] as State;
        await inCase(`state ${i} at ${point}`, async () => {
          const disk = files.afterPowerCut(point, remains());
          const image = imageOf(disk);
          const delivered = deliveredFrom.get(image);
          if (delivered !== undefined) history.check(delivered, point);
          else deliveredFrom.set(image, await checkDisk(disk, history, point, setup, random, 0));
        });
      }
    },
  );
});
