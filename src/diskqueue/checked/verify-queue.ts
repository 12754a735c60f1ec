import type { FileSystem } from '../../log/file-system.ts';
import type { CorruptionEvent } from '../message-log.ts';
import { CursorFile } from './cursor-file.ts';
import { firstExpected, type CursorState } from './cursor-format.ts';
import { inspectSegment, type InspectedSegment } from './inspect-segment.ts';
import { leftFileOf } from './left-files.ts';
import { recoverSegments } from '../../log/recover-segments.ts';
import { missingAtEnd } from './ledger.ts';
import { segmentFileName, type Segment } from '../../log/segment.ts';

/** What the files of a queue hold. */
export interface QueueReport {
  readonly name: string;
  /** Ascending. */
  readonly segments: readonly SegmentReport[];
  /** Messages that can be read. */
  readonly messages: number;
  /** Those of them that a queue would hand out. */
  readonly unacknowledged: number;
  /** Size of the segments. */
  readonly bytes: number;
  /** Damage, and files that contradict each other. */
  readonly problems: readonly CorruptionEvent[];
  /** What a crash may leave, and opening the queue puts in order or does not mind. For people. */
  readonly notes: readonly string[];
}

export interface SegmentReport {
  readonly file: string;
  readonly number: number;
  /** The sequence of its first message, and the one after its last. */
  readonly base: number;
  readonly next: number;
  /** Size of the file. */
  readonly bytes: number;
  readonly isSealed: boolean;
}

/**
 * Reads every byte of a queue that nobody has open, and changes nothing.
 *
 * @param onProgress - told after each block.
 * @throws what the file system throws.
 */
export async function verifyQueue(
  files: FileSystem,
  folder: string,
  name: string,
  onProgress: (bytesDone: number, bytesTotal: number) => void = () => undefined,
): Promise<QueueReport> {
  const path = `${folder}/${name}.cursor`;
  const cursor = await new CursorFile(files, folder, path).load();
  const { segments, unborn, misplaced } = await recoverSegments(files, folder, name, firstExpected(cursor));
  const inspected = await inspectAll(files, segments, cursor, onProgress);
  return {
    name,
    segments: inspected.map(reportOf),
    messages: sum(inspected.map(({ messages }) => messages)),
    unacknowledged: sum(inspected.map(({ unacknowledged }) => unacknowledged)),
    bytes: sum(inspected.map(({ size }) => size)),
    problems: [
      ...misplaced.map(({ path, size, reason }) => ({ file: path, offset: 0, bytes: size, reason })),
      ...inspected.flatMap(({ problems }) => problems),
      ...gapsBetween(segments, cursor),
      ...missedAtEnd(folder, name, segments, cursor),
      ...cursorProblems(path, cursor),
    ],
    notes: [
      ...unborn.map((file) => `${file}: was being made`),
      ...inspected.flatMap(({ notes }) => notes),
      ...cursorNotes(path, cursor, segments),
      ...(await leftFiles(files, folder, name)),
    ],
  };
}

async function inspectAll(
  files: FileSystem,
  segments: readonly Segment[],
  cursor: CursorState,
  onProgress: (bytesDone: number, bytesTotal: number) => void,
): Promise<InspectedSegment[]> {
  const sizes = await Promise.all(segments.map(({ path }) => files.size(path)));
  const total = sum(sizes);
  const inspected: InspectedSegment[] = [];
  let done = 0;
  for (const [i, segment] of segments.entries()) {
    const before = done;
    const size = sizes[i] as number;
    const onBytes = (bytes: number): void => {
      onProgress(before + bytes, total);
    };
    inspected.push(await inspectSegment(files, segment, size, cursor, onBytes));
    done += size;
  }
  return inspected;
}

function reportOf({ segment, size, isSealed }: InspectedSegment): SegmentReport {
  const { path, number, base, next } = segment;
  return { file: path, number, base, next, bytes: size, isSealed };
}

/** Messages that are acknowledged may be gone: their segments were removed, or a power cut took them. */
function gapsBetween(segments: readonly Segment[], cursor: CursorState): CorruptionEvent[] {
  const { acks } = cursor;
  const gaps: CorruptionEvent[] = [];
  let expected = firstExpected(cursor) ?? Math.max(segments[0]?.base ?? 0, acks.prefix);
  for (const { path: file, base, next } of segments) {
    if (base > expected && acks.nextAfter(expected) < base) {
      const reason = 'the segment before this one is missing';
      gaps.push({ file, offset: 0, bytes: 0, firstSequence: expected, lastSequence: base - 1, reason });
    }
    expected = Math.max(expected, next);
  }
  return gaps;
}

function missedAtEnd(
  folder: string,
  name: string,
  segments: readonly Segment[],
  { end, acks }: CursorState,
): CorruptionEvent[] {
  const missing = missingAtEnd(segments, end, acks);
  if (missing === undefined) return [];
  const { offset, from, to, reason } = missing;
  const sequences = to > from ? { firstSequence: from, lastSequence: to - 1 } : {};
  const file = `${folder}/${segmentFileName(name, end.segment)}`;
  return [{ file, offset, bytes: 0, ...sequences, reason }];
}

function cursorProblems(file: string, { damages }: CursorState): CorruptionEvent[] {
  const reason = 'a record of the cursor is damaged';
  return damages
    .filter(({ isTorn }) => !isTorn)
    .map(({ offset, bytes }) => ({ file, offset, bytes, reason }));
}

function cursorNotes(path: string, { acks, damages }: CursorState, segments: readonly Segment[]): string[] {
  const torn = damages.filter(({ isTorn }) => isTorn);
  const notes = torn.map(({ offset, bytes }) => `${path}: ${bytes} bytes at ${offset} were not finished`);
  const next = segments.at(-1)?.next ?? acks.end;
  if (acks.end > next) notes.push(`${path}: messages ${next} to ${acks.end - 1} are acknowledged and gone`);
  return notes;
}

async function leftFiles(files: FileSystem, folder: string, name: string): Promise<string[]> {
  const notes: string[] = [];
  for (const file of await files.list(folder)) {
    const left = leftFileOf(name, file);
    if (left !== undefined)
      notes.push(`${folder}/${file}: was ${left === 'unfinished' ? 'being made' : left}`);
  }
  return notes;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
