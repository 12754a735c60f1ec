import type { CursorState } from './cursor-file.ts';

/** Whether there is a cursor, and no damage in it: then nothing that it once said is missing. */
export function isWhole({ isThere, damages }: CursorState): boolean {
  return isThere && damages.length === 0;
}

/** The sequence of the first message that is waited for; undefined if a cursor that is not whole cannot say. */
export function firstExpected(cursor: CursorState): number | undefined {
  return isWhole(cursor) ? cursor.acks.prefix : undefined;
}
