/*
 * The files of a queue, as go-diskqueue writes them:
 *
 *      orders.diskqueue.000000.dat                  records; more than six digits from file 1,000,000 on
 *      orders.diskqueue.000000.dat.bad              a damaged file that was set aside
 *      orders.diskqueue.meta.dat                    the metadata: where reading and writing continue
 *      orders.diskqueue.meta.dat.7331.tmp           the next metadata, while it is written
 *
 * A record is the length of the message, 4 bytes, big-endian and signed, and the message. It has no checksum and no mark:
 * a record begins where the one before it ends.
 *
 * The metadata is three lines of decimal numbers:
 *
 *      5                depth
 *      0,14             read position: file, offset
 *      1,28             write position
 */

export const RECORD_HEADER_BYTES = 4;

/** Encodes a record into a buffer. Returns the offset behind it. */
export function encodeRecord(bytes: Buffer, at: number, message: Uint8Array): number {
  bytes.writeInt32BE(message.length, at);
  bytes.set(message, at + RECORD_HEADER_BYTES);
  return at + RECORD_HEADER_BYTES + message.length;
}

/** Returns where the record ends that begins at `at`; undefined if that is behind `end`, or the length is negative. */
export function endOfRecord(length: number, at: number, end: number): number | undefined {
  const recordEnd = at + RECORD_HEADER_BYTES + length;
  return length < 0 || recordEnd > end ? undefined : recordEnd;
}

/** A place in the data files. */
export interface Position {
  /** Number of the file. */
  readonly number: number;
  /** Offset in it, in bytes. */
  readonly offset: number;
}

/** Both positions of a queue without metadata. */
export const START: Position = { number: 0, offset: 0 };

export interface Metadata {
  /** Number of records behind the read position. go-diskqueue may write a wrong number, and a negative one. */
  readonly depth: number;
  /** Where the first record begins that is not consumed. */
  readonly read: Position;
  /** Where the next record will be written. */
  readonly write: Position;
}

const METADATA = /^(-?\d{1,15})\n(\d{1,15}),(\d{1,15})\n(\d{1,15}),(\d{1,15})\n/;

export function encodeMetadata({ depth, read, write }: Metadata): Buffer {
  const lines = `${depth}\n${read.number},${read.offset}\n${write.number},${write.offset}\n`;
  return Buffer.from(lines, 'latin1');
}

/** Returns undefined if the bytes are incomplete, or have the read position behind the write position. */
export function decodeMetadata(bytes: Buffer): Metadata | undefined {
  const match = METADATA.exec(bytes.toString('latin1'));
  if (match === null) return undefined;
  const [, depth = 0, readNumber = 0, readOffset = 0, writeNumber = 0, writeOffset = 0] = match.map(Number);
  const read = { number: readNumber, offset: readOffset };
  const write = { number: writeNumber, offset: writeOffset };
  return isAfter(read, write) ? undefined : { depth, read, write };
}

export function isAfter(a: Position, b: Position): boolean {
  return a.number > b.number || (a.number === b.number && a.offset > b.offset);
}

export function isSamePosition(a: Position, b: Position): boolean {
  return a.number === b.number && a.offset === b.offset;
}

const DIGITS = 6;
const NUMBER = /^\d{6,15}$/;
const RANDOM = /^\d+$/;

export function dataFileName(queue: string, number: number): string {
  return `${queue}.diskqueue.${String(number).padStart(DIGITS, '0')}.dat`;
}

export function metadataFileName(queue: string): string {
  return `${queue}.diskqueue.meta.dat`;
}

/** The files of one queue in a folder. */
export interface QueueFiles {
  /** Numbers of the data files, ascending. */
  readonly data: readonly number[];
  /** Numbers of the data files that were set aside. */
  readonly bad: readonly number[];
  /** Names of metadata files that were not complete when a process ended. */
  readonly temporary: readonly string[];
  readonly hasMetadata: boolean;
}

/** Picks the files of a queue out of the names in a folder. */
export function filesOfQueue(queue: string, names: readonly string[]): QueueFiles {
  const data: number[] = [];
  const temporary: string[] = [];
  const bad: number[] = [];
  for (const name of names) {
    const number = numberOf(queue, name, '.dat');
    if (number !== undefined) data.push(number);
    const badNumber = numberOf(queue, name, '.dat.bad');
    if (badNumber !== undefined) bad.push(badNumber);
    const random = between(name, `${metadataFileName(queue)}.`, '.tmp');
    if (random !== undefined && RANDOM.test(random)) temporary.push(name);
  }
  const hasMetadata = names.includes(metadataFileName(queue));
  return { data: data.sort((a, b) => a - b), bad, temporary, hasMetadata };
}

/** Returns undefined if it is not the name of such a file of the queue. */
function numberOf(queue: string, name: string, suffix: string): number | undefined {
  const digits = between(name, `${queue}.diskqueue.`, suffix);
  if (digits === undefined || !NUMBER.test(digits)) return undefined;
  const number = Number(digits);
  return dataFileName(queue, number) === `${queue}.diskqueue.${digits}.dat` ? number : undefined;
}

function between(name: string, prefix: string, suffix: string): string | undefined {
  if (name.length < prefix.length + suffix.length) return undefined;
  if (!name.startsWith(prefix) || !name.endsWith(suffix)) return undefined;
  return name.slice(prefix.length, name.length - suffix.length);
}
