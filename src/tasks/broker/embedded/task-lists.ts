import type { TimerId } from '../../../timer/system-timer.ts';
import type { TaskMessage } from '../../task-options.ts';
import type { TaskState } from '../../task-state.ts';

/*
 * Rows and lists of the embedded broker. A row is a task; every row of a queue is in exactly one list, and its state is its
 * list's, so that the two cannot differ. The lists of a queue are in queue-state.ts.
 *
 *      head ⇄ row ⇄ row ⇄ … ⇄ tail        the links are in the rows: a list of a million rows needs no other memory
 *
 * Every operation on a list is O(1), except iteration; those on rows in order of time are not.
 */

/**
 * The timer id of a row without a timer entry. No timer returns it. A fraction, because V8 then has it as a double, as it has most ids: after
 * a small integer, the first id would change the shape of all rows, which takes several microseconds each.
 */
export const NO_TIMER = 0.5 as TimerId;

export class TaskRow {
  #message: TaskMessage | undefined;
  list: TaskList | undefined = undefined;
  next: TaskRow | undefined = undefined;
  previous: TaskRow | undefined = undefined;
  /**
   * Wall clock: when a scheduled or retried task is due; when a completed or archived one expires; since when one is
   * pending. Monotonic clock: when the lease of an active task ends; when an aggregating one joined its group.
   */
  atMs = 0;
  timer: TimerId = NO_TIMER;
  /** Active: the epoch of its lease. Otherwise a number that grows with each row that enters a state: arrival order. */
  serial = 0;
  recoveries = 0;
  result: Uint8Array | undefined = undefined;
  progress: string | undefined = undefined;

  constructor(message: TaskMessage | undefined) {
    this.#message = message;
  }

  get id(): string {
    return this.message.id;
  }

  get message(): TaskMessage {
    return (this.#message ??= this.unpack());
  }

  set message(message: TaskMessage) {
    this.#message = message;
  }

  // Those of a packed message are known without it: see journaled-row.ts.

  get key(): string {
    return this.message.key;
  }

  get group(): string {
    return this.message.group;
  }

  /** Called when the message is needed and was not there at the beginning. */
  protected unpack(): TaskMessage {
    throw new Error('a row without a message');
  }
}

/** The queue of a list: a `QueueState`, see `listOf` in queue-state.ts. */
export interface QueueOfList {
  readonly name: string;
  readonly isRemoved: boolean;
}

interface Link<T> {
  next: T | undefined;
  previous: T | undefined;
}

/** A list whose links are in its entries. An entry is in one list at most. */
export class LinkedList<T extends Link<T>> {
  head: T | undefined = undefined;
  tail: T | undefined = undefined;

  push(entry: T): void {
    this.insertAfter(this.tail, entry);
  }

  /** Adds an entry that is in no list after one of this list; after undefined, at the beginning. */
  insertAfter(previous: T | undefined, entry: T): void {
    const next = previous === undefined ? this.head : previous.next;
    entry.previous = previous;
    entry.next = next;
    if (previous === undefined) this.head = entry;
    else previous.next = entry;
    if (next === undefined) this.tail = entry;
    else next.previous = entry;
  }

  remove(entry: T): void {
    const { previous, next } = entry;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    entry.previous = undefined;
    entry.next = undefined;
  }
}

/** Rows in arrival order: those of one state of a queue, of one group, or of one set that was taken out of a group. */
export class TaskList extends LinkedList<TaskRow> {
  readonly queue: QueueOfList;
  readonly state: TaskState;
  /** Empty unless its rows are aggregating. */
  readonly group: string;
  /** Whether its rows are being aggregated: no other operation may change them. */
  readonly isHeld: boolean;
  size = 0;

  constructor(queue: QueueOfList, state: TaskState, group = '', isHeld = false) {
    super();
    this.queue = queue;
    this.state = state;
    this.group = group;
    this.isHeld = isHeld;
  }

  /** Row that a bulk operation begins with. */
  get first(): TaskRow | undefined {
    return this.head;
  }

  override insertAfter(previous: TaskRow | undefined, row: TaskRow): void {
    super.insertAfter(previous, row);
    row.list = this;
    this.size++;
  }

  override remove(row: TaskRow): void {
    super.remove(row);
    row.list = undefined;
    this.size--;
  }

  /** From the head. The loop may add and remove rows, except the current one. */
  *[Symbol.iterator](): Generator<TaskRow, void, undefined> {
    for (let row = this.head; row !== undefined; row = row.next) yield row;
  }
}

/** Number of entries above which the map of an {@link Index} is replaced once it has been empty. */
const MANY_ENTRIES = 64;

/**
 * A map whose entries leave no memory behind. V8 links each table of a `Map` that grew or shrank to the next one, so a table in the old
 * generation would keep all later ones, with their values, until a full collection. So a map that was large is replaced: by the first
 * entry, because a map that stays empty for long would be old itself.
 */
export class Index<V> {
  #map = new Map<string, V>();
  #wasLarge = false;

  get map(): ReadonlyMap<string, V> {
    return this.#map;
  }

  set(key: string, value: V): void {
    if (this.#wasLarge && this.#map.size === 0) {
      this.#map = new Map();
      this.#wasLarge = false;
    }
    this.#map.set(key, value);
    if (this.#map.size > MANY_ENTRIES) this.#wasLarge = true;
  }

  delete(key: string): void {
    this.#map.delete(key);
  }
}

/** Rows of a page: few enough that inserting one is a short move in memory. */
const PAGE_ROWS = 256;

/** Whether a row comes before another one by time; rows of one time are in order of arrival. */
export function isEarlier(a: TaskRow, b: TaskRow): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.serial < b.serial);
}

/** Some rows in order, with their times beside them: a search reads those, and touches no row. */
interface RowPage {
  readonly times: number[];
  readonly rows: TaskRow[];
}

/**
 * Rows in order of time: scheduled tasks, for inspectors. The timer does not need it. Neither `atMs` nor `serial` of a row may change while
 * it is here.
 *
 *      pages  [ 1 3 3 7 ] [ 8 9 ] [ 12 15 15 ] …      each in order, and before the next one
 *
 * A B-tree of one level. With a million rows, adding and removing one is two binary searches and a move of at most 2 KB;
 * a page of an inspector is a walk over some 5 000 pages, where an unordered list would read every row, and block
 * the process for a tenth of a second. About 25 bytes a row.
 */
export class RowsByTime {
  readonly #pages: RowPage[] = [];

  get first(): TaskRow | undefined {
    return this.#pages[0]?.rows[0];
  }

  add(row: TaskRow): void {
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

  remove(row: TaskRow): void {
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

  /** Rows that arrive in order, as most do, leave full pages behind; others leave two halves. */
  #addToFull(at: number, { times, rows }: RowPage, index: number, row: TaskRow): void {
    const isLast = index === PAGE_ROWS && at === this.#pages.length - 1;
    const from = isLast ? PAGE_ROWS : PAGE_ROWS / 2;
    this.#pages.splice(at + 1, 0, { times: times.splice(from), rows: rows.splice(from) });
    if (isLast) this.#pages[at + 1] = { times: [row.atMs], rows: [row] };
    else this.add(row);
  }

  /** Index of the last page that does not begin after a row; 0 if all do. */
  #pageOf(row: TaskRow): number {
    let low = 0;
    let high = this.#pages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAfter(this.#pages[middle] as RowPage, 0, row)) high = middle;
      else low = middle + 1;
    }
    return Math.max(low - 1, 0);
  }
}

/** Number of rows of a page that are not after a row: if it is in the page, it is the last of them. */
function endOf(page: RowPage, row: TaskRow): number {
  let low = 0;
  let high = page.rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isAfter(page, middle, row)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function isAfter({ times, rows }: RowPage, at: number, row: TaskRow): boolean {
  const time = times[at] as number;
  return time === row.atMs ? (rows[at] as TaskRow).serial > row.serial : time > row.atMs;
}

/** Scheduled rows, or those of retries. The first one is the earliest, not the first that arrived. */
export class WaitingList extends TaskList {
  readonly byTime = new RowsByTime();

  override get first(): TaskRow | undefined {
    return this.byTime.first;
  }

  override push(row: TaskRow): void {
    super.push(row);
    this.byTime.add(row);
  }

  override remove(row: TaskRow): void {
    super.remove(row);
    this.byTime.remove(row);
  }
}

interface UniqueLock {
  readonly owner: TaskRow;
  /** On the monotonic clock. */
  readonly endsAtMs: number;
}

/**
 * Locks by their unique keys. An expired lock is noticed when it is next wanted, so it needs no timer; and because a lock is
 * freed with its task at the latest, there are never more locks than tasks. Every operation is O(1).
 */
export class UniqueLocks {
  readonly #locks = new Map<string, UniqueLock>();

  ownerOf(key: string, nowMs: number): TaskRow | undefined {
    const lock = this.#locks.get(key);
    if (lock === undefined || lock.endsAtMs <= nowMs) return undefined;
    // A removed queue frees its locks in pieces, later.
    return lock.owner.list?.queue.isRemoved === true ? undefined : lock.owner;
  }

  /** When the lock of a row ends, on the monotonic clock; undefined if it has none. */
  endOf(row: TaskRow): number | undefined {
    const { uniqueKey } = row.message;
    const lock = uniqueKey === '' ? undefined : this.#locks.get(uniqueKey);
    return lock?.owner === row ? lock.endsAtMs : undefined;
  }

  /** Takes a lock that is free. */
  take(key: string, owner: TaskRow, endsAtMs: number): void {
    this.#locks.set(key, { owner, endsAtMs });
  }

  free(row: TaskRow): void {
    const { uniqueKey } = row.message;
    if (uniqueKey !== '' && this.#locks.get(uniqueKey)?.owner === row) this.#locks.delete(uniqueKey);
  }

  entries(): Iterable<readonly [string, UniqueLock]> {
    return this.#locks;
  }
}
