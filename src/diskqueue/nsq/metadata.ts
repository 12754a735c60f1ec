/** A place in the data files. */
export interface Position {
  /** Number of the file. */
  readonly number: number;
  /** In bytes. */
  readonly offset: number;
}

/** Of a queue that has no metadata. */
export const START: Position = { number: 0, offset: 0 };

/** What the metadata of a queue says. */
export interface Metadata {
  /** Records behind the read position. The original may have it wrong, and below zero. */
  readonly depth: number;
  /** Where the first record that is not consumed begins. */
  readonly read: Position;
  /** Where the next record will be written. */
  readonly write: Position;
}

/*
 * The bytes: three lines of decimal numbers.
 *
 *      5                depth
 *      0,14             read position: file, offset
 *      1,28             write position
 */

const LINES = /^(-?\d{1,15})\n(\d{1,15}),(\d{1,15})\n(\d{1,15}),(\d{1,15})\n/;

export function encodeMetadata({ depth, read, write }: Metadata): Buffer {
  const lines = `${depth}\n${read.number},${read.offset}\n${write.number},${write.offset}\n`;
  return Buffer.from(lines, 'latin1');
}

/** @returns undefined if it is not whole, or cannot be: nothing is read that was not written. */
export function decodeMetadata(bytes: Buffer): Metadata | undefined {
  const match = LINES.exec(bytes.toString('latin1'));
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
