import type { File } from './file-system.ts';
import {
  decodeRecordHeader,
  encodeFooter,
  FOOTER,
  FOOTER_BYTES,
  isPayloadIntact,
  readUInt64,
  RECORD_HEADER_BYTES,
  type RecordHeader,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from './segment.ts';
import { SegmentScan, type DamagePiece, type SegmentPiece } from './segment-reader.ts';

/*
 * Where a segment ends. A sealed one has a footer there. In any other one every record is read:
 *
 *      ┌──────────┬───┬───┬───┐
 *      │ synced   │ a │ b │ c │     Written together, and never synced: after a power cut any of their sectors may be
 *      └──────────┴───┴───┴───┘     zeros, or the file may end before. The segment ends before the first such sector.
 *                 ▲
 *                 its flag: everything before it was synced when it was written
 *
 * Damage before that, or damage that a power cut does not leave, is a loss: it stays where it is, and is reported.
 */

export interface FoundFooter {
  /** The sequence after that of the last record. */
  readonly sequence: number;
  readonly records: number;
  readonly bytes: Buffer;
}

/** @returns undefined if there is no intact footer at `offset`. Whether its content is right is another question. */
export async function readFooter(
  file: File,
  { salt }: SegmentHeader,
  offset: number,
): Promise<FoundFooter | undefined> {
  const bytes = Buffer.alloc(FOOTER_BYTES);
  if (offset < SEGMENT_HEADER_BYTES || (await file.read(bytes, offset)) < FOOTER_BYTES) return undefined;
  const record = decodeRecordHeader(bytes, 0, salt);
  const payload = bytes.subarray(RECORD_HEADER_BYTES);
  if (record?.type !== FOOTER) return undefined;
  if (!isPayloadIntact(payload, record)) return undefined;
  return { sequence: record.sequence, records: readUInt64(payload, 0), bytes };
}

/** The readable part of a segment. */
export interface FoundEnd {
  /** In bytes; and the sequence that a record there would have. */
  readonly end: number;
  readonly next: number;
  /** Damage before the end. */
  readonly damages: readonly DamagePiece[];
}

/** Finds the end of a segment that may have no footer. Reads all of it. */
export async function findEnd(file: File, size: number, header: SegmentHeader): Promise<FoundEnd> {
  const scan = new SegmentScan(file, header, SEGMENT_HEADER_BYTES, header.baseSequence);
  const damages: DamagePiece[] = [];
  let end = SEGMENT_HEADER_BYTES;
  let next = header.baseSequence;
  let syncedEnd = end;
  let isSealed = false;
  for (let pieces = await scan.next(size); pieces.length > 0 && !isSealed; pieces = await scan.next(size)) {
    for (const piece of pieces) {
      isSealed = piece.kind === 'footer';
      end = isSealed ? piece.offset : piece.end;
      next = sequenceAfter(piece);
      if (piece.kind === 'damage') damages.push(piece);
      if (provesSync(piece)) syncedEnd = piece.offset;
      if (isSealed) break;
    }
  }
  for (const [i, damage] of damages.entries()) {
    if (damage.offset < syncedEnd || !(await isCrashRemains(file, size, header, damage))) continue;
    return { end: damage.offset, next: damage.from, damages: damages.slice(0, i) };
  }
  const last = damages.at(-1);
  if (last === undefined || last.to !== undefined) return { end, next, damages };
  end = await zerosAtEnd(file, last.offset, size); // they were there to be written over
  return { end, next, damages: [...damages.slice(0, -1), { ...last, end }] };
}

function sequenceAfter(piece: SegmentPiece): number {
  if (piece.kind === 'record') return piece.sequence + 1;
  return piece.to ?? piece.from;
}

/** A footer is written after a sync, and so is the record of a repair. */
function provesSync(piece: SegmentPiece): boolean {
  if (piece.kind === 'record') return piece.isSyncedBefore;
  return piece.kind !== 'damage';
}

/** Whether a write that was interrupted may have left the damage; or it is the footer, which is written again. */
async function isCrashRemains(
  file: File,
  size: number,
  header: SegmentHeader,
  damage: DamagePiece,
): Promise<boolean> {
  const { offset } = damage;
  const record = await recordAt(file, header, offset);
  if (damage.end === size) {
    if (record !== undefined && offset + RECORD_HEADER_BYTES + record.length > size) return true;
    if ((await zerosAtEnd(file, offset, size)) < offset + RECORD_HEADER_BYTES) return true;
    if (await isFooter(file, size, header, damage)) return true;
  }
  // If the header of a record is damaged, its end is not known, and zeros may be behind it that were there to be written over.
  const end = record === undefined ? offset + RECORD_HEADER_BYTES : damage.end;
  return hasZeroSector(file, offset, end, size);
}

async function recordAt(
  file: File,
  { salt }: SegmentHeader,
  offset: number,
): Promise<RecordHeader | undefined> {
  const bytes = Buffer.alloc(RECORD_HEADER_BYTES);
  await file.read(bytes, offset);
  return decodeRecordHeader(bytes, 0, salt);
}

/** Whether the damage is a footer, and not a record of the same length. */
async function isFooter(
  file: File,
  size: number,
  header: SegmentHeader,
  { offset, from, to }: DamagePiece,
): Promise<boolean> {
  if (size - offset !== FOOTER_BYTES) return false;
  if (from === to) return true;
  const payload = Buffer.alloc(FOOTER_BYTES - RECORD_HEADER_BYTES);
  await file.read(payload, offset + RECORD_HEADER_BYTES);
  return payload.equals(encodeFooter(header, offset, from).subarray(RECORD_HEADER_BYTES));
}

/** A disk writes all of a sector, or nothing. In bytes. */
const SECTOR_BYTES = 512;
const BLOCK_BYTES = 128 * SECTOR_BYTES;

/**
 * Whether a write may have a sector that has not reached the disk: it is zeros if it was not written before (etcd does the same).
 *
 * @param from - where the write begins; @param to - its end, of which the whole sector is read.
 */
async function hasZeroSector(file: File, from: number, to: number, size: number): Promise<boolean> {
  const end = Math.min(Math.ceil(to / SECTOR_BYTES) * SECTOR_BYTES, size);
  for (let at = from; at < end; at = nextMultiple(at, BLOCK_BYTES)) {
    const bytes = Buffer.alloc(Math.min(nextMultiple(at, BLOCK_BYTES), end) - at);
    await file.read(bytes, at);
    if (hasZeroSectorIn(bytes, at)) return true;
  }
  return false;
}

/** Returns where the zeros at the end of a file begin, and `from` if there is nothing else behind it. */
export async function zerosAtEnd(file: File, from: number, size: number): Promise<number> {
  for (let end = size; end > from;) {
    const start = Math.max(end - BLOCK_BYTES, from);
    const bytes = Buffer.alloc(end - start);
    await file.read(bytes, start);
    const last = bytes.findLastIndex((byte) => byte !== 0);
    if (last >= 0) return start + last + 1;
    end = start;
  }
  return Math.min(from, size);
}

/** Whether a sector, or the part of one that is there, is zeros. @param offset - of the bytes in their file. */
export function hasZeroSectorIn(bytes: Buffer, offset: number): boolean {
  for (let at = offset; at < offset + bytes.length; at = nextMultiple(at, SECTOR_BYTES)) {
    const sector = bytes.subarray(at - offset, nextMultiple(at, SECTOR_BYTES) - offset);
    if (sector.every((byte) => byte === 0)) return true;
  }
  return false;
}

/** The first multiple after `offset`. */
function nextMultiple(offset: number, of: number): number {
  return (Math.floor(offset / of) + 1) * of;
}
