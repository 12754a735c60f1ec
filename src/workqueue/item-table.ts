import { IDLE, ItemEntry } from './item-entry.ts';

/** A map of up to this many keys makes itself anew so often that deleting does no harm. */
const SMALL = 128;
/** Idle keys that are kept at least, and at most: 256 times a power of four. */
const LEAST_KEPT = 256;
const MOST_KEPT = 16_384;
/** Longest key that is kept, in characters. */
const SHORT = 256;

/**
 * The entry of each key.
 *
 * WHY some keys stay when they are idle. A reconciler sees the same keys again and again, and to delete and set one
 * each time costs three times as much as to find it; in a large map much more, because V8's `Map` walks over the
 * places of deleted keys until it is made anew: 20 µs an operation for a hot key among 100 000. So the last keys that
 * became idle are kept, and go when others take their place.
 *
 * How many depends on whether they come back: 256 where they do not; as many as were in use at once, and not more
 * than 16 384, where they do. Only short plain keys: an object as a key must not be held.
 */
export class ItemTable<T> {
  readonly #entries = new Map<unknown, ItemEntry<T>>();
  /** Entries in the order in which they became idle. One may be in use again, and be in it twice. */
  #kept: (ItemEntry<T> | undefined)[] = new Array<undefined>(LEAST_KEPT);
  #next = 0;
  #idle = 0;
  /** In this round: keys that became idle, keys that came back, and the most that were in use at once. */
  #released = 0;
  #cameBack = 0;
  #mostUsed = 0;

  /** Keys in use: queued or held. */
  get size(): number {
    return this.#entries.size - this.#idle;
  }

  /** Keys that are only kept. */
  get idle(): number {
    return this.#idle;
  }

  /** Every entry, the idle ones included: for the integrity checker. */
  get all(): ReadonlyMap<unknown, ItemEntry<T>> {
    return this.#entries;
  }

  find(key: unknown): ItemEntry<T> | undefined {
    return this.#entries.get(key);
  }

  /** The entry of a key, for a phase other than idle. */
  use(key: unknown): ItemEntry<T> {
    const found = this.#entries.get(key);
    if (found === undefined) {
      const made = new ItemEntry<T>(key);
      this.#entries.set(key, made);
      return made;
    }
    if (found.phase === IDLE) {
      this.#idle--;
      this.#cameBack++;
    }
    return found;
  }

  /** Nobody needs the entry any more. */
  release(entry: ItemEntry<T>): void {
    const used = this.size;
    if (used > this.#mostUsed) this.#mostUsed = used;
    entry.phase = IDLE;
    entry.item = undefined;
    this.#idle++;
    const isToGo = entry.places === 0 && (this.#entries.size <= SMALL || !mayBeKept(entry.key));
    if (isToGo) this.#forget(entry);
    else this.#keep(entry);
  }

  #keep(entry: ItemEntry<T>): void {
    const oldest = this.#kept[this.#next];
    this.#kept[this.#next] = entry;
    entry.places++;
    this.#next = (this.#next + 1) & (this.#kept.length - 1);
    if (oldest !== undefined) this.#leave(oldest);
    if (++this.#released >= Math.max(this.#kept.length, this.#mostUsed)) this.#reconsider();
  }

  /** It has lost one of its places. With the last one it goes, unless it is in use again. */
  #leave(entry: ItemEntry<T>): void {
    entry.places--;
    if (entry.places === 0 && entry.phase === IDLE) this.#forget(entry);
  }

  #forget(entry: ItemEntry<T>): void {
    this.#entries.delete(entry.key);
    this.#idle--;
  }

  /** After a round, in which all that was in use became idle. Keeps more if a quarter came back, and fewer if not. */
  #reconsider(): void {
    const length = this.#kept.length;
    const isWorthIt = this.#cameBack >= length / 4;
    if (isWorthIt && this.#mostUsed > length && length < MOST_KEPT) this.#resize(length * 4);
    else if (!isWorthIt && length > LEAST_KEPT) this.#resize(length / 4);
    this.#released = 0;
    this.#cameBack = 0;
    this.#mostUsed = 0;
  }

  /** Keeps the latest. */
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
