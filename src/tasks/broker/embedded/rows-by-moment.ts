import type { TaskRow } from './task-row.ts';

/** Rows of a page: few enough that making room among them is one short move in memory. */
const MOST = 256;

/** Some rows in order, with their moments beside them: a search reads those, and does not touch a row. */
interface RowPage {
  readonly times: number[];
  readonly rows: TaskRow[];
}

/**
 * Rows by their moment, `atMs`, and those of one moment by their `serial`: what is scheduled, for those who look at it. The
 * timer does not need it.
 *
 *      pages  [ 1 3 3 7 ] [ 8 9 ] [ 12 15 15 ] …      each in order, and before the next one
 *
 * A B-tree of one level. With a million rows, adding and removing one is two binary searches and a move of at most 2 KB;
 * a page of an inspector is a walk over the some 5000 pages, where a list without order would take a look at every row, and
 * stop the process for a tenth of a second. About 25 bytes a row.
 */
export class RowsByMoment {
  readonly #pages: RowPage[] = [];

  get first(): TaskRow | undefined {
    return this.#pages[0]?.rows[0];
  }

  /** Its moment and serial must stay as they are until it is removed. */
  add(row: TaskRow): void {
    const at = this.#pageOf(row);
    const page = this.#pages[at];
    if (page === undefined) {
      this.#pages.push({ times: [row.atMs], rows: [row] });
      return;
    }
    const { times, rows } = page;
    const place = placeOf(page, row);
    if (rows.length === MOST) this.#addToFull(at, page, place, row);
    else if (place === rows.length) {
      times.push(row.atMs);
      rows.push(row);
    } else {
      times.splice(place, 0, row.atMs);
      rows.splice(place, 0, row);
    }
  }

  remove(row: TaskRow): void {
    const at = this.#pageOf(row);
    const page = this.#pages[at];
    const place = page === undefined ? 0 : placeOf(page, row) - 1;
    if (page?.rows[place] !== row) throw new Error(`task '${row.message.id}' is not where its moment is`);
    if (page.rows.length === 1) {
      this.#pages.splice(at, 1);
      return;
    }
    page.times.splice(place, 1);
    page.rows.splice(place, 1);
  }

  /** At most `count`, after `skip` of them. O(pages). */
  slice(skip: number, count: number): TaskRow[] {
    const found: TaskRow[] = [];
    let left = skip;
    for (const { rows } of this.#pages) {
      if (left < rows.length) {
        for (const row of rows.slice(left, left + count - found.length)) found.push(row);
        if (found.length === count) break;
      }
      left = Math.max(left - rows.length, 0);
    }
    return found;
  }

  *[Symbol.iterator](): Generator<TaskRow, void, undefined> {
    for (const { rows } of this.#pages) yield* rows;
  }

  /** Who comes in order, as most do, leaves full pages behind; others two halves. */
  #addToFull(at: number, { times, rows }: RowPage, place: number, row: TaskRow): void {
    const isLast = place === MOST && at === this.#pages.length - 1;
    const from = isLast ? MOST : MOST / 2;
    this.#pages.splice(at + 1, 0, { times: times.splice(from), rows: rows.splice(from) });
    if (isLast) this.#pages[at + 1] = { times: [row.atMs], rows: [row] };
    else this.add(row);
  }

  /** The last page that does not begin behind a row; the first one if all do. */
  #pageOf(row: TaskRow): number {
    let low = 0;
    let high = this.#pages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBehind(this.#pages[middle] as RowPage, 0, row)) high = middle;
      else low = middle + 1;
    }
    return Math.max(low - 1, 0);
  }
}

/** How many of a page are not behind a row: the row itself, if it is there, is the last of them. */
function placeOf(page: RowPage, row: TaskRow): number {
  let low = 0;
  let high = page.rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBehind(page, middle, row)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function isBehind({ times, rows }: RowPage, at: number, row: TaskRow): boolean {
  const time = times[at] as number;
  return time === row.atMs ? (rows[at] as TaskRow).serial > row.serial : time > row.atMs;
}
