import type { TimerTable, TimerTaskList } from './timer-table.ts';

/*
 * HOW and WHY. When a pump comes late, a coarse bucket can be overdue from end to end. Moving its entries down
 * level by level would touch each row, and the one it is linked behind, once a level, and with a million entries
 * every touch is a cache miss. Sorting by counting touches each row twice: once to read when it expires, once to
 * link it. The second touch finds its addresses in an array and not in the row before, so the misses overlap.
 *
 *      bucket for 64 … 127        count per tick           slots by tick                due queue
 *      7 → 3 → 9 → 4        ──►   64: 2, 66: 1, 90: 1 ──►  [ 3, 4 | 9 | 7 ]      ──►    … → 3 → 4 → 9 → 7
 *      90  64  66  64
 */

/** A span of more ticks costs more to count than it saves. */
const MAX_TICKS = 2 ** 16;
/** Bounds the memory of a sort: 12 bytes an entry, 1.5 MiB. A fuller bucket is emptied level by level. */
const MAX_ENTRIES = 2 ** 17;
/** With fewer entries than one in so many ticks, looking at every tick is the larger part of the work. */
const TICKS_PER_ENTRY = 4;

/** Whether it is worth sorting the entries of a bucket that spans so many ticks. */
export function isWorthSorting(ticks: number, entries: number): boolean {
  return ticks > 1 && ticks <= MAX_TICKS && entries <= MAX_ENTRIES && entries * TICKS_PER_ENTRY >= ticks;
}

/**
 * Empties buckets that lie in one span of `ticks` ticks. O(entries + ticks).
 *
 * @returns their entries in order of expiration; equal ones in the order of the buckets, then as they were there.
 */
export function sortSpan(
  buckets: readonly TimerTaskList[],
  startMs: number,
  tickMs: number,
  ticks: number,
  table: TimerTable,
): Int32Array {
  const total = buckets.reduce((sum, { size }) => sum + size, 0);
  const slots = new Int32Array(total);
  const offsets = new Int32Array(total);
  // One longer, and counted one further on: its prefix sums are where each tick starts.
  const places = new Int32Array(ticks + 1);
  let length = 0;
  for (const bucket of buckets) {
    for (let slot = bucket.first; slot !== bucket.sentinel; slot = table.next(slot), length++) {
      const offset = (table.expirationOf(slot) - startMs) / tickMs;
      slots[length] = slot;
      offsets[length] = offset;
      places[offset + 1] = (places[offset + 1] as number) + 1;
    }
    table.detachAll(bucket.sentinel);
  }
  for (let tick = 1; tick <= ticks; tick++) {
    places[tick] = (places[tick] as number) + (places[tick - 1] as number);
  }
  const sorted = new Int32Array(total);
  for (let i = 0; i < total; i++) {
    const offset = offsets[i] as number;
    const place = places[offset] as number;
    sorted[place] = slots[i] as number;
    places[offset] = place + 1;
  }
  return sorted;
}
