import { setAside, unlinkIfThere, withFile, type File, type FileSystem } from './file-system.ts';
import { findEnd, readFooter } from './find-end.ts';
import {
  corruptionOf,
  decodeRecordHeader,
  decodeSegmentHeader,
  encodeFooter,
  FOOTER,
  FOOTER_BYTES,
  LOST,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type CorruptionEvent,
  type SegmentHeader,
  FIRST_SEQUENCE,
  parseSegmentFileName,
  type Segment,
} from './segment.ts';
import type { DamagePiece } from './segment-reader.ts';

/*
 * What the files of a log hold when it is opened.
 *
 * The end of a segment is known from the header of the next one, or from its own footer. Only where neither is there, in
 * the last one after a crash, every record is read. So opening reads one segment at most, however many there are.
 */

/** Damage in a segment of which every record was read. */
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
  /** Paths of files whose creation was interrupted: they hold nothing. */
  readonly unfinished: readonly string[];
  /** Files that have the name of another segment: nothing of them is read. */
  readonly misplaced: readonly CorruptionEvent[];
  /** Number of the last file that is in its place, also of one that holds nothing. */
  readonly lastNumber: number;
}

/** A file whose records have not been read yet. */
interface SegmentFile {
  readonly path: string;
  readonly number: number;
  readonly size: number;
  readonly header: SegmentHeader | undefined;
  /** Type of its first record; undefined if it has none, a damaged one, or one that is in every log. */
  readonly firstType: number | undefined;
  /** From a valid footer: where the records end, in bytes, and the sequence after that of the last one. */
  readonly sealed: { readonly end: number; readonly next: number } | undefined;
}

/**
 * Reads the headers, and one whole segment if need be. Changes nothing.
 *
 * @param type - of the records.
 * @param expected - sequence of the first record that is still needed; undefined if it is not known.
 * @throws ForeignLog - a file begins with a record of another type.
 */
export async function recoverSegments(
  files: FileSystem,
  folder: string,
  log: string,
  type: number,
  expected: number | undefined,
): Promise<RecoveredSegments> {
  const all = await listSegments(files, folder, log);
  const unfinished = all.filter(isUnfinished);
  const { inPlace, misplaced } = findMisplaced(all.filter((file) => !isUnfinished(file)));
  const other = inPlace.find(({ firstType = type }) => firstType !== type)?.firstType;
  if (other !== undefined)
    throw new ForeignLog(
      `the files of '${log}' are another program's: records of type ${other}, not ${type}`,
    );
  const segments: Segment[] = [];
  const damages: FoundDamage[] = [];
  let isLastSealed = true;
  for (const [i, file] of inPlace.entries()) {
    const found = await recoverSegment(files, file, inPlace[i + 1], segments.at(-1)?.next ?? expected);
    const { segment } = found;
    segments.push(segment);
    for (const piece of found.damages) damages.push({ segment, piece }); // maybe more than a call has arguments
    isLastSealed = found.isSealed;
  }
  return {
    segments,
    damages,
    isLastSealed,
    unfinished: unfinished.map(({ path }) => path),
    misplaced,
    lastNumber: Math.max(unfinished.at(-1)?.number ?? 0, inPlace.at(-1)?.number ?? 0),
  };
}

/** The files are those of another owner, who uses the same folder and name. */
export class ForeignLog extends Error {}

/** Returns every file of a log that has the name of a segment, ascending. */
export async function listSegments(files: FileSystem, folder: string, log: string): Promise<SegmentFile[]> {
  const found: SegmentFile[] = [];
  for (const name of await files.list(folder)) {
    const parsed = parseSegmentFileName(name);
    if (parsed?.log !== log) continue;
    const path = `${folder}/${name}`;
    found.push({ path, number: parsed.number, ...(await readHeader(files, path)) });
  }
  return found.sort((a, b) => a.number - b.number);
}

/**
 * Finishes what a crash has interrupted: removes files that hold nothing, sets misplaced ones aside, makes the last segment
 * durable, truncates what was not finished, and seals it, so that it need not be read again. A damaged segment stays as
 * it is.
 */
export async function tidySegments(
  files: FileSystem,
  folder: string,
  { segments, damages, isLastSealed, unfinished, misplaced }: RecoveredSegments,
): Promise<void> {
  for (const path of unfinished) await unlinkIfThere(files, path);
  for (const { file } of misplaced) await setAside(files, folder, file);
  if (unfinished.length + misplaced.length > 0) await files.syncFolder(folder);
  const last = segments.at(-1);
  if (last?.header === undefined || isLastSealed) return;
  const isWhole = damages.every(({ segment }) => segment !== last);
  const { path, header, end, next } = last;
  await withFile(files, path, 'write', async (file) => {
    if (isWhole) await file.truncate(end);
    await file.sync();
    if (isWhole) await seal(file, header, end, next);
  });
}

/** If there is no space for a footer, there is none. */
async function seal(file: File, header: SegmentHeader, end: number, next: number): Promise<void> {
  try {
    await file.write(encodeFooter(header, end, next), end);
    await file.sync();
  } catch {
    await file.truncate(end).catch(() => undefined);
  }
}

async function readHeader(
  files: FileSystem,
  path: string,
): Promise<Pick<SegmentFile, 'size' | 'header' | 'firstType' | 'sealed'>> {
  return withFile(files, path, 'read', async (file) => {
    const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES);
    const read = await file.read(bytes, 0);
    const header = decodeSegmentHeader(bytes.subarray(0, read));
    const size = await files.size(path);
    if (header === undefined) return { size, header, firstType: undefined, sealed: undefined };
    const first = decodeRecordHeader(bytes.subarray(0, read), SEGMENT_HEADER_BYTES, header.salt);
    const firstType = first?.type === FOOTER || first?.type === LOST ? undefined : first?.type;
    return { size, header, firstType, sealed: await sealedEnd(file, size, header) };
  });
}

/** A header is on the disk before anything follows it: the creation of a shorter file without one was interrupted. */
function isUnfinished({ size, header }: SegmentFile): boolean {
  return header === undefined && size <= SEGMENT_HEADER_BYTES;
}

interface RecoveredSegment {
  readonly segment: Segment;
  readonly damages: readonly DamagePiece[];
  /** Whether its end is known from a footer, or from the next segment. */
  readonly isSealed: boolean;
}

async function recoverSegment(
  files: FileSystem,
  file: SegmentFile,
  next: SegmentFile | undefined,
  expected: number | undefined,
): Promise<RecoveredSegment> {
  const { path, number, header, sealed, size } = file;
  if (header === undefined) return unreadable(file, next, expected);
  const base = header.baseSequence;
  const successor = next?.number === number + 1 ? next.header : undefined;
  if (successor !== undefined) {
    const end = Math.max(Math.min(successor.previousEnd, size), SEGMENT_HEADER_BYTES);
    const segment = { path, number, header, base, end, next: successor.baseSequence };
    return { segment, damages: [], isSealed: true };
  }
  if (sealed !== undefined) {
    return { segment: { path, number, header, base, ...sealed }, damages: [], isSealed: true };
  }
  const { damages, ...found } = await withFile(files, path, 'read', (handle) =>
    findEnd(handle, size, header),
  );
  return { segment: { path, number, header, base, ...found }, damages, isSealed: false };
}

/** All of it is lost. How many records that are may follow from the segments beside it. */
function unreadable(
  { path, number, size }: SegmentFile,
  following: SegmentFile | undefined,
  expected: number | undefined,
): RecoveredSegment {
  const base = expected ?? following?.header?.baseSequence ?? FIRST_SEQUENCE;
  const after = following?.number === number + 1 ? (following.header?.baseSequence ?? base) : base;
  const next = Math.max(after, base);
  const reason = 'the header of the segment is damaged';
  return {
    segment: { path, number, header: undefined, base, end: size, next },
    damages: [{ kind: 'damage', offset: 0, end: size, from: base, to: next, reason }],
    isSealed: true,
  };
}

/** The footer is the last thing in a sealed segment. */
async function sealedEnd(file: File, size: number, header: SegmentHeader): Promise<SegmentFile['sealed']> {
  const end = size - FOOTER_BYTES;
  const footer = await readFooter(file, header, end);
  if (footer === undefined) return undefined;
  const isRight = footer.sequence === header.baseSequence + footer.records;
  return isRight ? { end, next: footer.sequence } : undefined;
}

const WRONG_NUMBER = 'its name and its header have different numbers';
const WRONG_ORDER = 'its records do not fit between those of its neighbours';

/**
 * Finds copies, renamed files and files from a backup: their records are in another file, or were, and must not come
 * twice.
 *
 *      file      5          6          7          8
 *      header    5          6          5          8         the name of the third file is wrong
 *      records   40 ─ 49    50 ─ 59    40 ─ 49    70 ─ 79
 *
 *      header    5          6          7          8         its name is right, its records are not
 *      records   40 ─ 49    50 ─ 59    10 ─ 19    70 ─ 79
 *
 * A file with a damaged header is assumed to be in its place.
 *
 * @param files - ascending.
 */
function findMisplaced(files: readonly SegmentFile[]): {
  readonly inPlace: readonly SegmentFile[];
  readonly misplaced: readonly CorruptionEvent[];
} {
  const hasRightName = ({ header, number }: SegmentFile): boolean => (header?.number ?? number) === number;
  const inOrder = longestOrder(files.filter(hasRightName));
  const isInPlace = (file: SegmentFile): boolean => file.header === undefined || inOrder.has(file);
  const misplaced = files
    .filter((file) => !isInPlace(file))
    .map((file) => {
      const reason = hasRightName(file) ? WRONG_ORDER : WRONG_NUMBER;
      return corruptionOf(file.path, { offset: 0, end: file.size, reason });
    });
  return { inPlace: files.filter(isInPlace), misplaced };
}

/** Files of which each begins where the previous one ends, or later. */
interface Chain {
  readonly file: SegmentFile;
  readonly base: number;
  readonly rest: Chain | undefined;
}

/** The longest chain: a file that contradicts most others is the wrong one. Of two that contradict each other, the later. */
function longestOrder(files: readonly SegmentFile[]): Set<SegmentFile> {
  const chains: Chain[] = []; // of each length, the one that begins last; a longer one never begins later
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
