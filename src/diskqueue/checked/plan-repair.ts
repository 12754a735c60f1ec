import { freeName, type FileSystem, unlinkIfThere } from '../../log/file-system.ts';
import {
  CannotRepair,
  type LostMessages,
  type OnProgress,
  type RepairPlan,
  type RepairStep,
} from '../stored/stored-queue.ts';
import { UNKNOWN_BYTES, type AckRanges } from '../ack-ranges.ts';
import { CursorFile } from './cursor-file.ts';
import { examineSegment, type SegmentState, type Stretch } from '../../log/examine-segment.ts';
import { firstExpected, isWhole, laterEnd, type CursorState, type LogEnd } from './cursor-format.ts';
import { missingAtEnd } from './ledger.ts';
import { leftFileOf } from './left-files.ts';
import { recoverSegments, type RecoveredSegments } from '../../log/recover-segments.ts';
import { rescueHeader } from './rescue-header.ts';
import { fits, mendHeader, rewriteSegment, sealSegment } from '../../log/rewrite-segment.ts';
import { segmentFileName, type Segment } from '../../log/segment.ts';

/** What is known while a plan is made. */
interface Planning {
  readonly files: FileSystem;
  readonly folder: string;
  readonly name: string;
  /** Paths that exist. */
  readonly taken: Set<string>;
  /** What is acknowledged, and what is found to be lost. */
  readonly acks: AckRanges;
  /** Numbers of the segments whose header was found out: it says nothing of the one before. */
  readonly rescued: ReadonlySet<number>;
  readonly steps: RepairStep[];
  readonly lost: LostMessages[];
}

/**
 * What has to be done for a queue to be as a clean end leaves it. Every step is safe by itself: whenever the machine
 * stops, the queue can be opened, and repaired, as if the rest had not been planned.
 *
 * Nothing that is whole is lost: damaged segments are rewritten where they are, with their good messages in their old
 * places, and kept as they were under another name.
 */
export async function planRepair(
  files: FileSystem,
  folder: string,
  name: string,
  onProgress: OnProgress,
): Promise<RepairPlan> {
  const names = await files.list(folder);
  const cursor = await new CursorFile(files, folder, `${folder}/${name}.cursor`).load();
  const rescued = new Set<number>();
  const found = await recoverSegments(files, folder, name, firstExpected(cursor), (file, ...neighbours) => {
    rescued.add(file.number);
    return rescueHeader(files, file, ...neighbours);
  });
  const taken = new Set(names.map((file) => `${folder}/${file}`));
  const planning = { files, folder, name, taken, acks: cursor.acks, rescued, steps: [], lost: [] };
  planRemovals(planning, names, found);
  for (const { path, reason } of found.misplaced) planSetAside(planning, path, reason);
  const progress = await progressOver(files, found, onProgress);
  const ends = { prefix: cursor.acks.prefix, beyond: cursor.acks.beyond };
  const kept = await planSegments(planning, cursor, found, progress);
  const isShort = loseEnd(planning, kept, cursor.end);
  const isChanged = isShort || cursor.acks.prefix !== ends.prefix || cursor.acks.beyond !== ends.beyond;
  planCursor(planning, cursor, kept, isChanged);
  return planning;
}

async function progressOver(
  files: FileSystem,
  { segments }: RecoveredSegments,
  onProgress: OnProgress,
): Promise<(bytes: number) => void> {
  let total = 0;
  for (const { path } of segments) total += await files.size(path);
  let done = 0;
  return (bytes) => {
    done += bytes;
    onProgress(done, total);
  };
}

function planRemovals(
  { files, folder, name, steps }: Planning,
  names: readonly string[],
  found: RecoveredSegments,
): void {
  const left = names
    .filter((file) => leftFileOf(name, file) === 'unfinished')
    .map((file) => `${folder}/${file}`);
  for (const file of [...found.unborn, ...left]) {
    steps.push({
      ...{ action: 'remove', file, detail: 'it was being made when a process ended' },
      run: async () => {
        await unlinkIfThere(files, file);
        await files.syncFolder(folder);
      },
    });
  }
}

/** @returns the segments that stay, as they will be. */
async function planSegments(
  planning: Planning,
  cursor: CursorState,
  { segments }: RecoveredSegments,
  onRead: (bytes: number) => void,
): Promise<readonly Segment[]> {
  const { acks } = planning;
  const [first] = segments;
  // A damaged cursor may have known that what is not there was acknowledged.
  if (!isWhole(cursor) && first !== undefined) acks.add(acks.prefix, first.base, UNKNOWN_BYTES);
  let expected = acks.prefix;
  let before = { end: 0, next: 0 };
  const kept: Segment[] = [];
  for (const [i, found] of segments.entries()) {
    const segment = planning.rescued.has(found.number) ? following(before, found) : found;
    if (segment.base > expected) loseBefore(planning, segment, expected);
    const { end, next } = await planSegment(planning, segment, segments[i + 1], onRead);
    before = { end, next };
    expected = Math.max(expected, before.next);
    if (before.end > 0) kept.push({ ...segment, ...before });
  }
  return kept;
}

/** The header of a segment that was found out has to fit to the segment before, as that will be. */
function following({ end, next }: { end: number; next: number }, segment: Segment): Segment {
  const { header } = segment;
  if (header === undefined) return segment;
  const base = Math.max(header.baseSequence, next);
  return { ...segment, base, header: { ...header, baseSequence: base, previousEnd: end } };
}

/** @returns where its records end, and the sequence after that of the last one. */
async function planSegment(
  planning: Planning,
  segment: Segment,
  after: Segment | undefined,
  onRead: (bytes: number) => void,
): Promise<{ end: number; next: number }> {
  const { files, steps, rescued } = planning;
  const { path, header, number } = segment;
  const successor = after?.number === number + 1 && !rescued.has(number + 1) ? after : undefined;
  if (header === undefined) return planUnreadable(planning, segment, successor);
  const state = await examineSegment(files, segment, header, successor, (pieces) => {
    for (const { offset, end } of pieces) onRead(end - offset);
  });
  for (const stretch of state.stretches) loseStretch(planning, segment, stretch);
  if (state.wholeHeaders === 0 || state.stretches.length > 0) planRewrite(planning, path, state);
  else {
    if (state.wholeHeaders === 1) {
      const detail = 'one of the two copies of its header is damaged; nothing is lost';
      steps.push({ action: 'mend', file: path, detail, run: () => mendHeader(files, path, state) });
    }
    if (!state.isSealed) {
      const run = (): Promise<void> => sealSegment(files, path, state);
      steps.push({ action: 'seal', file: path, detail: describeSeal(state), run });
    }
  }
  return state;
}

function describeSeal({ size, end }: SegmentState): string {
  const torn = size - end;
  if (torn <= 0) return 'it was not ended';
  return `it was not ended; ${torn} bytes behind its last message are torn, or were never promised, and are cut off`;
}

function planRewrite({ files, folder, taken, steps }: Planning, path: string, state: SegmentState): void {
  const keptAs = freeName(path, taken);
  const unfit = state.stretches.find((stretch) => !fits(stretch));
  if (unfit !== undefined) {
    const why = `what is left at ${unfit.offset} is too short to say that a message was there`;
    throw new CannotRepair(
      `${path} cannot be repaired: bytes of it are missing, and ${why}; opening the queue steps over it`,
    );
  }
  const rescued = state.stretches.filter(({ rescued }) => rescued !== undefined).length;
  const parts = [
    ...(state.wholeHeaders === 0 ? ['its header is damaged, and is made anew from its records'] : []),
    ...(rescued > 0 ? [`messages whose header alone is damaged: ${rescued}, made whole`] : []),
    ...(state.stretches.length > rescued
      ? [`damaged places: ${state.stretches.length - rescued}, left out`]
      : []),
  ];
  steps.push({
    ...{ action: 'rewrite', file: path, detail: parts.join('; '), keptAs },
    run: () => rewriteSegment(files, folder, path, keptAs, state),
  });
}

/** Nothing in it can be read, whatever one tries. */
function planUnreadable(
  planning: Planning,
  segment: Segment,
  successor: Segment | undefined,
): { end: number; next: number } {
  const { path, base, next, end } = segment;
  const reason = 'the header of the segment is damaged, and there is no record in it that belongs there';
  // If the next one says that nothing was in it that anybody waits for, nothing is lost.
  if (base < next || successor === undefined) {
    lose(planning, { file: path, offset: 0, bytes: end, reason }, base, next);
  }
  planSetAside(planning, path, reason);
  return { end: 0, next };
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

function loseStretch(planning: Planning, { path }: Segment, stretch: Stretch): void {
  const { offset, end, from, to, reason, rescued } = stretch;
  if (rescued !== undefined) return;
  lose(planning, { file: path, offset, bytes: end - offset, reason }, from, to);
}

function loseBefore(planning: Planning, { path, base }: Segment, from: number): void {
  const reason = 'the messages before this segment are missing';
  lose(planning, { file: path, offset: 0, bytes: 0, reason }, from, base);
}

/** @returns whether the cursor has to know that something is missing at the end. */
function loseEnd(planning: Planning, kept: readonly Segment[], end: LogEnd): boolean {
  const missing = missingAtEnd(kept, end, planning.acks);
  if (missing === undefined) return false;
  const { offset, from, to, reason } = missing;
  const file = `${planning.folder}/${segmentFileName(planning.name, end.segment)}`;
  lose(planning, { file, offset, bytes: 0, reason }, from, to);
  return true;
}

/** What is lost is as good as acknowledged: nobody waits for it. Where nobody can tell what it was, that is told of. */
function lose(
  { acks, lost }: Planning,
  where: { file: string; offset: number; bytes: number; reason: string },
  from: number,
  to: number,
): void {
  if (from >= to) lost.push({ ...where, messages: undefined });
  const messages = acks.add(from, to, UNKNOWN_BYTES); // whoever opens the queue next finds out
  if (messages > 0) lost.push({ ...where, firstSequence: from, lastSequence: to - 1, messages });
}

function planCursor(
  { files, folder, name, acks, steps }: Planning,
  cursor: CursorState,
  kept: readonly Segment[],
  isChanged: boolean,
): void {
  const file = `${folder}/${name}.cursor`;
  if (!isDamaged(cursor) && !isChanged) return;
  const last = kept.at(-1);
  const segment = Math.max(last?.number ?? 0, cursor.end.segment);
  const end: LogEnd = { segment, isEnded: true, next: last?.next ?? 0 };
  const detail = isDamaged(cursor)
    ? 'it is damaged: acknowledgements that cannot be read are lost, and their messages come again'
    : 'it has to know which messages are lost, or gone';
  steps.push({
    ...{ action: 'write cursor', file, detail },
    run: async () => {
      const anew = new CursorFile(files, folder, file);
      await anew.rewrite(acks, cursor.hint, laterEnd(cursor.end, end));
      await anew.close();
    },
  });
}

/** A torn end is no damage. */
function isDamaged({ damages }: CursorState): boolean {
  return damages.some(({ isTorn }) => !isTorn);
}
