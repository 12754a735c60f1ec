import { examineSegment, type ExaminedSegment } from '../../log/examine-segment.ts';
import type { FileSystem } from '../../log/file-system.ts';
import { recoverSegments, type RecoveredSegments } from '../../log/recover-segments.ts';
import { leftFileOf } from '../../log/repair-segment.ts';
import {
  DATA,
  FOOTER_BYTES,
  SEGMENT_HEADER_BYTES,
  corruptionOf,
  gapsOf,
  type CorruptionEvent,
  type Segment,
} from '../../log/segment.ts';
import type { VerifyReport } from '../stored/stored-queue.ts';
import { CursorFile, cursorFileNames } from './cursor-file.ts';
import { firstExpected, missingAtEnd, type CursorState } from './cursor-format.ts';

/** Size of one of the two copies of a header. */
const COPY_BYTES = SEGMENT_HEADER_BYTES / 2;

/** A queue of which every byte was read: what `verify` reports, and what a repair is planned from. */
export interface ExaminedQueue {
  readonly folder: string;
  readonly name: string;
  /** Names of all files of the folder. */
  readonly names: readonly string[];
  readonly cursor: CursorState;
  readonly cursorPath: string;
  readonly found: RecoveredSegments;
  readonly segments: readonly ExaminedSegment[];
  /** Messages that a queue would hand out. */
  readonly unacknowledged: number;
}

/**
 * Reads every byte of a queue that is not open, or of another log, and changes nothing.
 *
 * @param onProgress - called after each block.
 * @param type - of its records.
 * @throws the errors of the file system; ForeignLog - the records are of another type.
 */
export async function examineQueue(
  files: FileSystem,
  folder: string,
  name: string,
  onProgress: (bytesDone: number, bytesTotal: number) => void = () => undefined,
  type = DATA,
): Promise<ExaminedQueue> {
  const names = await files.list(folder);
  const cursorFile = new CursorFile(files, folder, name);
  const cursor = await cursorFile.load();
  const found = await recoverSegments(files, folder, name, type, firstExpected(cursor));
  const sizes = await Promise.all(found.segments.map(({ path }) => files.size(path)));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const segments: ExaminedSegment[] = [];
  let unacknowledged = 0;
  let done = 0;
  for (const [i, segment] of found.segments.entries()) {
    const before = done;
    const successor = found.segments[i + 1];
    const follows = successor?.number === segment.number + 1 ? successor : undefined;
    const examined = await examineSegment(files, segment, follows, (pieces) => {
      for (const piece of pieces) {
        if (piece.kind === 'record' && !cursor.acks.has(piece.sequence)) unacknowledged++;
      }
      onProgress(before + (pieces.at(-1)?.end ?? 0), total);
    });
    segments.push(examined);
    done += sizes[i] as number;
    onProgress(done, total);
  }
  return { folder, name, names, cursor, cursorPath: cursorFile.path, found, segments, unacknowledged };
}

/** @returns what the files of a queue hold: `bytes` is the size of its segments. */
export function reportOf(examined: ExaminedQueue): VerifyReport {
  const { cursor, found, segments, unacknowledged } = examined;
  return {
    messages: segments.reduce((sum, { records }) => sum + records, 0),
    unacknowledged,
    bytes: segments.reduce((sum, { size }) => sum + size, 0),
    problems: [
      ...found.misplaced,
      ...segments.flatMap((segment) => problemsOf(segment, cursor)),
      ...gapsBetween(found.segments, cursor),
      ...missedAtEnd(examined),
      ...cursorProblems(examined),
    ],
    notes: [
      ...found.unfinished.map((path) => `${path}: is unfinished`),
      ...segments.flatMap((segment) => notesOf(segment, cursor)),
      ...cursorNotes(examined),
      ...leftFilesOf(examined).map(
        ({ path, left }) => `${path}: ${left === 'unfinished' ? 'is unfinished' : 'was set aside'}`,
      ),
    ],
  };
}

/** Files that an interrupted save or repair has left, and files that a repair keeps. */
export function leftFilesOf({ folder, name, names }: ExaminedQueue): {
  readonly path: string;
  readonly left: 'unfinished' | 'set aside';
}[] {
  return names.flatMap((file) => {
    const left = file === cursorFileNames(name)[1] ? 'unfinished' : leftFileOf(name, file);
    return left === undefined ? [] : [{ path: `${folder}/${file}`, left }];
  });
}

function problemsOf(examined: ExaminedSegment, { acks }: CursorState): CorruptionEvent[] {
  const { segment, size, damages, headerCopies, end, next } = examined;
  const { path, header } = segment;
  const damaged = damages
    .filter(({ from, to }) => header === undefined || from === to || acks.nextAfter(from) < to)
    .map((damage) => {
      const until = Math.max(Math.min(damage.end, size), damage.offset);
      return corruptionOf(path, { ...damage, end: until });
    });
  if (header === undefined) return damaged;
  const problems: CorruptionEvent[] = [];
  const add = (offset: number, bytes: number, reason: string, from?: number, to?: number): void => {
    problems.push(corruptionOf(path, { offset, end: offset + bytes, from, to, reason }));
  };
  for (const [i, copy] of headerCopies.entries()) {
    if (copy === 'damaged' || (copy === 'missing' && i === 0)) {
      add(i * COPY_BYTES, COPY_BYTES, 'a copy of the header is damaged');
    }
  }
  for (const damage of damaged) problems.push(damage); // maybe more than a call has arguments
  if (next < segment.next && acks.nextAfter(next) < segment.next) {
    add(end, 0, 'the segment ends too early', next, segment.next);
  } else if (next > segment.next) {
    add(end, 0, 'it has more messages than the header of the next segment states');
  }
  if (examined.hasWrongFooter) {
    add(end, FOOTER_BYTES, 'its footer does not match its messages');
  }
  if (examined.hasStrayFooter) {
    add(size - FOOTER_BYTES, FOOTER_BYTES, 'its footer is not where the segment ends');
  }
  return problems;
}

function notesOf(examined: ExaminedSegment, { acks }: CursorState): string[] {
  const { segment, size, damages, headerCopies, lost, rest } = examined;
  const { path } = segment;
  const notes: string[] = [];
  if (segment.header === undefined) return notes;
  if (headerCopies[1] === 'missing') notes.push(`${path}: one copy of its header is missing`);
  for (const { offset, from, to, reason } of damages) {
    if (from < to && acks.nextAfter(from) >= to)
      notes.push(`${path} at ${offset}: ${reason}; it is acknowledged`);
  }
  for (const { from, to } of lost) {
    const messages = to - from === 1 ? `message ${from} was` : `messages ${from} to ${to - 1} were`;
    if (to > from) notes.push(`${path}: ${messages} lost; a repair has recorded that`);
  }
  if (rest > 0) notes.push(`${path}: ${rest} bytes at ${size - rest} are not part of a message`);
  return notes;
}

/** Acknowledged messages may be missing: their segments were removed, or a power cut took them. */
function gapsBetween(segments: readonly Segment[], cursor: CursorState): CorruptionEvent[] {
  const { acks } = cursor;
  const expected = firstExpected(cursor) ?? Math.max(segments[0]?.base ?? 0, acks.prefix);
  return gapsOf(segments, expected)
    .filter(({ from, to }) => acks.nextAfter(from) < to)
    .map((gap) => corruptionOf(gap.path, gap));
}

function missedAtEnd(examined: ExaminedQueue): CorruptionEvent[] {
  const { end, acks } = examined.cursor;
  const missing = missingAtEnd(examined, examined.found.segments, end, acks);
  return missing === undefined ? [] : [corruptionOf(missing.path, missing)];
}

function cursorProblems({ cursor, cursorPath }: ExaminedQueue): CorruptionEvent[] {
  return cursor.damages
    .filter(({ isTorn }) => !isTorn)
    .map(({ offset, bytes }) => {
      const reason = 'a record of the cursor is damaged';
      return corruptionOf(cursorPath, { offset, end: offset + bytes, reason });
    });
}

function cursorNotes({ cursorPath: path, cursor: { acks, damages }, found }: ExaminedQueue): string[] {
  const torn = damages.filter(({ isTorn }) => isTorn);
  const notes = torn.map(
    ({ offset, bytes }) => `${path}: a write of ${bytes} bytes at ${offset} is unfinished`,
  );
  const next = found.segments.at(-1)?.next ?? acks.end;
  if (acks.end > next)
    notes.push(`${path}: messages ${next} to ${acks.end - 1} are acknowledged, and not in the files`);
  return notes;
}
