/** Rows of a page: few enough that inserting one is a short move in memory. */
const PAGE_ROWS = 256;

/** A row by its time, and by `serial` among rows of one time. Neither may change while it is in {@link RowsByTime}. */
interface TimedRow {
  readonly atMs: number;
  readonly serial: number;
}

/** Whether a row comes before another one. */
export function isEarlier(a: TimedRow, b: TimedRow): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.serial < b.serial);
}

/** Some rows in order, with their times beside them: a search reads those, and touches no row. */
interface RowPage<R> {
  readonly times: number[];
  readonly rows: R[];
}

/**
 * Rows in order of time: scheduled tasks, for inspectors. The timer does not need it.
 *
 *      pages  [ 1 3 3 7 ] [ 8 9 ] [ 12 15 15 ] …      each in order, and before the next one
 *
 * A B-tree of one level. With a million rows, adding and removing one is two binary searches and a move of at most 2 KB;
 * a page of an inspector is a walk over some 5 000 pages, where an unordered list would read every row, and block
 * the process for a tenth of a second. About 25 bytes a row.
 */
export class RowsByTime<R extends TimedRow> {
  readonly #pages: RowPage<R>[] = [];

  get first(): R | undefined {
    return this.#pages[0]?.rows[0];
  }

  add(row: R): void {
    const at = this.#pageOf(row);
    const page = this.#pages[at];
    if (page === undefined) {
      this.#pages.push({ times: [row.atMs], rows: [row] });
      return;
    }
    const { times, rows } = page;
    const index = endOf(page, row);
    if (rows.length === PAGE_ROWS) this.#addToFull(at, page, index, row);
    else if (index === rows.length) {
      times.push(row.atMs);
      rows.push(row);
    } else {
      times.splice(index, 0, row.atMs);
      rows.splice(index, 0, row);
    }
  }

  remove(row: R): void {
    const at = this.#pageOf(row);
    const page = this.#pages[at];
    const index = page === undefined ? 0 : endOf(page, row) - 1;
    if (page?.rows[index] !== row) throw new Error(`no row with time ${row.atMs} and serial ${row.serial}`);
    if (page.rows.length === 1) {
      this.#pages.splice(at, 1);
      return;
    }
    page.times.splice(index, 1);
    page.rows.splice(index, 1);
  }

  /** At most `count` rows, after the first `skip`. O(pages). */
  slice(skip: number, count: number): R[] {
    const found: R[] = [];
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

  *[Symbol.iterator](): Generator<R, void, undefined> {
    for (const { rows } of this.#pages) yield* rows;
  }

  /** Rows that arrive in order, as most do, leave full pages behind; others leave two halves. */
  #addToFull(at: number, { times, rows }: RowPage<R>, index: number, row: R): void {
    const isLast = index === PAGE_ROWS && at === this.#pages.length - 1;
    const from = isLast ? PAGE_ROWS : PAGE_ROWS / 2;
    this.#pages.splice(at + 1, 0, { times: times.splice(from), rows: rows.splice(from) });
    if (isLast) this.#pages[at + 1] = { times: [row.atMs], rows: [row] };
    else this.add(row);
  }

  /** Index of the last page that does not begin after a row; 0 if all do. */
  #pageOf(row: R): number {
    let low = 0;
    let high = this.#pages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAfter(this.#pages[middle] as RowPage<R>, 0, row)) high = middle;
      else low = middle + 1;
    }
    return Math.max(low - 1, 0);
  }
}

/** Number of rows of a page that are not after a row: if it is in the page, it is the last of them. */
function endOf<R extends TimedRow>(page: RowPage<R>, row: R): number {
  let low = 0;
  let high = page.rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isAfter(page, middle, row)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function isAfter<R extends TimedRow>({ times, rows }: RowPage<R>, at: number, row: R): boolean {
  const time = times[at] as number;
  return time === row.atMs ? (rows[at] as R).serial > row.serial : time > row.atMs;
}
