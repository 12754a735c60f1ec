import { parseSegmentFileName } from '../../log/segment.ts';

/** A new cursor, a segment or a copy of one that was not finished; or a file as it was before it was repaired. */
export type LeftFile = 'unfinished' | 'put aside';

const DAMAGED = /\.damaged(?:\.\d+)?$/;
const UNFINISHED = /(?:\.rewritten|\.damaged(?:\.\d+)?\.new)$/;

/** What a file of that name was left as by somebody who repaired the queue, or died; undefined if it was not. */
export function leftFileOf(queue: string, file: string): LeftFile | undefined {
  if (file === `${queue}.cursor.new`) return 'unfinished';
  const isOf = (suffix: RegExp): boolean =>
    suffix.test(file) && parseSegmentFileName(file.replace(suffix, ''))?.queue === queue;
  if (isOf(UNFINISHED)) return 'unfinished';
  return isOf(DAMAGED) ? 'put aside' : undefined;
}
