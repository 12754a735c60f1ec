import type { ExaminedSegment } from '../../log/examine-segment.ts';
import { freeName, type FileSystem } from '../../log/file-system.ts';
import {
  canReplace,
  mendHeader,
  rewriteSegment,
  sealSegment,
  type RepairedSegment,
} from '../../log/repair-segment.ts';
import {
  corruptionOf,
  RECORD_HEADER_BYTES,
  type LostPart,
  type Segment,
  type SegmentHeader,
} from '../../log/segment.ts';
import { UNKNOWN_BYTES, type AckRanges } from '../ack-ranges.ts';
import {
  CannotRepair,
  removalOf,
  type LostMessages,
  type RepairPlan,
  type RepairStep,
} from '../stored/stored-queue.ts';
import { CursorFile } from './cursor-file.ts';
import { isWhole, laterEnd, missingAtEnd, type CursorState, type LogEnd } from './cursor-format.ts';
import { leftFilesOf, type ExaminedQueue } from './examine-queue.ts';

interface Planning {
  readonly files: FileSystem;
  readonly folder: string;
  readonly name: string;
  readonly taken: ReadonlySet<string>;
  /** Whether the log has a cursor, which records messages that are in no segment. Else the segment before them does. */
  readonly hasCursor: boolean;
  /** Acknowledged messages, and lost ones. */
  readonly acks: AckRanges;
  readonly steps: RepairStep[];
  readonly lost: LostMessages[];
}

/**
 * Plans the steps that bring a queue into the state of a clean close. Each step is safe by itself: if the machine stops
 * after any of them, the queue can be opened, and repaired again.
 *
 * Intact messages are not lost: a damaged segment is replaced by one in which they have their old positions, and is kept as
 * it was under another name.
 *
 * @param examined - not used again: what is lost is added to its acknowledgements.
 * @param hasCursor - whether it is a queue: other logs have no acknowledgements.
 */
export function planRepair(files: FileSystem, examined: ExaminedQueue, hasCursor = true): RepairPlan {
  const { folder, name, names, cursor, found, segments } = examined;
  const { acks } = cursor;
  const taken = new Set(names.map((file) => `${folder}/${file}`));
  const planning: Planning = { files, folder, name, taken, hasCursor, acks, steps: [], lost: [] };
  const leftovers = leftFilesOf(examined).filter(({ left }) => left === 'unfinished');
  for (const file of [...found.unfinished, ...leftovers.map(({ path }) => path)]) {
    planning.steps.push(removalOf(files, folder, file));
  }
  for (const { file, reason } of found.misplaced) planSetAside(planning, file, reason);
  const { count } = acks;
  const kept = planSegments(planning, cursor, segments);
  const missing = missingAtEnd(planning, kept, cursor.end, acks);
  if (missing !== undefined) lose(planning, missing.path, missing);
  if (hasCursor) planCursor(planning, cursor, kept, missing !== undefined || acks.count !== count);
  return planning;
}

/** @returns the segments that stay, as they will be. */
function planSegments(
  planning: Planning,
  cursor: CursorState,
  segments: readonly ExaminedSegment[],
): readonly Segment[] {
  const { acks } = planning;
  const first = segments[0]?.segment;
  // A damaged cursor may have held acknowledgements of what is missing.
  if (!isWhole(cursor) && first !== undefined) acks.add(acks.prefix, first.base, UNKNOWN_BYTES);
  let expected = acks.prefix;
  const kept: Segment[] = [];
  for (const [i, examined] of segments.entries()) {
    const { segment } = examined;
    if (segment.base > expected) {
      const reason = 'the messages before this segment are missing';
      lose(planning, segment.path, { offset: 0, end: 0, from: expected, to: segment.base, reason });
    }
    const { header } = segment;
    if (header === undefined) {
      const isNextThere = segments[i + 1]?.segment.number === segment.number + 1;
      planUnreadable(planning, segment, isNextThere && (i > 0 || isWhole(cursor)));
      expected = Math.max(expected, segment.next);
    } else {
      const following = segments.find((other, at) => at > i && other.segment.header !== undefined);
      const { end, next } = planSegment(planning, examined, header, following?.segment);
      kept.push({ ...segment, end, next });
      expected = Math.max(expected, next);
    }
  }
  return kept;
}

/**
 * @param following - the next segment that can be read.
 * @returns what the segment will be, without a record of what is missing behind it.
 */
function planSegment(
  planning: Planning,
  examined: ExaminedSegment,
  header: SegmentHeader,
  following: Segment | undefined,
): RepairedSegment {
  const { files, steps, hasCursor } = planning;
  const { segment, damages, headerCopies, end, next } = examined;
  const { path } = segment;
  for (const damage of damages) lose(planning, path, damage);
  const repaired = { header, end, next, damages };
  const recorded = hasCursor ? repaired : withGap(repaired, following);
  if (damages.length > 0) {
    planRewrite(planning, path, recorded);
    return repaired;
  }
  if (headerCopies.some((copy) => copy !== 'intact')) {
    const detail = 'one of the two copies of its header is damaged; nothing is lost';
    steps.push({ action: 'mend', file: path, detail, run: () => mendHeader(files, path, header) });
  }
  const run = (): Promise<void> => sealSegment(files, path, recorded);
  if (recorded !== repaired) {
    steps.push({ action: 'seal', file: path, detail: 'it must record what is missing behind it', run });
  } else if (!examined.isSealed) {
    steps.push({ action: 'seal', file: path, detail: describeSeal(examined), run });
  }
  return repaired;
}

/** Adds a record of what is missing before the following segment, if files between the two are. */
function withGap(repaired: RepairedSegment, following: Segment | undefined): RepairedSegment {
  const { header, end: offset, next: from, damages } = repaired;
  const to = following?.base ?? from;
  // The header of the next file holds where this one ends, which must stay.
  if (to <= from || following?.number === header.number + 1) return repaired;
  const end = offset + RECORD_HEADER_BYTES;
  const gap = { offset, end, from, to, reason: 'records are missing' };
  return { ...repaired, end, next: to, damages: [...damages, gap] };
}

function describeSeal({ size, end }: ExaminedSegment): string {
  const torn = size - end;
  if (torn <= 0) return 'it is not sealed';
  return `it is not sealed; ${torn} bytes behind its last message are unfinished, and are cut off`;
}

function planRewrite(
  { files, folder, taken, steps }: Planning,
  path: string,
  repaired: RepairedSegment,
): void {
  const { damages } = repaired;
  const tooShort = damages.find((damage) => !canReplace(damage));
  if (tooShort !== undefined) {
    const { offset } = tooShort;
    throw new CannotRepair(
      `cannot repair ${path}: bytes are missing at ${offset}, and what is left there is too short for the record of a lost message; opening the queue skips it`,
    );
  }
  const keptAs = freeName(path, taken);
  const detail = `damaged places: ${damages.length}, left out`;
  steps.push({
    ...{ action: 'rewrite', file: path, detail, keptAs },
    run: () => rewriteSegment(files, folder, path, keptAs, repaired),
  });
}

/** @param isKnown - whether its messages are known, from what is before and behind it. */
function planUnreadable(
  planning: Planning,
  { path, base: from, next: to, end }: Segment,
  isKnown: boolean,
): void {
  const reason = 'the header of the segment is damaged, so nothing in it can be read';
  // If it is known what was in it, and that is nothing, all of it was acknowledged.
  if (from < to || !isKnown) lose(planning, path, { offset: 0, end, from, to, reason });
  planSetAside(planning, path, reason);
}

function planSetAside({ files, folder, taken, steps }: Planning, path: string, reason: string): void {
  const keptAs = freeName(path, taken);
  steps.push({
    ...{ action: 'set aside', file: path, detail: reason, keptAs },
    run: async () => {
      await files.rename(path, keptAs);
      await files.syncFolder(folder);
    },
  });
}

/** Lost messages are as good as acknowledged. If it is not known which ones were lost, the loss itself is reported. */
function lose({ acks, lost }: Planning, file: string, part: LostPart): void {
  const { from, to } = part;
  const messages = acks.add(from, to, UNKNOWN_BYTES); // measured when the queue is opened
  if (from >= to) lost.push({ ...corruptionOf(file, part), messages: undefined });
  else if (messages > 0) lost.push({ ...corruptionOf(file, part), messages });
}

function planCursor(
  { files, folder, name, acks, steps }: Planning,
  cursor: CursorState,
  kept: readonly Segment[],
  isChanged: boolean,
): void {
  const cursorFile = new CursorFile(files, folder, name);
  const isDamaged = cursor.damages.some(({ isTorn }) => !isTorn); // a torn end is not damage
  if (!isDamaged && !isChanged) return;
  const last = kept.at(-1);
  const segment = Math.max(last?.number ?? 0, cursor.end.segment);
  const end: LogEnd = { segment, isEnded: true, next: last?.next ?? 0 };
  const detail = isDamaged
    ? 'it is damaged: acknowledgements that cannot be read are lost, and their messages come again'
    : 'it must record which messages are lost';
  steps.push({
    ...{ action: 'write cursor', file: cursorFile.path, detail },
    run: async () => {
      await cursorFile.rewrite(acks, cursor.hint, laterEnd(cursor.end, end));
      await cursorFile.close();
    },
  });
}
