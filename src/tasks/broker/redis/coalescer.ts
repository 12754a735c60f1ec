import { inOwnTurn } from '../../../core/own-turn.ts';
import { isUnavailable } from '../is-unavailable.ts';

/** What {@link Coalescer} is made of. */
export interface CoalescerOptions<T, R> {
  /** Does it for many, of one key. @returns one result each, in their order. */
  readonly run: (key: string, items: readonly T[]) => Promise<readonly R[]>;
  /** What one weighs, in bytes. */
  readonly bytesOf: (item: T) => number;
}

interface Asked<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (reason: unknown) => void;
}

/** What is asked for at once. */
interface Piece<T, R> {
  readonly key: string;
  readonly asked: readonly Asked<T, R>[];
  readonly bytes: number;
}

/** A script stops everything else in Redis: with so many it takes a few milliseconds at most. */
const MAX_ITEMS = 500;
const MAX_BYTES = 1_048_576;

/**
 * What is under way at most. Redis answers in order, and an answer has a limit of time: what is behind a million others would
 * not have its answer in time, and whatever else the process asks for would not either.
 */
const MAX_RUNNING_ITEMS = 10 * MAX_ITEMS;
const MAX_RUNNING_BYTES = 10 * MAX_BYTES;

/**
 * What many callers ask for in one turn of the event loop is asked for once: a round trip and a script for all of them. One
 * who is alone waits for nothing but the rest of the turn.
 *
 * Of more than can be under way the rest waits for its turn, and what is asked for meanwhile is put together with it. If the
 * broker is out of reach, what waits fails with what was before it: nobody waits for one limit of time after the other.
 */
export class Coalescer<T, R> {
  readonly #options: CoalescerOptions<T, R>;
  readonly #asked = new Map<string, Asked<T, R>[]>();
  /** The next one is the last. */
  #waiting: Piece<T, R>[] = [];
  #runningItems = 0;
  #runningBytes = 0;
  #isArmed = false;

  constructor(options: CoalescerOptions<T, R>) {
    this.#options = options;
  }

  /** @returns its result. Rejects with what made the piece that it is in fail. */
  ask(key: string, item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const asked = this.#asked.get(key);
      if (asked === undefined) this.#asked.set(key, [{ item, resolve, reject }]);
      else asked.push({ item, resolve, reject });
      if (this.#isArmed) return;
      this.#isArmed = true;
      inOwnTurn(this.#flush);
    });
  }

  readonly #flush = (): void => {
    this.#isArmed = false;
    if (this.#waiting.length > 0) return;
    const all = [...this.#asked];
    this.#asked.clear();
    this.#waiting = all.flatMap(([key, asked]) => [...this.#pieces(key, asked)]).reverse();
    this.#runNext();
  };

  *#pieces(key: string, all: Asked<T, R>[]): Generator<Piece<T, R>> {
    let first = 0;
    let bytes = 0;
    for (const [at, { item }] of all.entries()) {
      const more = this.#options.bytesOf(item);
      if (at > first && (at - first >= MAX_ITEMS || bytes + more > MAX_BYTES)) {
        yield { key, asked: all.slice(first, at), bytes };
        first = at;
        bytes = 0;
      }
      bytes += more;
    }
    yield { key, asked: first === 0 ? all : all.slice(first), bytes };
  }

  #runNext(): void {
    for (
      let next = this.#waiting.at(-1);
      next !== undefined && this.#hasRoom(next);
      next = this.#waiting.at(-1)
    ) {
      this.#waiting.pop();
      void this.#run(next);
    }
    if (this.#waiting.length === 0 && this.#asked.size > 0 && !this.#isArmed) this.#flush();
  }

  #hasRoom({ asked, bytes }: Piece<T, R>): boolean {
    if (this.#runningItems === 0) return true;
    return (
      this.#runningItems + asked.length <= MAX_RUNNING_ITEMS &&
      this.#runningBytes + bytes <= MAX_RUNNING_BYTES
    );
  }

  async #run({ key, asked, bytes }: Piece<T, R>): Promise<void> {
    this.#runningItems += asked.length;
    this.#runningBytes += bytes;
    try {
      const results = await this.#options.run(
        key,
        asked.map(({ item }) => item),
      );
      for (const [at, { resolve }] of asked.entries()) resolve(results[at] as R);
    } catch (error) {
      rejectAll(asked, error);
      if (isUnavailable(error)) this.#giveUpWaiting(key, error);
    }
    this.#runningItems -= asked.length;
    this.#runningBytes -= bytes;
    this.#runNext();
  }

  #giveUpWaiting(key: string, error: unknown): void {
    const isOfKey = (piece: Piece<T, R>): boolean => piece.key === key;
    const gone = this.#waiting.filter(isOfKey);
    if (gone.length === 0) return;
    this.#waiting = this.#waiting.filter((piece) => !isOfKey(piece));
    for (const { asked } of gone) rejectAll(asked, error);
    rejectAll(this.#asked.get(key) ?? [], error);
    this.#asked.delete(key);
  }
}

function rejectAll<T, R>(asked: readonly Asked<T, R>[], error: unknown): void {
  for (const { reject } of asked) reject(error);
}
