import { crc32, shortCrc32 } from './crc32.ts';
import type { File } from './file-system.ts';

/*
 * The bytes of a segment: one file of the log. All numbers are little-endian.
 *
 *      ┌────────────────┐ 0
 *      │ header, 2 × 64 │   twice: magic 8 · version 2 · flags 2 · salt 4 · number 8 · base sequence 8 ·
 *      │                │   end of the previous segment 8 · created 8 · zero 12 · CRC of all that 4
 *      ├────────────────┤ 128
 *      │ record         │   marker 2 · kind 1 · flags 1 · length 4 · sequence 8 · CRC of the payload 4 ·
 *      │   header, 24   │   CRC of the header 4
 *      │   payload      │
 *      ├────────────────┤
 *      │ record …       │
 *      ├────────────────┤
 *      │ footer         │   a record of kind 2, when the segment is sealed; its payload: messages 8 · their bytes 8
 *      └────────────────┘
 *
 * A record of kind 3 stands where messages were that a repair has given up: from its sequence on, as many as its field
 * for a checksum says. It is as long as what it replaces, so that everything else stays where it was, and nobody reads
 * its payload.
 *
 * WHY so. The segment's header is there twice: without its salt nothing after it can be read. The CRC of a record's
 * header begins with the segment's salt: zeros, and bytes of any other segment or file, are never a record (SQLite's
 * idea), and nobody can write messages that look like records without knowing the salt. The header has a CRC of its own,
 * so that damage in a payload costs that message alone: where the next one begins is still known. The sequences of a
 * segment have no gaps, so what is missing can be named. The footer and the next segment's header both say where a
 * segment ends: an end is never inferred from the size of a file.
 */

const HEADER_COPY_BYTES = 64;
export const SEGMENT_HEADER_BYTES = 2 * HEADER_COPY_BYTES;
export const RECORD_HEADER_BYTES = 24;
const FOOTER_PAYLOAD_BYTES = 16;
export const FOOTER_BYTES = RECORD_HEADER_BYTES + FOOTER_PAYLOAD_BYTES;

/** As PNG begins: a byte that is no text, a name, and line ends that a careless copy would change. */
const MAGIC = Buffer.from([0x89, 0x45, 0x53, 0x43, 0x51, 0x0d, 0x0a, 0x1a]);
const VERSION = 1;

/** What a record begins with. For finding the next one after damage; no proof of anything. */
export const MARKER = Buffer.from([0xec, 0x51]);
const MARKER_UINT16 = MARKER.readUInt16LE(0);

export const MESSAGE = 1;
export const FOOTER = 2;
export const LOST = 3;

/** Segment flag: `put` promised durability, so what was not yet synced was promised to nobody. */
const ALWAYS_DURABLE = 1;
/** Record flag: everything before this record was on disk when it was written. */
const SYNCED_BEFORE = 1;

const TWO_32 = 2 ** 32;

/** What a segment says of itself. */
export interface SegmentHeader {
  readonly number: number;
  readonly salt: number;
  /** The sequence of its first message. */
  readonly baseSequence: number;
  /** Where the records of the segment before end, in bytes; 0 if there is none. What comes after was never promised. */
  readonly previousEnd: number;
  readonly isAlwaysDurable: boolean;
  /** Milliseconds since the Unix epoch. */
  readonly createdWallMs: number;
}

/** What a record says of itself. */
export interface RecordHeader {
  readonly kind: typeof MESSAGE | typeof FOOTER | typeof LOST;
  readonly isSyncedBefore: boolean;
  readonly length: number;
  readonly sequence: number;
  /** Of a record of lost messages: how many. */
  readonly payloadCrc: number;
}

/** What a sealed segment holds. */
export interface SegmentFooter {
  readonly messages: number;
  readonly payloadBytes: number;
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

/** @returns undefined if neither copy is a header of a version that we know. */
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

/** Writes a message with its header into `bytes` at `offset`. @returns where the next one begins. */
export function encodeMessage(
  bytes: Buffer,
  offset: number,
  payload: Uint8Array,
  sequence: number,
  salt: number,
  isSyncedBefore: boolean,
): number {
  bytes.set(payload, offset + RECORD_HEADER_BYTES);
  const end = offset + RECORD_HEADER_BYTES + payload.length;
  const crc = crc32(bytes.subarray(offset + RECORD_HEADER_BYTES, end));
  encodeRecordHeader(bytes, offset, MESSAGE, payload.length, sequence, crc, salt, isSyncedBefore);
  return end;
}

/** The head of a record of lost messages that takes `length` bytes as a whole. */
export function encodeLost(length: number, messages: number, sequence: number, salt: number): Buffer {
  const bytes = Buffer.alloc(RECORD_HEADER_BYTES);
  encodeRecordHeader(bytes, 0, LOST, length - RECORD_HEADER_BYTES, sequence, messages, salt, true);
  return bytes;
}

/** The record that seals a segment. */
export function encodeFooter(footer: SegmentFooter, sequence: number, salt: number): Buffer {
  const bytes = Buffer.alloc(FOOTER_BYTES);
  writeUInt64(bytes, footer.messages, RECORD_HEADER_BYTES);
  writeUInt64(bytes, footer.payloadBytes, RECORD_HEADER_BYTES + 8);
  const crc = crc32(bytes.subarray(RECORD_HEADER_BYTES));
  encodeRecordHeader(bytes, 0, FOOTER, FOOTER_PAYLOAD_BYTES, sequence, crc, salt, true);
  return bytes;
}

export function decodeFooter(payload: Buffer): SegmentFooter {
  return { messages: readUInt64(payload, 0), payloadBytes: readUInt64(payload, 8) };
}

function encodeRecordHeader(
  bytes: Buffer,
  offset: number,
  kind: number,
  length: number,
  sequence: number,
  payloadCrc: number,
  salt: number,
  isSyncedBefore: boolean,
): void {
  bytes.writeUInt16LE(MARKER_UINT16, offset);
  bytes[offset + 2] = kind;
  bytes[offset + 3] = isSyncedBefore ? SYNCED_BEFORE : 0;
  bytes.writeUInt32LE(length, offset + 4);
  writeUInt64(bytes, sequence, offset + 8);
  bytes.writeUInt32LE(payloadCrc, offset + 16);
  bytes.writeUInt32LE(shortCrc32(bytes, offset, offset + 20, salt), offset + 20);
}

/** @returns undefined if what begins at `offset` is no record of the segment with that salt. */
export function decodeRecordHeader(bytes: Buffer, offset: number, salt: number): RecordHeader | undefined {
  if (offset + RECORD_HEADER_BYTES > bytes.length) return undefined;
  if (bytes.readUInt16LE(offset) !== MARKER_UINT16) return undefined;
  if (bytes.readUInt32LE(offset + 20) !== shortCrc32(bytes, offset, offset + 20, salt)) return undefined;
  const kind = bytes[offset + 2];
  if (kind !== MESSAGE && kind !== FOOTER && kind !== LOST) return undefined;
  return {
    kind,
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

/** A footer that stands somewhere in a segment. */
export interface FoundFooter extends SegmentFooter {
  /** The one that the next message would have had. */
  readonly sequence: number;
}

/** @returns undefined if there is no whole footer at `offset`. Whether it is true is another question. */
export async function readFooter(
  file: File,
  { salt }: SegmentHeader,
  offset: number,
): Promise<FoundFooter | undefined> {
  const bytes = Buffer.alloc(FOOTER_BYTES);
  if (offset < SEGMENT_HEADER_BYTES || (await file.read(bytes, offset)) < FOOTER_BYTES) return undefined;
  const record = decodeRecordHeader(bytes, 0, salt);
  const payload = bytes.subarray(RECORD_HEADER_BYTES);
  if (record?.kind !== FOOTER || record.length !== payload.length) return undefined;
  return isPayloadIntact(payload, record)
    ? { sequence: record.sequence, ...decodeFooter(payload) }
    : undefined;
}

/** @param end - of the records; @param next - the sequence after that of the last one. */
export function encodedFooter({ baseSequence, salt }: SegmentHeader, end: number, next: number): Buffer {
  return encodeFooter(footerOf(baseSequence, end, next), next, salt);
}

/**
 * What the footer of a segment says that ends there. Where bytes are missing, there may be fewer of them than so many
 * messages would have needed: then it says 0.
 */
export function footerOf(base: number, end: number, next: number): SegmentFooter {
  const messages = next - base;
  return { messages, payloadBytes: Math.max(end - SEGMENT_HEADER_BYTES - messages * RECORD_HEADER_BYTES, 0) };
}
