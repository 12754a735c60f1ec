/**
 * Promises in line: the first one is served first, and one whose signal fires leaves the line at once, so that no value is
 * given to a caller that has left.
 *
 * A circular doubly linked list through its sentinel: joining, serving and leaving are O(1).
 *
 * @typeParam V - the values that waiters receive.
 */
export class WaitLine<V> {
  readonly #sentinel: Link<V> = { prev: undefined, next: undefined };
  /** Number of waiters. */
  size = 0;

  constructor() {
    this.#sentinel.prev = this.#sentinel;
    this.#sentinel.next = this.#sentinel;
  }

  /**
   * Joins the end of the line.
   *
   * @param receive - returns the value that the promise resolves with; called when the waiter is served.
   * @returns a promise that rejects with the signal's reason, if that fires first, and with what `receive` throws.
   */
  wait<R>(receive: (value: V) => R, signal?: AbortSignal, group?: WaitGroup<V>): Promise<R> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const settle = (value: V): void => {
        resolve(receive(value));
      };
      new Waiter(this, settle, reject, signal, group).join(this.#sentinel);
    });
  }

  /** Gives a value to the first waiter in line; false if there is none. */
  give(value: V): boolean {
    if (this.size === 0) return false;
    (this.#sentinel.next as Waiter<V>).receive(value);
    return true;
  }

  /** Gives a value to every waiter that is in line now. */
  giveAll(value: V): void {
    for (let left = this.size; left > 0; left--) this.give(value);
  }

  /** Rejects every waiter. */
  failAll(reason: unknown): void {
    while (this.size > 0) (this.#sentinel.next as Waiter<V>).fail(reason);
  }
}

/** Waiters of one caller, which can leave together: those of a loop that ends, or of workers that stop. */
export class WaitGroup<V> {
  readonly waiters = new Set<Waiter<V>>();

  /** Removes them from their line, and serves each with this value. */
  dismiss(value: V): void {
    for (const waiter of this.waiters) waiter.receive(value);
  }
}

interface Link<V> {
  prev: Link<V> | undefined;
  next: Link<V> | undefined;
}

class Waiter<V> implements Link<V> {
  prev: Link<V> | undefined;
  next: Link<V> | undefined;
  readonly #line: WaitLine<V>;
  readonly #settle: (value: V) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #group: WaitGroup<V> | undefined;

  constructor(
    line: WaitLine<V>,
    settle: (value: V) => void,
    reject: (reason: unknown) => void,
    signal: AbortSignal | undefined,
    group: WaitGroup<V> | undefined,
  ) {
    this.#line = line;
    this.#settle = settle;
    this.#reject = reject;
    this.#signal = signal;
    this.#group = group;
  }

  join(sentinel: Link<V>): void {
    this.prev = sentinel.prev;
    this.next = sentinel;
    (sentinel.prev as Link<V>).next = this;
    sentinel.prev = this;
    this.#line.size++;
    this.#group?.waiters.add(this);
    this.#signal?.addEventListener('abort', this);
  }

  receive(value: V): void {
    this.#leave();
    try {
      this.#settle(value);
    } catch (error) {
      this.#reject(error);
    }
  }

  fail(reason: unknown): void {
    this.#leave();
    this.#reject(reason);
  }

  /** The signal fired. */
  handleEvent(): void {
    this.fail(this.#signal?.reason);
  }

  #leave(): void {
    (this.prev as Link<V>).next = this.next;
    (this.next as Link<V>).prev = this.prev;
    this.#line.size--;
    this.#group?.waiters.delete(this);
    this.#signal?.removeEventListener('abort', this);
  }
}
