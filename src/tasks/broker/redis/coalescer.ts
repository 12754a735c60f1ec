import { inOwnTurn } from '../../../core/own-turn.ts';
import { isUnavailable } from '../broker-errors.ts';

interface Submitted<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (reason: unknown) => void;
}

interface Batch<T, R> {
  readonly key: string;
  readonly items: readonly Submitted<T, R>[];
  readonly bytes: number;
}

/** A script stops everything else in Redis: with that many items it takes a few milliseconds. */
const MAX_ITEMS = 500;
const MAX_BYTES = 1_048_576;

/**
 * Limits of the items in progress. Redis answers in order, and each answer has a time limit: behind a million items no operation of
 * the process would have its answer in time.
 */
const MAX_RUNNING_ITEMS = 10 * MAX_ITEMS;
const MAX_RUNNING_BYTES = 10 * MAX_BYTES;

/**
 * Collects the items that many callers submit in one turn of the event loop: they share a round trip and a script. A single item
 * waits only for the end of the turn.
 *
 * Beyond the limits, batches wait, and items that are submitted in the meantime are collected. If the broker is unavailable, the
 * batches of that key that wait fail with the one before them, so that no item waits for one time limit after the other.
 */
export class Coalescer<T, R> {
  readonly #process: (key: string, items: readonly T[]) => Promise<readonly R[]>;
  readonly #bytesOf: (item: T) => number;
  readonly #submitted = new Map<string, Submitted<T, R>[]>();
  /** The last one is next. */
  #waiting: Batch<T, R>[] = [];
  #runningItems = 0;
  #runningBytes = 0;
  #isArmed = false;

  /** @param process - processes items of one key, and returns their results in their order. */
  constructor(
    process: (key: string, items: readonly T[]) => Promise<readonly R[]>,
    bytesOf: (item: T) => number,
  ) {
    this.#process = process;
    this.#bytesOf = bytesOf;
  }

  /** @returns the result of the item. Rejects with the error of its batch. */
  submit(key: string, item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const items = this.#submitted.get(key);
      if (items === undefined) this.#submitted.set(key, [{ item, resolve, reject }]);
      else items.push({ item, resolve, reject });
      if (this.#isArmed) return;
      this.#isArmed = true;
      inOwnTurn(this.#flush);
    });
  }

  readonly #flush = (): void => {
    this.#isArmed = false;
    if (this.#waiting.length > 0) return;
    const all = [...this.#submitted];
    this.#submitted.clear();
    this.#waiting = all.flatMap(([key, items]) => [...this.#batches(key, items)]).reverse();
    this.#runNext();
  };

  *#batches(key: string, all: Submitted<T, R>[]): Generator<Batch<T, R>> {
    let first = 0;
    let bytes = 0;
    for (const [at, { item }] of all.entries()) {
      const more = this.#bytesOf(item);
      if (at > first && (at - first >= MAX_ITEMS || bytes + more > MAX_BYTES)) {
        yield { key, items: all.slice(first, at), bytes };
        first = at;
        bytes = 0;
      }
      bytes += more;
    }
    yield { key, items: first === 0 ? all : all.slice(first), bytes };
  }

  #runNext(): void {
    for (;;) {
      const next = this.#waiting.at(-1);
      if (next === undefined || !this.#fits(next)) break;
      this.#waiting.pop();
      void this.#run(next);
    }
    if (this.#waiting.length === 0 && this.#submitted.size > 0 && !this.#isArmed) this.#flush();
  }

  #fits({ items, bytes }: Batch<T, R>): boolean {
    if (this.#runningItems === 0) return true;
    return (
      this.#runningItems + items.length <= MAX_RUNNING_ITEMS &&
      this.#runningBytes + bytes <= MAX_RUNNING_BYTES
    );
  }

  async #run({ key, items, bytes }: Batch<T, R>): Promise<void> {
    this.#runningItems += items.length;
    this.#runningBytes += bytes;
    try {
      const results = await this.#process(
        key,
        items.map(({ item }) => item),
      );
      for (const [at, { resolve }] of items.entries()) resolve(results[at] as R);
    } catch (error) {
      rejectAll(items, error);
      if (isUnavailable(error)) this.#failWaiting(key, error);
    }
    this.#runningItems -= items.length;
    this.#runningBytes -= bytes;
    this.#runNext();
  }

  #failWaiting(key: string, error: unknown): void {
    const isOfKey = (batch: Batch<T, R>): boolean => batch.key === key;
    const failed = this.#waiting.filter(isOfKey);
    if (failed.length === 0) return;
    this.#waiting = this.#waiting.filter((batch) => !isOfKey(batch));
    for (const { items } of failed) rejectAll(items, error);
    rejectAll(this.#submitted.get(key) ?? [], error);
    this.#submitted.delete(key);
  }
}

function rejectAll<T, R>(items: readonly Submitted<T, R>[], error: unknown): void {
  for (const { reject } of items) reject(error);
}
