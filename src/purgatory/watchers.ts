import { chainOf, NOT_WATCHED, serialOf, setChain, type DelayedOperation } from './delayed-operation.ts';

/*
 * The operations under each key, and the keys of each operation.
 *
 *      key map                    operations
 *      'a' ──► [sentinel] ⇄ w1 ⇄ w3          A: w2 → w1
 *      'b' ──► [sentinel] ⇄ w2               B: w3
 *
 * HOW and WHY. Kafka links from keys to operations only, so an operation that completes through one key stays under its other
 * keys until they are checked or purged, and its request with it: an out-of-memory bug since 2012 (KAFKA-664, KAFKA-19389).
 * Here an operation is linked to its watchers, and all of them are removed with it.
 */

/** How many keys a snapshot reads, and operations of each; how many operations in all; and how many of the largest keys it shows. */
const MOST_LOOKED_AT = 1_000;
const MOST_COUNTED = 20_000;
const MOST_SHOWN = 100;

/** All watchers of one purgatory. Calls no user code. */
export class Watchers {
  readonly #lists = new KeyLists();
  #size = 0;
  #latestSerial = 0;
  /** The position of the walk. There is one walk at a time. */
  #cursor: Watcher | WatcherList | undefined;
  /** Operations with a later serial number are not in the walk. */
  #walkUntil = 0;

  /** Number of watchers under all keys. */
  get size(): number {
    return this.#size;
  }

  /** Number of watched keys. */
  get keys(): number {
    return this.#lists.size;
  }

  /** The watchers by key. */
  get lists(): KeyLists {
    return this.#lists;
  }

  /**
   * Adds an operation, which must be under no key, under each of these keys. O(keys).
   *
   * @returns its serial number.
   */
  add(operation: DelayedOperation, keys: readonly unknown[]): number {
    let chain: Watcher | undefined;
    for (const key of keys) {
      chain = new Watcher(operation, this.#lists.use(key), chain);
      this.#size++;
    }
    const serial = ++this.#latestSerial;
    setChain(operation, chain, serial);
    return serial;
  }

  /** Removes an operation from all of its keys. O(keys). */
  remove(operation: DelayedOperation): void {
    for (let watcher = firstWatcherOf(operation); watcher !== undefined; watcher = watcher.sibling) {
      if (this.#cursor === watcher) this.#cursor = watcher.next;
      watcher.unlink();
      if (watcher.list.isEmpty) this.#lists.emptied(watcher.list);
      this.#size--;
    }
    setChain(operation, undefined, NOT_WATCHED);
  }

  /** Begins a walk over the operations that are under a key now, in order of arrival. They may change in any way meanwhile. */
  startWalk(key: unknown): void {
    this.#cursor = this.#lists.get(key)?.next;
    this.#walkUntil = this.#latestSerial;
  }

  /** Returns the next operation of the walk. */
  walk(): DelayedOperation | undefined {
    const watcher = this.#cursor;
    if (!(watcher instanceof Watcher) || serialOf(watcher.operation) > this.#walkUntil) {
      this.#cursor = undefined;
      return undefined;
    }
    this.#cursor = watcher.next;
    return watcher.operation;
  }

  /** Returns the operations under a key, in order of arrival. O(operations). */
  under(key: unknown): DelayedOperation[] {
    const operations: DelayedOperation[] = [];
    const list = this.#lists.get(key);
    for (let watcher = list?.next; watcher instanceof Watcher; watcher = watcher.next) {
      operations.push(watcher.operation);
    }
    return operations;
  }

  /**
   * Returns the keys with the most operations, of the first ones, with these numbers. O(1): at most {@link MOST_LOOKED_AT} keys and as many
   * operations under each of them, {@link MOST_COUNTED} in all, are looked at.
   */
  largest(): { key: unknown; operations: number }[] {
    const found: { key: unknown; operations: number }[] = [];
    let looked = 0;
    let left = MOST_COUNTED;
    for (const { key, isEmpty, next } of this.#lists.all.values()) {
      if (++looked > MOST_LOOKED_AT || left <= 0) break;
      if (isEmpty) continue;
      let operations = 0;
      for (let at = next; at instanceof Watcher && operations < MOST_LOOKED_AT; at = at.next) operations++;
      left -= operations;
      found.push({ key, operations });
    }
    return found.sort((a, b) => b.operations - a.operations).slice(0, MOST_SHOWN);
  }

  /** Returns every operation once, in order of arrival. O(watchers + operations log operations). */
  all(): DelayedOperation[] {
    const operations: DelayedOperation[] = [];
    for (let { next: watcher } of this.#lists.all.values())
      for (; watcher instanceof Watcher; watcher = watcher.next)
        if (watcher.sibling === undefined) operations.push(watcher.operation);
    return operations.sort((a, b) => serialOf(a) - serialOf(b));
  }
}

/**
 * One operation under one key. It is in two chains, the doubly linked list of its key and the chain of all watchers of its
 * operation, so that it can be removed from both through either of them.
 */
export class Watcher {
  readonly operation: DelayedOperation;
  readonly list: WatcherList;
  /** The next watcher of the same operation. */
  readonly sibling: Watcher | undefined;
  /** Neighbours under the same key; the list is circular through its sentinel. */
  prev: Watcher | WatcherList;
  next: Watcher | WatcherList;

  constructor(operation: DelayedOperation, list: WatcherList, sibling: Watcher | undefined) {
    this.operation = operation;
    this.list = list;
    this.sibling = sibling;
    this.prev = list.prev;
    this.next = list;
    list.prev.next = this;
    list.prev = this;
  }

  /** Removes the watcher from the list of its key. The links of a removed watcher are never followed. */
  unlink(): void {
    this.prev.next = this.next;
    this.next.prev = this.prev;
  }
}

/** The watchers of one key in order of arrival: a circular list that is its own sentinel. */
export class WatcherList {
  /** The key of the list in the map. */
  readonly key: unknown;
  prev: Watcher | WatcherList = this;
  next: Watcher | WatcherList = this;

  constructor(key: unknown) {
    this.key = key;
  }

  get isEmpty(): boolean {
    return this.next === this;
  }
}

/** The latest watcher of an operation; each has the next one as its sibling. */
export function firstWatcherOf(operation: DelayedOperation): Watcher | undefined {
  return chainOf(operation) as Watcher | undefined;
}

/** Most unwatched keys that stay in the map. A power of two. */
const KEPT = 256;

/**
 * The list of watchers of each key.
 *
 * WHY some keys stay when they are no longer watched: a key that is watched again and again (that of a heartbeat, for example)
 * would be deleted and set each time, and V8's `Map` steps over its deleted slots until it is rebuilt, which a large map seldom
 * is: 20 µs an operation with 100 000 keys. So the keys that were unwatched last are kept until others replace them. An object
 * as a key is not kept, because that would keep the object alive.
 */
export class KeyLists {
  readonly #lists = new Map<unknown, WatcherList>();
  /** Lists that became empty, the latest before `#next`. A list may be in use again, or be here twice. */
  readonly #kept: (WatcherList | undefined)[] = [];
  #next = 0;
  #emptyKeys = 0;

  /** Number of watched keys. */
  get size(): number {
    return this.#lists.size - this.#emptyKeys;
  }

  /** Number of kept keys, which are not watched. */
  get emptyKeys(): number {
    return this.#emptyKeys;
  }

  /** Every list, including those of kept keys. */
  get all(): ReadonlyMap<unknown, WatcherList> {
    return this.#lists;
  }

  get(key: unknown): WatcherList | undefined {
    return this.#lists.get(key);
  }

  /** Returns the list of a key, for a watcher that is about to be added. */
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

  /** Keeps or deletes a list that has lost its last watcher. */
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

  /** Deletes a list, unless it is in use again or deleted already. */
  #forget(list: WatcherList): void {
    if (!list.isEmpty || this.#lists.get(list.key) !== list) return;
    this.#lists.delete(list.key);
    this.#emptyKeys--;
  }
}
