import type { File } from '../../log/file-system.ts';
import { endOfRecord, RECORD_HEADER_BYTES } from './record.ts';

/** Bytes read at once. */
const BLOCK_BYTES = 256 * 1024;

/** What stands between two places of a data file. */
export interface Walk {
  /** Where the last record ends that is whole. */
  readonly end: number;
  readonly records: number;
  /** Of their messages. */
  readonly bytes: number;
  /** Of these, the last ones that hold empty messages only: how many, and where they begin. They are zeros. */
  readonly lastEmpty: number;
  readonly lastEmptyFrom: number;
  /** The length that the record behind them claims; undefined if not even that is whole. */
  readonly nextLength: number | undefined;
}

/** Goes from the head of one record to the next, up to `end` or the first that is not whole. */
export async function walkRecords(file: File, from: number, end: number): Promise<Walk> {
  const block = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, Math.max(end - from, 0)));
  let at = from;
  let records = 0;
  let bytes = 0;
  let lastEmpty = 0;
  let nextLength: number | undefined;
  while (at < end && nextLength === undefined) {
    const filled = await file.read(block.subarray(0, Math.min(block.length, end - at)), at);
    if (filled < RECORD_HEADER_BYTES) break;
    const blockStart = at;
    while (at + RECORD_HEADER_BYTES <= blockStart + filled) {
      const length = block.readInt32BE(at - blockStart);
      const next = endOfRecord(length, at, end);
      if (next === undefined) {
        nextLength = length;
        break;
      }
      at = next;
      records++;
      bytes += length;
      lastEmpty = length === 0 ? lastEmpty + 1 : 0;
    }
  }
  return {
    end: at,
    records,
    bytes,
    lastEmpty,
    lastEmptyFrom: at - lastEmpty * RECORD_HEADER_BYTES,
    nextLength,
  };
}
