import fc from 'fast-check';
import { expect } from 'vitest';
import type { CorruptionEvent } from '../../src/diskqueue/message-log.ts';
import { CannotRepair } from '../../src/diskqueue/stored/stored-queue.ts';
import { RecordingFileSystem } from '../diskqueue/recording-file-system.ts';
import { MemoryDisk } from '../diskqueue/stored/memory-disk.ts';
import { expectInOrder, openLog, planFor, queueOf, repair } from '../diskqueue/stored/repaired.ts';
import { testProperty } from '../runs.ts';
import { action, type ValueOf } from './actions.ts';

const ACKED = 13;
const MESSAGES = Array.from({ length: 40 }, (_, i) => `message ${i + 1} ${'y'.repeat((i * 37) % 90)}`);

const file = fc.nat(20);
const at = fc.nat(1_000);
const length = fc.nat(200);
const byte = fc.oneof(fc.constant(0), fc.nat(255));
const misplacement = fc.oneof(
  action('copy over', { file, other: file }),
  action('copy as', { file, number: fc.nat(14) }),
);
/** What a disk, or a person, does to the files of a queue. `file` and `at` are taken modulo what there is. */
const damage = fc.oneof(
  misplacement,
  action('remove', { file }),
  action(['cut', 'flip'], { file, at }),
  action(['fill', 'insert'], { file, at, length, byte }),
  action('take out', { file, at, length }),
);

function inflict({ contents }: MemoryDisk, { file, ...what }: ValueOf<typeof damage>): void {
  const paths = [...contents.keys()].sort();
  const path = paths[file % paths.length];
  if (path === undefined) return;
  const bytes = Buffer.from(contents.get(path) as Buffer);
  const place = 'at' in what ? what.at % (bytes.length + 1) : 0;
  const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)];
  if (what.kind === 'remove') contents.delete(path);
  else if (what.kind === 'cut') contents.set(path, before);
  else if (what.kind === 'flip' && after.length > 0) {
    after[0] = (after[0] as number) ^ (1 << (what.at % 8));
    contents.set(path, bytes);
  } else if (what.kind === 'fill') {
    after.subarray(0, what.length).fill(what.byte);
    contents.set(path, bytes);
  } else if (what.kind === 'insert') {
    contents.set(path, Buffer.concat([before, Buffer.alloc(what.length, what.byte), after]));
  } else if (what.kind === 'take out') {
    contents.set(path, Buffer.concat([before, after.subarray(what.length)]));
  } else if (what.kind === 'copy over') {
    contents.set(path, Buffer.from(contents.get(paths[what.other % paths.length] as string) as Buffer));
  } else if (what.kind === 'copy as') {
    contents.set(path.replace(/\d{10}/, String(what.number).padStart(10, '0')), bytes);
  }
}

/** The messages of files that are as they were, and that nobody has acknowledged. */
function untouched(disk: MemoryDisk, whole: MemoryDisk, acked: number): string[] {
  const files = [...whole.contents].filter(
    ([path, bytes]) => path.endsWith('.segment') && disk.contents.get(path)?.equals(bytes) === true,
  );
  return MESSAGES.slice(acked).filter((message) => files.some(([, bytes]) => bytes.includes(message)));
}

/** Opens the queue, reads it to its end, goes on with it, and acknowledges all. @returns what came, and was told of. */
async function liveOn(
  files: RecordingFileSystem,
): Promise<{ messages: string[]; events: CorruptionEvent[] }> {
  const events: CorruptionEvent[] = [];
  const log = await openLog(files, (event) => events.push(event));
  const read = [];
  for (let some = await log.read(); some.length > 0; some = await log.read()) read.push(...some);
  const messages = read.map(({ data }) => Buffer.from(data).toString());
  expect(log.depth).toBe(messages.length);
  expect(log.bytes).toBe(messages.reduce((sum, message) => sum + message.length, 0));
  await log.append([Buffer.from('new')]);
  await log.sync();
  const [last, ...others] = await log.read();
  expect([Buffer.from(last?.data ?? []).toString(), others]).toEqual(['new', []]);
  for (const message of last === undefined ? read : [...read, last]) log.acknowledge(message);
  expect([log.depth, log.bytes]).toEqual([0, 0]);
  await log.saveAcks(true);
  await log.close();
  return { messages, events };
}

/** Nothing comes that nobody has put, or twice; and nothing is said to be lost that comes. */
async function checkOpening(damaged: MemoryDisk): Promise<string[]> {
  const files = new RecordingFileSystem(damaged.contents);
  const { messages, events } = await liveOn(files);
  expect(messages).toEqual(MESSAGES.filter((message) => messages.includes(message)));
  for (const { firstSequence = 0, lastSequence = -1 } of events) {
    for (const message of MESSAGES.slice(Math.max(firstSequence - 1, 0), Math.max(lastSequence, 0))) {
      expect(messages).not.toContain(message);
    }
  }
  const again = await liveOn(new RecordingFileSystem(files.disk));
  expect(again.messages).toEqual([]);
  return messages;
}

async function checkRepair(damaged: MemoryDisk): Promise<string[] | undefined> {
  try {
    await planFor(damaged);
  } catch (error) {
    if (error instanceof CannotRepair) return undefined;
    throw error;
  }
  const disk = new MemoryDisk(damaged.contents);
  await repair(disk);
  await expectInOrder(disk);
  const { messages, events } = await liveOn(new RecordingFileSystem(disk.contents));
  expect(messages).toEqual(MESSAGES.filter((message) => messages.includes(message)));
  expect(events).toEqual([]);
  return messages;
}

async function wholeQueues(): Promise<{ whole: MemoryDisk; acked: number }[]> {
  return [
    { whole: await queueOf(MESSAGES), acked: 0 },
    { whole: await queueOf(MESSAGES, { acked: ACKED }), acked: ACKED },
    { whole: await queueOf(MESSAGES, { acked: ACKED, isClosed: false }), acked: ACKED },
    { whole: await queueOf(MESSAGES, { acked: MESSAGES.length }), acked: MESSAGES.length },
  ];
}

const queues = await wholeQueues();

for (const [what, anyDamage] of [
  ['segments were copied or renamed', misplacement],
  ['any damage was done to the files', damage],
] as const) {
  testProperty(
    `every message of an intact file is delivered once, before and after a repair, although ${what}`,
    fc.asyncProperty(
      fc.nat(queues.length - 1),
      fc.array(anyDamage, { minLength: 1, maxLength: 4 }),
      async (which, damages) => {
        const { whole, acked } = queues[which] as (typeof queues)[number];
        const disk = new MemoryDisk(whole.contents);
        for (const each of damages) inflict(disk, each);
        const wanted = untouched(disk, whole, acked);
        expect(await checkOpening(disk)).toEqual(expect.arrayContaining(wanted));
        expect((await checkRepair(disk)) ?? wanted).toEqual(expect.arrayContaining(wanted));
      },
    ),
    120,
    { seed: 1 },
  );
}
