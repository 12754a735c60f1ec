import { chainOf, type DelayedOperation } from './delayed-operation.ts';

/**
 * One operation under one key. It hangs in two chains: the doubly linked list of its key, and the chain of all
 * watchers of its operation, so that whoever holds either can take it out of both.
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

  /** Takes it out of its key's list. The links of a watcher that is out are never followed. */
  unlink(): void {
    this.prev.next = this.next;
    this.next.prev = this.prev;
  }
}

/** The watchers of one key, in the order they came: a circular list, and its own sentinel. */
export class WatcherList {
  /** The key as the map knows it. */
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

/** The watchers of an operation, the latest first; each has the next one as its sibling. */
export function firstWatcherOf(operation: DelayedOperation): Watcher | undefined {
  return chainOf(operation) as Watcher | undefined;
}
