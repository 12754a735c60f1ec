import { expect, test } from 'vitest';
import { decodeSegmentHeader, encodeSegmentHeader, SEGMENT_HEADER_BYTES } from '../../../src/log/segment.ts';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';
import { readAll, texts } from '../nsq/queue-folder.ts';
import { RecordingFileSystem, type Disk } from '../recording-file-system.ts';
import { MemoryDisk } from '../stored/memory-disk.ts';
import {
  expectInOrder,
  FOLDER,
  handedOut,
  NAME,
  openLog,
  planFor,
  queueOf,
  repair,
  storedOn,
} from '../stored/repaired.ts';

const MESSAGES = Array.from({ length: 20 }, (_, i) => `message ${String(i + 1).padStart(100, '0')}`);
/** Two of the messages fit into a file. */
const inFile = (number: number): string[] => MESSAGES.slice((number - 1) * 2, number * 2);
const without = (...numbers: number[]): string[] => {
  const gone = numbers.flatMap(inFile);
  return MESSAGES.filter((message) => !gone.includes(message));
};

function pathOf(number: number): string {
  return `${FOLDER}/${NAME}.${String(number).padStart(10, '0')}.segment`;
}

async function open(disk: Disk): Promise<{ disk: Disk; messages: string[]; events: CorruptionEvent[] }> {
  const files = new RecordingFileSystem(disk);
  const events: CorruptionEvent[] = [];
  const log = await openLog(files, (event) => events.push(event));
  const messages = texts(await readAll(log));
  expect(log.depth).toBe(messages.length);
  await log.close();
  return { disk: files.disk, messages, events };
}

/** What comes when it is opened; the next time there is nothing to tell. And what comes if it is repaired before. */
async function check(
  contents: Disk,
  misplaced: number,
  expected: readonly string[],
  lost?: [number, number],
) {
  const opened = await open(contents);
  expect(opened.messages).toEqual(expected);
  const [first, ...rest] = opened.events;
  expect(first).toMatchObject({ file: pathOf(misplaced), offset: 0 });
  expect(first?.firstSequence).toBeUndefined();
  expect(rest.map(({ firstSequence, lastSequence }) => [firstSequence, lastSequence])).toEqual(
    lost ? [lost] : [],
  );
  expect(opened.disk.get(`${pathOf(misplaced)}.damaged`)).toEqual(contents.get(pathOf(misplaced)));
  expect(await open(opened.disk)).toMatchObject({ messages: expected, events: [] });

  const disk = new MemoryDisk(contents);
  const { problems, unacknowledged } = await storedOn(disk).verify(() => undefined);
  expect(problems[0]).toMatchObject({ file: pathOf(misplaced), offset: 0 });
  expect(unacknowledged).toBe(expected.length);
  const [step] = (await planFor(disk)).steps;
  expect(step).toMatchObject({
    action: 'set aside',
    file: pathOf(misplaced),
    keptAs: `${pathOf(misplaced)}.damaged`,
  });
  expect(
    (await repair(disk)).map(({ firstSequence, lastSequence }) => [firstSequence, lastSequence]),
  ).toEqual(lost ? [lost] : []);
  expect(await handedOut(disk)).toEqual(expected);
  await expectInOrder(disk);
}

test('a copy of a segment behind the last one is set aside, and its messages are delivered once', async () => {
  const { contents } = await queueOf(MESSAGES);
  await check(new Map(contents).set(pathOf(12), contents.get(pathOf(3)) as Buffer), 12, MESSAGES);
});

test('messages that are put after a copy of a segment with a number far from all others are found again', async () => {
  const { contents } = await queueOf(MESSAGES);
  const far = `${FOLDER}/${NAME}.999999999999999.segment`;
  const files = new RecordingFileSystem(new Map(contents).set(far, contents.get(pathOf(3)) as Buffer));
  const log = await openLog(files, () => undefined);
  await log.append([Buffer.from('new')]);
  await log.sync();
  await log.close();
  expect((await open(files.disk)).messages).toEqual([...MESSAGES, 'new']);
});

test('a copy over another segment is set aside, and the messages of that one are reported as lost', async () => {
  const { contents } = await queueOf(MESSAGES);
  await check(new Map(contents).set(pathOf(3), contents.get(pathOf(5)) as Buffer), 3, without(3), [5, 6]);
});

test('a copy over the last segment of a queue that was not closed is set aside, and its messages are reported as lost', async () => {
  const { contents } = await queueOf(MESSAGES, { isClosed: false });
  await check(
    new Map(contents).set(pathOf(10), contents.get(pathOf(1)) as Buffer),
    10,
    without(10),
    [19, 20],
  );
});

test.each([
  ['earlier', 0],
  ['later', 900],
])(
  'a segment of another queue with %s messages, in the place of a segment, is set aside, and none of the others is',
  async (_, before) => {
    const { contents } = await queueOf(MESSAGES);
    const other = await queueOf([
      ...Array<string>(before).fill('x'),
      ...MESSAGES.map((text) => `of another: ${text}`),
    ]);
    const paths = [...other.contents.keys()].filter((path) => path.endsWith('.segment')).sort();
    // Its number is made to fit by hand: a queue whose files had held more, or fewer, would have it.
    const bytes = Buffer.from(
      other.contents.get(before === 0 ? pathOf(1) : (paths.at(-2) as string)) as Buffer,
    );
    await check(new Map(contents).set(pathOf(4), renumbered(bytes, 4)), 4, without(4), [7, 8]);
  },
);

/** With another number in both copies of its header. */
function renumbered(segment: Buffer, number: number): Buffer {
  const header = decodeSegmentHeader(segment);
  if (header === undefined) throw new Error('no header');
  return Buffer.concat([encodeSegmentHeader({ ...header, number }), segment.subarray(SEGMENT_HEADER_BYTES)]);
}

test('a copy of a segment whose header is damaged is not restored by a repair', async () => {
  const { contents } = await queueOf(MESSAGES);
  const copy = Buffer.from(contents.get(pathOf(5)) as Buffer).fill(0, 0, 128);
  const disk = new MemoryDisk(new Map(contents).set(pathOf(3), copy));
  expect((await open(disk.contents)).messages).toEqual(without(3));
  expect((await repair(disk)).map(({ messages }) => messages)).toEqual([2]);
  expect(await handedOut(disk)).toEqual(without(3));
  await expectInOrder(disk);
});
