import { beforeAll, describe, expect, test } from 'vitest';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';
import { folderOfFile } from '../../folder.ts';
import { runs } from '../../runs.ts';
import { allRemains, RecordingFileSystem, type Disk } from '../recording-file-system.ts';
import { messageOf } from './history.ts';
import { openQueue, receiveAll } from './open-queue.ts';

const folder = folderOfFile();

const MESSAGES = 14;
const SETUP = { maxBytesPerFile: 400 };
/** Acknowledged, and with sequences that are one more: the first is 1. */
const ACKED = [0, 1, 5, 6];
const LEFT = Array.from({ length: MESSAGES }, (_, id) => id).filter((id) => !ACKED.includes(id));

function lengthOf(id: number): number {
  return 4 + ((id * 37) % 60);
}

/** Several segments and a cursor: closed, and as a crash leaves it after the last put. */
async function build(): Promise<{ closed: Disk; crashed: Disk }> {
  const files = new RecordingFileSystem();
  const queue = await openQueue(files, folder, SETUP);
  for (let id = 0; id < MESSAGES; id++) await queue.put(messageOf(id, lengthOf(id)));
  const deliveries = await receiveAll(queue);
  for (const id of ACKED) deliveries[id]?.ack();
  await queue.flush();
  const crashed = files.afterPowerCut(files.log.length, allRemains);
  await queue.close();
  return { closed: files.disk, crashed };
}

interface Outcome {
  readonly ids: number[];
  readonly events: CorruptionEvent[];
}

/** Everything is received, acknowledged, and gone. */
async function drain(disk: Disk): Promise<Outcome> {
  const files = new RecordingFileSystem(disk);
  const events: CorruptionEvent[] = [];
  const queue = await openQueue(files, folder, SETUP, (event) => events.push(event));
  const deliveries = await receiveAll(queue);
  const ids = deliveries.map(({ data }) => {
    const id = Buffer.from(data).readUInt32LE(0);
    expect(Buffer.from(data).equals(messageOf(id, lengthOf(id))), `message ${id} is wrong`).toBe(true);
    return id;
  });
  expect(queue.depth).toBe(ids.length);
  expect(queue.bytes).toBe(ids.reduce((sum, id) => sum + lengthOf(id), 0));
  for (const delivery of deliveries) delivery.ack();
  expect({ depth: queue.depth, bytes: queue.bytes }).toEqual({ depth: 0, bytes: 0 });
  await queue.put(messageOf(99, 10));
  const [last] = await receiveAll(queue);
  expect(Buffer.from(last?.data ?? [])).toEqual(messageOf(99, 10));
  last?.ack();
  await queue.close();
  await checkIsEmpty(files);
  return { ids, events };
}

/** What was reported once is not reported again. */
async function checkIsEmpty(files: RecordingFileSystem): Promise<void> {
  const queue = await openQueue(files, folder, SETUP);
  expect({ depth: queue.depth, bytes: queue.bytes }).toEqual({ depth: 0, bytes: 0 });
  expect(await queue.peek()).toBeUndefined();
  await queue.close();
  expect(files.handles).toBe(0);
}

function damaged(disk: Disk, path: string, change: (bytes: Buffer) => Buffer): Disk {
  const copy = new Map(disk);
  copy.set(path, change(Buffer.from(disk.get(path) ?? [])));
  return copy;
}

function flipped(disk: Disk, path: string, offset: number, bit: number): Disk {
  return damaged(disk, path, (bytes) => {
    bytes.writeUInt8(bytes.readUInt8(offset) ^ (1 << bit), offset);
    return bytes;
  });
}

function sequencesOf({ firstSequence, lastSequence }: CorruptionEvent): number[] {
  if (firstSequence === undefined || lastSequence === undefined) return [];
  return Array.from({ length: lastSequence - firstSequence + 1 }, (_, i) => firstSequence + i);
}

/** Most of a cursor says again what its beginning says: its head, its two slots, and its first ranges do not. */
function saysSomething(offset: number): boolean {
  return [0, 4_096, 8_192].some((start) => offset >= start && offset < start + 128);
}

/** What is lost is what was reported, where it was; and everything else is there. */
function checkLoss({ ids, events }: Outcome, path: string, offset: number, isOpenEnded: boolean): void {
  const lost = LEFT.filter((id) => !ids.includes(id));
  expect(ids).toEqual(LEFT.filter((id) => ids.includes(id)));
  const reported = events.flatMap(sequencesOf).map((sequence) => sequence - 1);
  const unknown = events.filter(({ firstSequence }) => firstSequence === undefined);
  if (unknown.length === 0) expect(reported.filter((id) => LEFT.includes(id))).toEqual(lost);
  else expect(isOpenEnded, 'nobody says what is lost').toBe(true);
  expect(lost.length).toBeLessThanOrEqual(offset < 128 ? 0 : 1);
  for (const event of events) {
    expect(event.file).toBe(path);
    if (event.bytes === 0) continue; // what the cursor knows to be missing at the end
    expect(offset).toBeGreaterThanOrEqual(event.offset);
    expect(offset).toBeLessThan(event.offset + event.bytes);
  }
}

describe.each(['closed', 'crashed'] as const)('one flipped bit in a queue that has %s', (state) => {
  let disk: Disk;
  let places: { path: string; offset: number }[];
  beforeAll(async () => {
    disk = (await build())[state];
    places = [...disk]
      .flatMap(([path, { length }]) => Array.from({ length }, (_, offset) => ({ path, offset })))
      .filter(({ path, offset }) => !path.endsWith('.cursor') || saysSomething(offset));
  });

  test(
    'one flipped bit changes no message, and costs no message that is not reported',
    { timeout: 600_000 },
    async () => {
      expect(places.length).toBeGreaterThan(1_000);
      const lastSegment = [...disk.keys()].filter((path) => path.endsWith('.segment')).at(-1);
      const stride = Math.max(1, Math.floor(places.length / runs(300)));
      for (let i = 0; i < places.length; i += stride) {
        const { path, offset } = places[i] as { path: string; offset: number };
        for (const bit of stride === 1 ? [i % 8, (i + 3) % 8] : [i % 8]) {
          const outcome = await drain(flipped(disk, path, offset, bit));
          const where = `bit ${bit} at ${offset} of ${path}: ${JSON.stringify(outcome)}`;
          const check = (): void => {
            if (path.endsWith('.cursor')) {
              expect(outcome.events).toEqual([]);
              expect(outcome.ids.filter((id) => LEFT.includes(id))).toEqual(LEFT);
            } else checkLoss(outcome, path, offset, state === 'crashed' && path === lastSegment);
          };
          expect(check, where).not.toThrow();
        }
      }
    },
  );
});

describe('a file that is missing, cut or overwritten', () => {
  let disk: Disk;
  let paths: string[];
  beforeAll(async () => {
    disk = (await build()).closed;
    paths = [...disk.keys()].filter((path) => path.endsWith('.segment'));
  });

  test('a segment without headers is reported with the messages that were in it', async () => {
    for (const path of paths.slice(0, -1)) {
      const { ids, events } = await drain(damaged(disk, path, (bytes) => bytes.fill(0, 0, 128)));
      const lost = LEFT.filter((id) => !ids.includes(id));
      expect(events).toHaveLength(1);
      expect(events[0]).toMatchObject({ file: path, offset: 0 });
      expect(events.flatMap(sequencesOf)).toEqual(expect.arrayContaining(lost.map((id) => id + 1)));
    }
  });

  test('a segment that ends too early loses the messages behind its end alone', async () => {
    for (const path of paths.slice(0, -1)) {
      const { length } = disk.get(path) as Buffer;
      for (let size = 128; size < length - 40; size += 13) {
        const { ids, events } = await drain(damaged(disk, path, (bytes) => bytes.subarray(0, size)));
        const lost = LEFT.filter((id) => !ids.includes(id));
        const reported = events.flatMap(sequencesOf).map((sequence) => sequence - 1);
        expect(reported.filter((id) => LEFT.includes(id))).toEqual(lost);
        for (const { file } of events) expect(file).toBe(path);
      }
    }
  });

  test('bytes behind the end of a segment are ignored', async () => {
    for (const path of paths) {
      const longer = damaged(disk, path, (bytes) => Buffer.concat([bytes, Buffer.alloc(700, 0xec)]));
      expect(await drain(longer)).toEqual({ ids: LEFT, events: [] });
    }
  });
});
