/** The longest string that is kept as a key, in characters. */
const SHORT = 256;
/** So many slots are used while more keys are in use than would be kept: in turn, none of so many returns in time. */
const FEW = 256;

/** The state of one key. */
export interface KeyEntry {
  readonly key: unknown;
  /** Whether the key is not in use. */
  readonly isIdle: boolean;
  /** Where the table keeps the entry while it is idle. Only the table uses it. */
  slot: number;
}

/**
 * The entry of each key that is in use, and of the keys that became idle last.
 *
 *      use ──► in use ──► release ──► idle: in one slot of a ring ──► use
 *                                           │ `most` releases later
 *                                           └──► deleted
 *
 * WHY some keys stay when they are idle. Many keys are used again and again (that of a reconciled object, or of a heartbeat), and
 * to delete and set one each time costs three times as much as to find it; in a large map much more, because V8's `Map` steps
 * over its deleted slots until it is rebuilt: 20 µs an operation for a hot key among 100 000. Neither an object as a
 * key, which would be kept alive, nor a long string is kept.
 */
export class KeyTable<E extends KeyEntry> {
  readonly #Entry: new (key: unknown) => E;
  readonly #entries = new Map<unknown, E>();
  /** Idle entries in the order in which they became idle, the latest before `#next`; undefined for one that is in use again. */
  readonly #kept: (E | undefined)[] = [];
  readonly #most: number;
  readonly #small: number;
  #next = 0;
  #idle = 0;

  /**
   * @param Entry - makes an entry, which is about to be used.
   * @param most - how many idle keys are kept at most.
   * @param small - a table of up to so many keys keeps none.
   */
  constructor(Entry: new (key: unknown) => E, most: number, small = 0) {
    this.#Entry = Entry;
    this.#most = most;
    this.#small = small;
  }

  /** Number of keys in use. */
  get size(): number {
    return this.#entries.size - this.#idle;
  }

  /** Number of idle keys that are kept. */
  get idle(): number {
    return this.#idle;
  }

  /** Every entry, including idle ones. */
  get all(): ReadonlyMap<unknown, E> {
    return this.#entries;
  }

  /** Returns the entry of a key, which may be idle. */
  find(key: unknown): E | undefined {
    return this.#entries.get(key);
  }

  /** Returns the entry of a key. If it is idle, the caller must use it now. */
  use(key: unknown): E {
    const found = this.#entries.get(key);
    if (found === undefined) {
      const made = new this.#Entry(key);
      this.#entries.set(key, made);
      return made;
    }
    if (found.isIdle) {
      this.#kept[found.slot] = undefined;
      this.#idle--;
    }
    return found;
  }

  /** Keeps or deletes an entry that has become idle. */
  release(entry: E): void {
    if (this.#entries.size <= this.#small || !mayBeKept(entry.key)) {
      this.#entries.delete(entry.key);
      return;
    }
    const oldest = this.#kept[this.#next];
    if (oldest === undefined) this.#idle++;
    else this.#entries.delete(oldest.key);
    this.#kept[this.#next] = entry;
    entry.slot = this.#next;
    const isCrowded = this.size > this.#most;
    const end = isCrowded ? Math.min(FEW, this.#most) : this.#most;
    this.#next = this.#next + 1 < end ? this.#next + 1 : 0;
  }
}

function mayBeKept(key: unknown): boolean {
  if (typeof key === 'string') return key.length <= SHORT;
  return typeof key !== 'object' && typeof key !== 'function';
}
