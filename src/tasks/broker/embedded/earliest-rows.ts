import TinyQueue from 'tinyqueue';
import type { TaskList } from './task-list.ts';
import type { TaskRow } from './task-row.ts';

/**
 * Those of a list with the earliest moments, in order: after `skip` of them, at most `count`.
 *
 * WHY. What is scheduled is not kept in order, since the timer does not need it: a million tasks can be added in O(1) each.
 * Who looks at a page pays for it: a heap of the best until now, the worst on top. O(n log page), no memory beyond the page;
 * beyond half of the list, or for many, it is cheaper to sort all.
 */
export function earliestRows(list: TaskList, skip: number, count: number): TaskRow[] {
  const wanted = Math.min(skip + count, list.size);
  if (skip >= wanted) return [];
  const numbered = wanted > list.size / 2 ? all(list) : best(list, wanted);
  return numbered
    .sort(compare)
    .slice(skip, wanted)
    .map(({ row }) => row);
}

/** Rows of one moment stay in the order of the list. */
interface NumberedRow {
  readonly row: TaskRow;
  readonly at: number;
}

function compare(a: NumberedRow, b: NumberedRow): number {
  return a.row.atMs - b.row.atMs || a.at - b.at;
}

function all(list: TaskList): NumberedRow[] {
  const rows: NumberedRow[] = [];
  for (const row of list) rows.push({ row, at: rows.length });
  return rows;
}

function best(list: TaskList, wanted: number): NumberedRow[] {
  const heap = new TinyQueue<NumberedRow>([], (a, b) => compare(b, a));
  let at = 0;
  for (let row = list.head; row !== undefined; row = row.next, at++) {
    if (heap.length < wanted) {
      heap.push({ row, at });
    } else if (row.atMs < (heap.peek() as NumberedRow).row.atMs) {
      heap.pop();
      heap.push({ row, at });
    }
  }
  return heap.data;
}
