import * as zlib from 'node:zlib';

/*
 * A segment is one file of a log. Its bytes, of which all numbers are little-endian:
 *
 *      ┌────────────────┐ 0
 *      │ header, 2 × 64 │   twice: magic 8 · version 2 · flags 2 · salt 4 · number 8 · base sequence 8 ·
 *      │                │   end of the previous segment 8 · created 8 · zero 12 · CRC of all that 4
 *      ├────────────────┤ 128
 *      │ record         │   marker 2 · type 1 · flags 1 · length 4 · sequence 8 · CRC of the payload 4 ·
 *      │   header, 24   │   CRC of the header 4
 *      │   payload      │
 *      ├────────────────┤
 *      │ record …       │
 *      ├────────────────┤
 *      │ footer         │   a record of type 2, when the segment is sealed; its payload: records 8 · their bytes 8
 *      └────────────────┘
 *
 *      type      1            DATA: messages of a disk queue
 *                2, 3         the log's own: the footer, and records that are lost
 *                16 to 255    records of another owner, which all have one of these types
 *
 * A record of type 3 stands where records were that a repair has given up: from its sequence on, as many as its field for
 * a checksum holds. It is as long as what it replaces, so that all other records keep their positions. Its payload is
 * never read.
 *
 * WHY so. The segment's header is written twice: without its salt nothing after it can be read. The CRC of a record's
 * header begins with the segment's salt: zeros, and bytes of any other segment or file, are never a record (SQLite's
 * idea), and a payload cannot imitate a record without the salt. The header has a CRC of its own, so that damage in a
 * payload costs that record alone: the position of the next one is still known. The sequences of a segment have no gaps,
 * so missing records can be named. The footer and the next segment's header both hold the end of a segment: an end is
 * never inferred from the size of a file.
 */

const HEADER_COPY_BYTES = 64;
export const SEGMENT_HEADER_BYTES = 2 * HEADER_COPY_BYTES;
export const RECORD_HEADER_BYTES = 24;
const FOOTER_PAYLOAD_BYTES = 16;
export const FOOTER_BYTES = RECORD_HEADER_BYTES + FOOTER_PAYLOAD_BYTES;

/** As PNG begins: a byte that is not text, a name, and line ends that a careless copy would change. */
const MAGIC = Buffer.from([0x89, 0x45, 0x53, 0x43, 0x51, 0x0d, 0x0a, 0x1a]);
const VERSION = 1;

/** The first bytes of a record: for finding the next one after damage. */
export const MARKER = Buffer.from([0xec, 0x51]);
const MARKER_UINT16 = MARKER.readUInt16LE(0);

export const DATA = 1;
export const FOOTER = 2;
export const LOST = 3;
/** An owner of a log that is not a disk queue takes one type from this one to 255, for all its records. */
export const FIRST_OWN_TYPE = 16;

/** Segment flag: a record was promised when it was synced, so one that was not yet synced was not promised. */
const ALWAYS_DURABLE = 1;
/** Record flag: everything before this record was on the disk when it was written. */
const SYNCED_BEFORE = 1;

const TWO_32 = 2 ** 32;

export interface SegmentHeader {
  readonly number: number;
  readonly salt: number;
  /** Sequence of its first record. */
  readonly baseSequence: number;
  /** Where the records of the previous segment end, in bytes; 0 if there is none. What follows was never promised. */
  readonly previousEnd: number;
  readonly isAlwaysDurable: boolean;
  /** Milliseconds since the Unix epoch. */
  readonly createdWallMs: number;
}

export interface RecordHeader {
  readonly type: number;
  readonly isSyncedBefore: boolean;
  /** Bytes of the payload. */
  readonly length: number;
  readonly sequence: number;
  /** In a record of lost records: their number. */
  readonly payloadCrc: number;
}

export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const bytes = Buffer.alloc(HEADER_COPY_BYTES);
  MAGIC.copy(bytes);
  bytes.writeUInt16LE(VERSION, 8);
  bytes.writeUInt16LE(header.isAlwaysDurable ? ALWAYS_DURABLE : 0, 10);
  bytes.writeUInt32LE(header.salt, 12);
  writeUInt64(bytes, header.number, 16);
  writeUInt64(bytes, header.baseSequence, 24);
  writeUInt64(bytes, header.previousEnd, 32);
  writeUInt64(bytes, header.createdWallMs, 40);
  bytes.writeUInt32LE(shortCrc32(bytes, 0, 60, 0), 60);
  return Buffer.concat([bytes, bytes]);
}

/** @returns undefined if neither copy is a valid header of this version. */
export function decodeSegmentHeader(bytes: Buffer): SegmentHeader | undefined {
  return decodeCopy(bytes) ?? decodeCopy(bytes.subarray(HEADER_COPY_BYTES));
}

function decodeCopy(bytes: Buffer): SegmentHeader | undefined {
  if (bytes.length < HEADER_COPY_BYTES || !MAGIC.equals(bytes.subarray(0, MAGIC.length))) return undefined;
  if (bytes.readUInt32LE(60) !== shortCrc32(bytes, 0, 60, 0)) return undefined;
  if (bytes.readUInt16LE(8) !== VERSION) return undefined;
  return {
    number: readUInt64(bytes, 16),
    salt: bytes.readUInt32LE(12),
    baseSequence: readUInt64(bytes, 24),
    previousEnd: readUInt64(bytes, 32),
    isAlwaysDurable: (bytes.readUInt16LE(10) & ALWAYS_DURABLE) !== 0,
    createdWallMs: readUInt64(bytes, 40),
  };
}

/** Writes a record into `bytes` at `offset`. @returns where the next one begins. */
export function encodeRecord(
  bytes: Buffer,
  offset: number,
  type: number,
  payload: Uint8Array,
  sequence: number,
  salt: number,
  isSyncedBefore: boolean,
): number {
  bytes.set(payload, offset + RECORD_HEADER_BYTES);
  const end = offset + RECORD_HEADER_BYTES + payload.length;
  const crc = crc32(bytes.subarray(offset + RECORD_HEADER_BYTES, end));
  encodeRecordHeader(bytes, offset, type, payload.length, sequence, crc, salt, isSyncedBefore);
  return end;
}

/** The header of a record of lost records that takes `length` bytes in all. */
export function encodeLost(length: number, records: number, sequence: number, salt: number): Buffer {
  const bytes = Buffer.alloc(RECORD_HEADER_BYTES);
  encodeRecordHeader(bytes, 0, LOST, length - RECORD_HEADER_BYTES, sequence, records, salt, true);
  return bytes;
}

/** The record that seals a segment. @param end - of the records; @param next - the sequence after that of the last one. */
export function encodeFooter({ baseSequence, salt }: SegmentHeader, end: number, next: number): Buffer {
  const records = next - baseSequence;
  const payload = Buffer.alloc(FOOTER_PAYLOAD_BYTES);
  writeUInt64(payload, records, 0);
  // Where bytes are missing, there may be fewer of them than so many records would need.
  writeUInt64(payload, Math.max(end - SEGMENT_HEADER_BYTES - records * RECORD_HEADER_BYTES, 0), 8);
  const bytes = Buffer.alloc(FOOTER_BYTES);
  encodeRecord(bytes, 0, FOOTER, payload, next, salt, true);
  return bytes;
}

function encodeRecordHeader(
  bytes: Buffer,
  offset: number,
  type: number,
  length: number,
  sequence: number,
  payloadCrc: number,
  salt: number,
  isSyncedBefore: boolean,
): void {
  bytes.writeUInt16LE(MARKER_UINT16, offset);
  bytes[offset + 2] = type;
  bytes[offset + 3] = isSyncedBefore ? SYNCED_BEFORE : 0;
  bytes.writeUInt32LE(length, offset + 4);
  writeUInt64(bytes, sequence, offset + 8);
  bytes.writeUInt32LE(payloadCrc, offset + 16);
  bytes.writeUInt32LE(shortCrc32(bytes, offset, offset + 20, salt), offset + 20);
}

/** @returns undefined if no record of the segment with that salt begins at `offset`. */
export function decodeRecordHeader(bytes: Buffer, offset: number, salt: number): RecordHeader | undefined {
  if (offset + RECORD_HEADER_BYTES > bytes.length) return undefined;
  if (bytes.readUInt16LE(offset) !== MARKER_UINT16) return undefined;
  if (bytes.readUInt32LE(offset + 20) !== shortCrc32(bytes, offset, offset + 20, salt)) return undefined;
  const type = bytes[offset + 2] as number;
  if (type === 0 || (type > LOST && type < FIRST_OWN_TYPE)) return undefined;
  return {
    type,
    isSyncedBefore: ((bytes[offset + 3] as number) & SYNCED_BEFORE) !== 0,
    length: bytes.readUInt32LE(offset + 4),
    sequence: readUInt64(bytes, offset + 8),
    payloadCrc: bytes.readUInt32LE(offset + 16),
  };
}

export function isPayloadIntact(payload: Buffer, { payloadCrc }: RecordHeader): boolean {
  return crc32(payload) === payloadCrc;
}

/** Numbers here are at most 2^53, which is exact. */
export function writeUInt64(bytes: Buffer, value: number, offset: number): void {
  bytes.writeUInt32LE(value % TWO_32, offset);
  bytes.writeUInt32LE(Math.floor(value / TWO_32), offset + 4);
}

export function readUInt64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * TWO_32;
}

/** Sequence of the first record of a log. */
export const FIRST_SEQUENCE = 1;

/** One file of a log. Its fields are what the log has read or written of it. */
export interface Segment {
  readonly path: string;
  readonly number: number;
  /** Undefined if both copies of it are damaged: nothing in the file can be read then. */
  readonly header: SegmentHeader | undefined;
  /** Sequence of its first record. */
  readonly base: number;
  /** Where its readable records end, in bytes. A footer may follow, or bytes that were never promised. */
  end: number;
  /** The sequence after that of its last readable record. */
  next: number;
  /** Whether the file was removed by another program while the log is open. */
  isRemoved?: boolean;
  /** The last write, while it is still in memory: for a reader that keeps up. */
  tail?: { readonly offset: number; readonly bytes: Buffer } | undefined;
}

export interface LogPosition {
  readonly segment: number;
  readonly offset: number;
  readonly sequence: number;
}

export interface AppendResult {
  /** Number of records. */
  readonly appended: number;
  /** Why the next record was not written. */
  readonly error?: unknown;
}

/** Damage that was found, and stepped over. */
export interface CorruptionEvent {
  /** Path of the file. */
  readonly file: string;
  /** Where in the file it begins, in bytes. */
  readonly offset: number;
  /** Number of bytes that were stepped over. */
  readonly bytes: number;
  /** The first message that is lost; undefined if none is, or if it is not known. */
  readonly firstSequence?: number;
  /** The last message that is lost; undefined if `firstSequence` is. */
  readonly lastSequence?: number;
  /** A text for people. */
  readonly reason: string;
}

/** A part of a file that is damaged, or a place where records are missing. */
export interface DamagedPart {
  readonly offset: number;
  readonly end: number;
  /** The records that were there: `from` up to, and not including, `to`; undefined if they are not to be reported. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly reason: string;
}

export function corruptionOf(
  file: string,
  { offset, end, from = 0, to = 0, reason }: DamagedPart,
): CorruptionEvent {
  const sequences = to > from ? { firstSequence: from, lastSequence: to - 1 } : {};
  return { file, offset, bytes: end - offset, ...sequences, reason };
}

/** The default of options `onCorruption`: damage must not go unnoticed. @param type - of the warnings. */
export function warnOfCorruption(type: string): (event: CorruptionEvent) => void {
  return ({ file, offset, bytes, reason }) => {
    process.emitWarning(`${file}: ${bytes} bytes at ${offset} are damaged: ${reason}`, type);
  };
}

export interface LostPart extends DamagedPart {
  readonly from: number;
  readonly to: number;
}

/** Records that are missing before the segment of that path. */
interface Gap extends LostPart {
  readonly path: string;
}

/** Finds segments that are missing. @param expected - sequence of the first record that is expected. */
export function gapsOf(segments: readonly Segment[], expected: number): Gap[] {
  const gaps: Gap[] = [];
  const reason = 'the segment before this one is missing';
  let from = expected;
  for (const { path, base: to, next } of segments) {
    if (to > from) gaps.push({ path, offset: 0, end: 0, from, to, reason });
    from = Math.max(from, next);
  }
  return gaps;
}

/** With more digits a number would not be exact: such a file does not belong to a log. */
const NAME = /^(.+)\.(\d{10,15})\.segment$/s;
const LARGEST_NUMBER = 999_999_999_999_999;

/** A file has the largest number, and none can come behind it. */
export class NoNumberLeft extends Error {}

/** Names sort as their numbers do. @throws NoNumberLeft - the name would not be that of a segment. */
export function segmentFileName(log: string, number: number): string {
  if (number > LARGEST_NUMBER)
    throw new NoNumberLeft(`a segment has the number ${LARGEST_NUMBER}, and none can come behind it`);
  return `${log}.${String(number).padStart(10, '0')}.segment`;
}

/** @returns undefined if it is not the name of a segment. */
export function parseSegmentFileName(name: string): { log: string; number: number } | undefined {
  const match = NAME.exec(name);
  const [, log, digits] = match ?? [];
  return log === undefined || digits === undefined ? undefined : { log, number: Number(digits) };
}

/** Where the first record of a segment is. */
export function firstOf({ number, base }: Segment): LogPosition {
  return { segment: number, offset: SEGMENT_HEADER_BYTES, sequence: base };
}

/** Where the record after one of that length is, in the same segment. */
export function positionAfter({ segment, offset, sequence }: LogPosition, length: number): LogPosition {
  return { segment, offset: offset + RECORD_HEADER_BYTES + length, sequence: sequence + 1 };
}

/** Bytes of the payloads from a position of a segment to its end, as if there were no damage. */
export function payloadBytes(
  { header, end, next }: Segment,
  { offset, sequence }: { readonly offset: number; readonly sequence: number },
): number {
  return header === undefined ? 0 : end - offset - (next - sequence) * RECORD_HEADER_BYTES;
}

const CRC_TABLE = /* @__PURE__ */ makeCrcTable();

/* @__NO_SIDE_EFFECTS__ */
function makeCrcTable(): Uint32Array {
  const polynomial = 0xed_b8_83_20;
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? polynomial ^ (crc >>> 1) : crc >>> 1;
    return crc;
  });
}

/** CRC-32 (ISO-HDLC, as in zlib) of a few bytes: for 20 of them the call of a native function costs more. */
export function shortCrc32(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let crc = ~seed;
  for (let i = start; i < end; i++) {
    crc = (CRC_TABLE[(crc ^ (bytes[i] as number)) & 0xff] as number) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

type Crc32 = (data: Uint8Array, value?: number) => number;

/** CRC-32 of many bytes. Node has it since 20.15. */
export const crc32: Crc32 =
  (zlib as { crc32?: Crc32 }).crc32 ?? ((data, seed = 0) => shortCrc32(data, 0, data.length, seed));
