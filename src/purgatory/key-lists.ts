import { WatcherList } from './watcher-list.ts';

/** Keys that nobody waits for any more and that stay in the map for a while. A power of two. */
const KEPT = 256;

/**
 * The list of watchers of each key.
 *
 * WHY some keys stay when nobody waits for them: a key that comes and goes (a heartbeat's, say) would be deleted and
 * set again each time, and V8's `Map` walks over the places of deleted keys until it is made anew, which a large map
 * seldom is: 20 µs an operation with 100 000 keys. So the last few that have become empty are kept, and go when
 * others take their place. Only plain ones: an object as a key must not be held.
 */
export class KeyLists {
  readonly #lists = new Map<unknown, WatcherList>();
  /** The lists that have become empty, the latest before `#next`. One may be in use again, or be in it twice. */
  readonly #kept: (WatcherList | undefined)[] = [];
  #next = 0;
  #emptyKeys = 0;

  /** Keys that somebody waits for. */
  get size(): number {
    return this.#lists.size - this.#emptyKeys;
  }

  /** Keys that are only kept. */
  get emptyKeys(): number {
    return this.#emptyKeys;
  }

  /** Every list, those that are only kept included: for the integrity checker. */
  get all(): ReadonlyMap<unknown, WatcherList> {
    return this.#lists;
  }

  get(key: unknown): WatcherList | undefined {
    return this.#lists.get(key);
  }

  /** The list of a key, for somebody who is about to wait in it. */
  use(key: unknown): WatcherList {
    const found = this.#lists.get(key);
    if (found === undefined) {
      const made = new WatcherList(key);
      this.#lists.set(key, made);
      return made;
    }
    if (found.isEmpty) this.#emptyKeys--;
    return found;
  }

  /** A list has lost its last watcher. */
  emptied(list: WatcherList): void {
    this.#emptyKeys++;
    if (typeof list.key === 'object' || typeof list.key === 'function') {
      this.#forget(list);
      return;
    }
    const oldest = this.#kept[this.#next];
    this.#kept[this.#next] = list;
    this.#next = (this.#next + 1) & (KEPT - 1);
    if (oldest !== undefined) this.#forget(oldest);
  }

  clear(): void {
    this.#lists.clear();
    this.#kept.length = 0;
    this.#next = 0;
    this.#emptyKeys = 0;
  }

  /** Unless it is in use again, or gone. */
  #forget(list: WatcherList): void {
    if (!list.isEmpty || this.#lists.get(list.key) !== list) return;
    this.#lists.delete(list.key);
    this.#emptyKeys--;
  }
}
