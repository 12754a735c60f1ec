import type { File } from './file-system.ts';
import {
  footerOf,
  decodeFooter,
  decodeRecordHeader,
  FOOTER_BYTES,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from './segment-format.ts';
import { SegmentScan, type DamagePiece, type SegmentPiece } from './segment-reader.ts';

/*
 * Where a segment ends that nobody has sealed.
 *
 *      ┌──────────┬───┬───┬───┐
 *      │ synced   │ a │ b │ c │     Written together, and never synced: after a power cut any of their sectors may be
 *      └──────────┴───┴───┴───┘     zeros, or the file may end before. It ends before the first one that is so.
 *                 ▲
 *                 says that everything before it was synced when it was written
 *
 * Damage before that, or damage that no power cut leaves, is a loss: it stays where it is, and is reported.
 */

/** What is readable of a segment. */
export interface FoundEnd {
  /** In bytes, and the sequence that the next message would have there. */
  readonly end: number;
  readonly next: number;
  /** Before the end. */
  readonly damages: readonly DamagePiece[];
}

/** Reads the whole segment. */
export async function findEnd(file: File, size: number, header: SegmentHeader): Promise<FoundEnd> {
  const pieces = new SegmentScan(file, header, SEGMENT_HEADER_BYTES, header.baseSequence);
  const damages: DamagePiece[] = [];
  let end = SEGMENT_HEADER_BYTES;
  let next = header.baseSequence;
  let syncedEnd = end;
  for await (const piece of untilFooter(pieces, size)) {
    end = piece.kind === 'footer' ? piece.offset : piece.end;
    next = sequenceAfter(piece);
    if (piece.kind === 'damage') damages.push(piece);
    if (saysSynced(piece)) syncedEnd = piece.offset;
  }
  for (const [i, damage] of damages.entries()) {
    if (damage.offset < syncedEnd || !(await isCrashRemains(file, size, header, damage))) continue;
    return { end: damage.offset, next: damage.from, damages: damages.slice(0, i) };
  }
  return { end, next, damages };
}

async function* untilFooter(scan: SegmentScan, size: number): AsyncGenerator<SegmentPiece> {
  for (let pieces = await scan.next(size); pieces.length > 0; pieces = await scan.next(size)) {
    for (const piece of pieces) {
      yield piece;
      if (piece.kind === 'footer') return;
    }
  }
}

function sequenceAfter(piece: SegmentPiece): number {
  if (piece.kind === 'message') return piece.sequence + 1;
  return piece.kind === 'footer' ? piece.sequence : (piece.to ?? piece.from);
}

function saysSynced(piece: SegmentPiece): boolean {
  if (piece.kind === 'lost') return true; // a repair was there
  return piece.kind === 'footer' || (piece.kind === 'message' && piece.isSyncedBefore);
}

/** Something that was being written; or the footer, which opening a queue writes anew. */
async function isCrashRemains(
  file: File,
  size: number,
  header: SegmentHeader,
  damage: DamagePiece,
): Promise<boolean> {
  if (damage.end === size) {
    if (await isCutShort(file, size, header, damage.offset)) return true;
    if (await isFooter(file, size, header, damage)) return true;
  }
  return (await findZeroSector(file, damage.offset, damage.end, size)) !== undefined;
}

/** A record that begins there and would end after the file does. */
async function isCutShort(
  file: File,
  size: number,
  { salt }: SegmentHeader,
  offset: number,
): Promise<boolean> {
  const bytes = Buffer.alloc(RECORD_HEADER_BYTES);
  if ((await file.read(bytes, offset)) < bytes.length) return true;
  const record = decodeRecordHeader(bytes, 0, salt);
  return record !== undefined && offset + RECORD_HEADER_BYTES + record.length > size;
}

/** A footer that is damaged itself: no message was in its place. */
async function isFooter(
  file: File,
  size: number,
  { baseSequence }: SegmentHeader,
  { offset, from, to }: DamagePiece,
): Promise<boolean> {
  if (size - offset !== FOOTER_BYTES) return false;
  const payload = Buffer.alloc(FOOTER_BYTES - RECORD_HEADER_BYTES);
  await file.read(payload, offset + RECORD_HEADER_BYTES);
  const { messages, payloadBytes } = decodeFooter(payload);
  const wanted = footerOf(baseSequence, offset, from);
  return from === to || (messages === wanted.messages && payloadBytes === wanted.payloadBytes);
}

/** The disk writes this much at once, or not at all. In bytes. */
const SECTOR_BYTES = 512;
/** Read at once. */
const BLOCK_BYTES = 128 * SECTOR_BYTES;

/**
 * Finds where something that was written may not have reached the disk: a sector of a file that was not written before
 * is zeros then (etcd looks for the same).
 *
 * @param from - where a write began; @param to - its end, of which the whole sector is looked at.
 * @returns where the sector, or the part of it after `from`, begins.
 */
export async function findZeroSector(
  file: File,
  from: number,
  to: number,
  size: number,
): Promise<number | undefined> {
  const end = Math.min(roundUp(to), size);
  for (let at = from; at < end; at = nextMultiple(at, BLOCK_BYTES)) {
    const bytes = Buffer.alloc(Math.min(nextMultiple(at, BLOCK_BYTES), end) - at);
    await file.read(bytes, at);
    const found = zeroSectorIn(bytes, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** As `findZeroSector`, in bytes that begin at `offset` in a file. */
export function zeroSectorIn(bytes: Buffer, offset: number): number | undefined {
  for (let at = offset; at < offset + bytes.length; at = nextMultiple(at, SECTOR_BYTES)) {
    const sector = bytes.subarray(at - offset, nextMultiple(at, SECTOR_BYTES) - offset);
    if (sector.every((byte) => byte === 0)) return at;
  }
  return undefined;
}

function roundUp(offset: number): number {
  return Math.ceil(offset / SECTOR_BYTES) * SECTOR_BYTES;
}

/** The first one after `offset`. */
function nextMultiple(offset: number, of: number): number {
  return (Math.floor(offset / of) + 1) * of;
}
