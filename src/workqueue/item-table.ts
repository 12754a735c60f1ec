/** A map of up to this many keys is rebuilt so often that deletions cost little. */
const SMALL = 128;
/** The least and the most idle keys that are kept: 256 times a power of four. */
const LEAST_KEPT = 256;
const MOST_KEPT = 16_384;
/** The longest key that is kept, in characters. */
const SHORT = 256;

/**
 * The phase of a key.
 *
 *      phase        add                  taken        done
 *      IDLE         → QUEUED             –            –
 *      QUEUED       · (newest object)    → HELD       –
 *      HELD         → HELD_AGAIN         –            → IDLE
 *      HELD_AGAIN   · (newest object)    –            → QUEUED, at the back
 *
 * client-go keeps two sets and a slice for this (dirty, processing, queue); one phase cannot contradict itself.
 */
export type Phase = typeof IDLE | typeof QUEUED | typeof HELD | typeof HELD_AGAIN;
export const IDLE = 0;
export const QUEUED = 1;
export const HELD = 2;
export const HELD_AGAIN = 3;

/** The state of one key. */
export class ItemEntry<T> {
  readonly key: unknown;
  /** How often it is among the keys that became idle: see ItemTable. */
  slots = 0;
  /** The newest object that was added, which is taken next; undefined while idle. */
  item: T | undefined;
  phase: Phase = IDLE;
  /** The number of its latest lease, so that a holder cannot end the lease of the next; 0 from when it is queued at the back. */
  lease = 0;

  constructor(key: unknown) {
    this.key = key;
  }

  get isHeld(): boolean {
    return this.phase >= HELD;
  }
}

/**
 * The entry of each key.
 *
 * WHY some keys stay when they are idle. A reconciler gets the same keys again and again, and to delete and set one
 * each time costs three times as much as to find it; in a large map much more, because V8's `Map` steps over its deleted
 * slots until it is rebuilt: 20 µs an operation for a hot key among 100 000. So the keys that became idle last are kept until
 * others replace them.
 *
 * How many are kept depends on whether they are used again: 256 if not; as many as were in use at once, and at most 16 384, if
 * so. Only short strings and numbers are kept: an object as a key would be kept alive.
 */
export class ItemTable<T> {
  readonly #entries = new Map<unknown, ItemEntry<T>>();
  /** Entries in the order in which they became idle. An entry may be in use again, and be here twice. */
  #kept: (ItemEntry<T> | undefined)[] = new Array<undefined>(LEAST_KEPT);
  #next = 0;
  #idle = 0;
  /** In this round: keys that became idle, keys that were used again, and the most that were in use at once. */
  #released = 0;
  #reused = 0;
  #mostUsed = 0;

  /** Number of keys in use: queued or held. */
  get size(): number {
    return this.#entries.size - this.#idle;
  }

  /** Number of idle keys that are kept. */
  get idle(): number {
    return this.#idle;
  }

  /** Every entry, including idle ones. */
  get all(): ReadonlyMap<unknown, ItemEntry<T>> {
    return this.#entries;
  }

  find(key: unknown): ItemEntry<T> | undefined {
    return this.#entries.get(key);
  }

  /** Returns the entry of a key, for a phase other than idle. */
  use(key: unknown): ItemEntry<T> {
    const found = this.#entries.get(key);
    if (found === undefined) {
      const made = new ItemEntry<T>(key);
      this.#entries.set(key, made);
      return made;
    }
    if (found.phase === IDLE) {
      this.#idle--;
      this.#reused++;
    }
    return found;
  }

  /** Makes an entry idle. */
  release(entry: ItemEntry<T>): void {
    const used = this.size;
    if (used > this.#mostUsed) this.#mostUsed = used;
    entry.phase = IDLE;
    entry.item = undefined;
    this.#idle++;
    const isUnkept = entry.slots === 0 && (this.#entries.size <= SMALL || !mayBeKept(entry.key));
    if (isUnkept) this.#forget(entry);
    else this.#keep(entry);
  }

  #keep(entry: ItemEntry<T>): void {
    const oldest = this.#kept[this.#next];
    this.#kept[this.#next] = entry;
    entry.slots++;
    this.#next = (this.#next + 1) & (this.#kept.length - 1);
    if (oldest !== undefined) this.#leave(oldest);
    if (++this.#released >= Math.max(this.#kept.length, this.#mostUsed)) this.#reconsider();
  }

  /** Removes an entry from one of its slots; from the last one it is deleted, unless it is in use again. */
  #leave(entry: ItemEntry<T>): void {
    entry.slots--;
    if (entry.slots === 0 && entry.phase === IDLE) this.#forget(entry);
  }

  #forget(entry: ItemEntry<T>): void {
    this.#entries.delete(entry.key);
    this.#idle--;
  }

  /** After a round, in which all keys in use became idle: keeps more if a quarter was used again, and fewer if not. */
  #reconsider(): void {
    const length = this.#kept.length;
    const isWorthIt = this.#reused >= length / 4;
    if (isWorthIt && this.#mostUsed > length && length < MOST_KEPT) this.#resize(length * 4);
    else if (!isWorthIt && length > LEAST_KEPT) this.#resize(length / 4);
    this.#released = 0;
    this.#reused = 0;
    this.#mostUsed = 0;
  }

  /** Keeps the latest entries. */
  #resize(length: number): void {
    const fromOldest = [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)];
    const surplus = Math.max(fromOldest.length - length, 0);
    for (const entry of fromOldest.slice(0, surplus)) if (entry !== undefined) this.#leave(entry);
    this.#kept = fromOldest.slice(surplus);
    this.#next = this.#kept.length & (length - 1);
    while (this.#kept.length < length) this.#kept.push(undefined);
  }
}

function mayBeKept(key: unknown): boolean {
  return typeof key === 'string' ? key.length <= SHORT : typeof key === 'number';
}
