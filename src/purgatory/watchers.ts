import { NOT_WATCHED, serialOf, setChain, type DelayedOperation } from './delayed-operation.ts';
import { KeyLists } from './key-lists.ts';
import { firstWatcherOf, Watcher, type WatcherList } from './watcher-list.ts';

/*
 * Who waits for what.
 *
 *      key map                    operations
 *      'a' ──► [sentinel] ⇄ w1 ⇄ w3          A: w2 → w1
 *      'b' ──► [sentinel] ⇄ w2               B: w3
 *
 * HOW and WHY. Kafka links from keys to operations only, so an operation that is completed through one key stays on
 * its others until somebody looks or a purge comes by, and its request with it: an out-of-memory bug since 2012
 * (KAFKA-664, KAFKA-19389). Here an operation knows its watchers, and takes all of them along when it goes.
 * What becomes of a key that nobody waits for any more, key-lists.ts tells.
 */

/** Every watcher of one purgatory. Calls no user code. */
export class Watchers {
  readonly #lists = new KeyLists();
  #size = 0;
  #latestSerial = 0;
  /** Where the walk that is under way goes on. There is one walk at a time. */
  #cursor: Watcher | WatcherList | undefined;
  /** Operations that came later than this are not in the walk. */
  #walkUntil = 0;

  /** Watchers on all keys. */
  get size(): number {
    return this.#size;
  }

  get keys(): number {
    return this.#lists.size;
  }

  /** By key: for the integrity checker. */
  get lists(): KeyLists {
    return this.#lists;
  }

  /**
   * Puts an operation, which must be under no key, under each of some keys. O(keys).
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

  /** Takes an operation off all of its keys. O(keys). */
  remove(operation: DelayedOperation): void {
    for (let watcher = firstWatcherOf(operation); watcher !== undefined; watcher = watcher.sibling) {
      if (this.#cursor === watcher) this.#cursor = watcher.next;
      watcher.unlink();
      if (watcher.list.isEmpty) this.#lists.emptied(watcher.list);
      this.#size--;
    }
    setChain(operation, undefined, NOT_WATCHED);
  }

  /** Forgets the keys that are only kept. Nobody may wait. */
  clear(): void {
    this.#lists.clear();
  }

  /** Begins to walk through what is under a key now, in the order it came. It may change in any way meanwhile. */
  startWalk(key: unknown): void {
    this.#cursor = this.#lists.get(key)?.next;
    this.#walkUntil = this.#latestSerial;
  }

  /** The next operation of the walk. */
  walk(): DelayedOperation | undefined {
    const watcher = this.#cursor;
    if (!(watcher instanceof Watcher) || serialOf(watcher.operation) > this.#walkUntil) {
      this.#cursor = undefined;
      return undefined;
    }
    this.#cursor = watcher.next;
    return watcher.operation;
  }

  /** The operations under a key, in the order they came. O(operations). */
  under(key: unknown): DelayedOperation[] {
    const operations: DelayedOperation[] = [];
    const list = this.#lists.get(key);
    for (let watcher = list?.next; watcher instanceof Watcher; watcher = watcher.next) {
      operations.push(watcher.operation);
    }
    return operations;
  }

  /** Every operation once, in the order they came. O(watchers + operations log operations). */
  all(): DelayedOperation[] {
    const operations = new Set<DelayedOperation>();
    for (const key of this.#lists.all.keys())
      for (const operation of this.under(key)) operations.add(operation);
    return [...operations].sort((a, b) => serialOf(a) - serialOf(b));
  }
}
