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

/** Bytes of the length in front of each message. */
export const LENGTH_BYTES = 4;

/** Writes a record into a buffer. Returns the offset behind it. */
export function writeRecord(bytes: Buffer, at: number, message: Uint8Array): number {
  bytes.writeInt32BE(message.length, at);
  bytes.set(message, at + LENGTH_BYTES);
  return at + LENGTH_BYTES + message.length;
}

/** Returns where the record ends that begins at `at`; undefined if that is behind `end`, or the length is negative. */
export function endOfRecord(length: number, at: number, end: number): number | undefined {
  const recordEnd = at + LENGTH_BYTES + length;
  return length < 0 || recordEnd > end ? undefined : recordEnd;
}

export interface Position {
  readonly number: number;
  readonly offset: number;
}

/** Both positions of a queue without metadata. */
export const START: Position = { number: 0, offset: 0 };

export interface Metadata {
  /** Number of records behind the read position. go-diskqueue may write a wrong number, and a negative one. */
  readonly depth: number;
  /** Where the first record begins that is not consumed. */
  readonly read: Position;
  readonly write: Position;
}

/** A file of a larger number is not found: numbers of 15 digits are exact. */
export const LARGEST_NUMBER = 1e15 - 1;
/** Writing continues behind the largest number if there is such a file, where nothing can be written. */
const METADATA = /^(-?\d{1,15})\n(\d{1,15}|10{15}),(\d{1,15})\n(\d{1,15}|10{15}),(\d{1,15})\n/;

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

function isAfter(a: Position, b: Position): boolean {
  return a.number > b.number || (a.number === b.number && a.offset > b.offset);
}

export function isSamePosition(a: Position, b: Position): boolean {
  return a.number === b.number && a.offset === b.offset;
}

const NAME = /^(.+)\.diskqueue\.(?:(\d{6}|[1-9]\d{6,14})\.dat(\.bad)?|meta\.dat(\.\d+\.tmp)?)$/s;

export function dataFileName(queue: string, number: number): string {
  return `${queue}.diskqueue.${String(number).padStart(6, '0')}.dat`;
}

export function metadataFileName(queue: string): string {
  return `${queue}.diskqueue.meta.dat`;
}

/** The files of one queue in a folder. */
export interface QueueFiles {
  /** Numbers of the data files, ascending. */
  readonly data: number[];
  /** Numbers of the data files that were set aside. */
  readonly bad: number[];
  /** Names of metadata files that were not complete when a process ended. */
  readonly temporary: string[];
  hasMetadata: boolean;
}

/** Picks the files of each queue out of the names in a folder. */
export function filesOfQueues(names: readonly string[]): Map<string, QueueFiles> {
  const queues = new Map<string, QueueFiles>();
  for (const name of names) {
    const [, queue, digits, bad, temporary] = NAME.exec(name) ?? [];
    if (queue === undefined) continue;
    const files = queues.get(queue) ?? noFiles();
    queues.set(queue, files);
    if (digits !== undefined) (bad === undefined ? files.data : files.bad).push(Number(digits));
    else if (temporary !== undefined) files.temporary.push(name);
    else files.hasMetadata = true;
  }
  for (const { data } of queues.values()) data.sort((a, b) => a - b);
  return queues;
}

export function filesOfQueue(queue: string, names: readonly string[]): Readonly<QueueFiles> {
  return filesOfQueues(names).get(queue) ?? noFiles();
}

function noFiles(): QueueFiles {
  return { data: [], bad: [], temporary: [], hasMetadata: false };
}
