import { type File, type FileSystem, withFile, setAside, unlinkIfThere } from './file-system.ts';
import { findEnd } from './find-end.ts';
import {
  readFooter,
  decodeSegmentHeader,
  FOOTER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
  encodedFooter,
} from './segment-format.ts';
import type { DamagePiece } from './segment-reader.ts';
import { FIRST_SEQUENCE, parseSegmentFileName, type Segment, type SegmentFile } from './segment.ts';

/*
 * What the files of a queue hold, found out when it is opened.
 *
 * The end of a segment is known from the header of the next one, or from its own footer; only where neither is there,
 * in the last one after a crash, every record is read. So opening costs one segment at most, however many there are.
 */

/** Damage in a segment that had to be read. */
export interface FoundDamage {
  readonly segment: Segment;
  readonly piece: DamagePiece;
}

export interface RecoveredSegments {
  /** Ascending. */
  readonly segments: readonly Segment[];
  readonly damages: readonly FoundDamage[];
  /** Whether the last one has a footer. */
  readonly isLastSealed: boolean;
  /** Files that were being made when the process ended: they hold nothing. */
  readonly unborn: readonly string[];
  /** Files that are others than their names say: nothing of them is delivered. */
  readonly misplaced: readonly MisplacedFile[];
  /** The number of the last file that is in its place, also of one that holds nothing. */
  readonly lastNumber: number;
}

/** Finds the header of a segment that has lost both copies of it; undefined if that cannot be. */
export type RescueHeader = (
  file: SegmentFile,
  previous: Segment | undefined,
  next: SegmentFile | undefined,
) => Promise<SegmentHeader | undefined>;

/**
 * Reads the headers, and what else it takes. Changes nothing.
 *
 * @param expected - the sequence of the first message that is waited for; undefined if that is not known.
 * @param rescueHeader - for a repair; opening a queue does without such segments.
 */
export async function recoverSegments(
  files: FileSystem,
  folder: string,
  queue: string,
  expected: number | undefined,
  rescueHeader: RescueHeader = () => Promise.resolve(undefined),
): Promise<RecoveredSegments> {
  const all = await listSegments(files, folder, queue);
  const unborn = all.filter(isUnborn);
  const { inPlace, misplaced } = findMisplaced(all.filter((file) => !isUnborn(file)));
  const segments: Segment[] = [];
  const damages: FoundDamage[] = [];
  let isLastSealed = true;
  for (const [i, file] of inPlace.entries()) {
    const previous = segments.at(-1);
    const next = inPlace[i + 1];
    const header = file.header ?? (await rescueHeader(file, previous, next));
    const found = await recoverSegment(files, { ...file, header }, next, previous?.next ?? expected);
    segments.push(found.segment);
    damages.push(...found.damages.map((piece) => ({ segment: found.segment, piece })));
    isLastSealed = found.isSealed;
  }
  return {
    segments,
    damages,
    isLastSealed,
    unborn: unborn.map(({ path }) => path),
    misplaced,
    lastNumber: Math.max(unborn.at(-1)?.number ?? 0, inPlace.at(-1)?.number ?? 0),
  };
}

/** Every file of a queue that is named as a segment, ascending. */
export async function listSegments(files: FileSystem, folder: string, queue: string): Promise<SegmentFile[]> {
  const found: SegmentFile[] = [];
  for (const name of await files.list(folder)) {
    const parsed = parseSegmentFileName(name);
    if (parsed?.queue !== queue) continue;
    const path = `${folder}/${name}`;
    found.push({ path, number: parsed.number, ...(await readHeader(files, path)) });
  }
  return found.sort((a, b) => a.number - b.number);
}

async function readHeader(
  files: FileSystem,
  path: string,
): Promise<Pick<SegmentFile, 'size' | 'header' | 'sealed'>> {
  return withFile(files, path, 'read', async (file) => {
    const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES);
    const read = await file.read(bytes, 0);
    const header = decodeSegmentHeader(bytes.subarray(0, read));
    const size = await files.size(path);
    return { size, header, sealed: header && (await sealedEnd(file, size, header)) };
  });
}

/** A header is on the disk before anything follows it: a file without one, and with nothing else, was being made. */
function isUnborn({ size, header }: SegmentFile): boolean {
  return header === undefined && size <= SEGMENT_HEADER_BYTES;
}

interface RecoveredSegment {
  readonly segment: Segment;
  readonly damages: readonly DamagePiece[];
  /** It is known where it ends, whatever may come after. */
  readonly isSealed: boolean;
}

async function recoverSegment(
  files: FileSystem,
  file: SegmentFile,
  next: SegmentFile | undefined,
  expected: number | undefined,
): Promise<RecoveredSegment> {
  const { header } = file;
  if (header === undefined) return unreadable(file, next, expected);
  const successor = next?.number === file.number + 1 ? next.header : undefined;
  if (successor !== undefined) {
    const end = Math.max(Math.min(successor.previousEnd, file.size), SEGMENT_HEADER_BYTES);
    const found = whole(file, header, end, successor.baseSequence);
    return { ...found, segment: { ...found.segment, isCut: file.size < successor.previousEnd } };
  }
  if (file.sealed !== undefined) return whole(file, header, file.sealed.end, file.sealed.next);
  return withFile(files, file.path, 'read', (handle) => unsealed(handle, file, header));
}

function whole(file: SegmentFile, header: SegmentHeader, end: number, next: number): RecoveredSegment {
  return { segment: segmentOf(file, header, end, next), damages: [], isSealed: true };
}

function segmentOf({ path, number }: SegmentFile, header: SegmentHeader, end: number, next: number): Segment {
  return { path, number, header, base: header.baseSequence, end, next, knownDamage: new Set() };
}

async function unsealed(handle: File, file: SegmentFile, header: SegmentHeader): Promise<RecoveredSegment> {
  const { end, next, damages } = await findEnd(handle, file.size, header);
  return { segment: segmentOf(file, header, end, next), damages, isSealed: false };
}

/** All of it is lost: how many messages that are, its neighbours may know. */
function unreadable(
  { path, number, size }: SegmentFile,
  next: SegmentFile | undefined,
  expected: number | undefined,
): RecoveredSegment {
  const base = expected ?? next?.header?.baseSequence ?? FIRST_SEQUENCE;
  const after = next?.number === number + 1 ? (next.header?.baseSequence ?? base) : base;
  const segment: Segment = {
    ...{ path, number, header: undefined, base, end: size, next: Math.max(after, base) },
    knownDamage: new Set(),
  };
  const reason = 'the header of the segment is damaged';
  const piece: DamagePiece = { kind: 'damage', offset: 0, end: size, from: base, to: segment.next, reason };
  return { segment, damages: [piece], isSealed: true };
}

/** The footer is the last thing in a sealed segment. */
async function sealedEnd(file: File, size: number, header: SegmentHeader): Promise<SegmentFile['sealed']> {
  const end = size - FOOTER_BYTES;
  const footer = await readFooter(file, header, end);
  if (footer === undefined) return undefined;
  const isTrue = footer.sequence === header.baseSequence + footer.messages;
  return isTrue ? { end, next: footer.sequence } : undefined;
}

/*
 * Somebody has copied a segment, or given it another name, or has put one there from a backup. What is in such a file
 * is in another one, too, or was: it must not come twice.
 *
 *      file      5          6          7          8
 *      header    5          6          5          8         its name is wrong
 *      messages  40 ─ 49    50 ─ 59    40 ─ 49    70 ─ 79
 *
 *      header    5          6          7          8         its name is right, its messages are not
 *      messages  40 ─ 49    50 ─ 59    10 ─ 19    70 ─ 79
 */

/** A file that has the name of another segment. */
export interface MisplacedFile {
  readonly path: string;
  readonly size: number;
  readonly reason: string;
}

const WRONG_NUMBER = 'its name and its header have different numbers';
const WRONG_ORDER = 'its messages are not those that belong between its neighbours';

/** @param files - ascending. Those of which the header is damaged are given the benefit of the doubt. */
export function findMisplaced(files: readonly SegmentFile[]): {
  readonly inPlace: readonly SegmentFile[];
  readonly misplaced: readonly MisplacedFile[];
} {
  const hasRightName = ({ header, number }: SegmentFile): boolean => (header?.number ?? number) === number;
  const named = files.filter(hasRightName);
  const inOrder = mostInOrder(named);
  const inPlace = named.filter((file) => file.header === undefined || inOrder.has(file));
  const misplaced = files
    .filter((file) => !inPlace.includes(file))
    .map((file) => ({
      ...{ path: file.path, size: file.size },
      reason: hasRightName(file) ? WRONG_ORDER : WRONG_NUMBER,
    }));
  return { inPlace, misplaced };
}

/** Files of which each begins where the one before ends, or later. */
interface Chain {
  readonly file: SegmentFile;
  readonly base: number;
  readonly rest: Chain | undefined;
}

/** The longest chain: a file that contradicts most others is the wrong one. Of two that contradict each other, the later. */
function mostInOrder(files: readonly SegmentFile[]): Set<SegmentFile> {
  const chains: Chain[] = []; // of every length the one that begins last; a longer one never begins later
  for (let i = files.length - 1; i >= 0; i--) {
    const file = files[i] as SegmentFile;
    if (file.header === undefined) continue;
    const base = file.header.baseSequence;
    const next = file.sealed?.next ?? base;
    let length = chains.length;
    while (length > 0 && (chains[length - 1] as Chain).base < next) length--;
    if (base >= (chains[length]?.base ?? base)) chains[length] = { file, base, rest: chains[length - 1] };
  }
  const inOrder = new Set<SegmentFile>();
  for (let chain = chains.at(-1); chain !== undefined; chain = chain.rest) inOrder.add(chain.file);
  return inOrder;
}

/**
 * Puts in order what a crash has left: removes files that were being made, and sets those aside that are in a place of
 * others; brings to the disk what was only with the host, cuts off what was not finished, and seals the last segment, so that it need not be read again. Where there is
 * damage, all stays as it is.
 */
export async function tidySegments(
  files: FileSystem,
  folder: string,
  { segments, damages, isLastSealed, unborn, misplaced }: RecoveredSegments,
): Promise<void> {
  for (const path of unborn) await unlinkIfThere(files, path);
  for (const { path } of misplaced) await setAside(files, folder, path);
  if (unborn.length + misplaced.length > 0) await files.syncFolder(folder);
  const last = segments.at(-1);
  if (last?.header === undefined || isLastSealed) return;
  const isWhole = damages.every(({ segment }) => segment !== last);
  await withFile(files, last.path, 'write', async (file) => {
    if (isWhole) await file.truncate(last.end);
    await file.sync();
    if (isWhole) await seal(file, last);
  });
}

/** Where there is no room for a footer, it is done without. */
async function seal(file: File, { header, end, next }: Segment): Promise<void> {
  if (header === undefined) return;
  try {
    await file.write(encodedFooter(header, end, next), end);
    await file.sync();
  } catch {
    await file.truncate(end).catch(() => undefined);
  }
}
