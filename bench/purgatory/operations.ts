/**
 * The operations that the cases watch, and the loops they measure, on any purgatory.
 *
 * Loaded once for each purgatory (see `instanceFor`), so that operations and loops are compiled for one base class.
 */
import { performance } from 'node:perf_hooks';
import type { Checked } from '../lib/kinds.ts';
import { expectCount } from '../lib/part.ts';
import type { CompleteBy } from './workload.ts';

/** Nothing expires before this time. */
export const LONG_MS = 30_000;
export const KEYS_PER_OPERATION = 3;

/** What the operations of all purgatories have. */
export interface Operation {
  forceComplete(): boolean;
}

export interface Purgatory {
  tryCompleteElseWatch(operation: Operation, keys: readonly string[]): boolean;
  /** @returns the number of operations it completed. */
  checkAndComplete(key: string): number;
  /** Watch entries: a pending operation has one for each of its keys. */
  readonly watched: number;
  close(): unknown;
}

export type OperationBase = abstract new (delayMs: number) => Operation;

/** Completes when its flag is set. */
export interface FlagOperation extends Operation {
  holds: boolean;
}

/** Counts what happened to flag operations, and compares it with what should have. */
export class Counts {
  /** Operations that the case completed. */
  requested = 0;
  /** Completions that the purgatory returned. */
  returned = 0;
  /** Calls of `onComplete`. */
  completed = 0;
  expired = 0;

  /** @param watched - watch entries; `size` operations should be pending. */
  check(watched: number, size: number): string | undefined {
    if (this.expired > 0) return `${this.expired} operations expired`;
    if (this.completed !== this.requested) return `${this.completed} completed, not ${this.requested}`;
    if (this.returned !== this.requested) return `completed ${this.requested}, returned ${this.returned}`;
    return expectCount(watched, size * KEYS_PER_OPERATION, 'watch entries');
  }
}

/** One key with many watchers: the state that their conditions read, and what its checks did. */
export class Crowd {
  /** Id of the operation whose condition holds; -1 if there is none. */
  readyId = -1;
  /** Calls of `tryComplete`. */
  tries = 0;
  completed = 0;
  returned = 0;
  checks = 0;

  /** @param watched - watch entries left of `size`; each check completes one. */
  check(watched: number, size: number): string | undefined {
    const { checks } = this;
    if (this.completed !== checks) return `${checks} checks completed ${this.completed}`;
    if (this.returned !== checks) return `${checks} checks returned ${this.returned} completions`;
    if (watched !== size - checks) return `${watched} are pending, not ${size - checks}`;
    const due = checks * size - (checks * (checks - 1)) / 2; // one fewer in each check
    return this.tries === due ? undefined : `conditions were tried ${this.tries} times, not ${due}`;
  }
}

/** Counts completions: every request must complete once, some of them by their timeout. */
export class Tally {
  readonly #completions: Uint8Array;
  #completed = 0;
  #expired = 0;
  /** Called when the last request completes. */
  onAllDone: () => void = () => undefined;

  constructor(size: number) {
    this.#completions = new Uint8Array(size);
  }

  get completed(): number {
    return this.#completed;
  }

  get expired(): number {
    return this.#expired;
  }

  complete(id: number): void {
    this.#completions[id] = (this.#completions[id] ?? 0) + 1;
    if (++this.#completed === this.#completions.length) this.onAllDone();
  }

  expire(): void {
    this.#expired++;
  }

  check(): string | undefined {
    const wrong = this.#completions.findIndex((completions) => completions !== 1);
    return wrong === -1 ? undefined : `request ${wrong} completed ${this.#completions[wrong] ?? 0} times`;
  }
}

/** A request of the harness, which completes before its timeout if its latency is shorter. */
export interface HarnessRequest extends Operation {
  readonly completesAtMs: number;
  /** Whether its timeout ended first. */
  readonly hasExpired: boolean;
}

export interface OperationClasses {
  readonly Flag: new (counts: Counts) => FlagOperation;
  /** Watches a crowded key. */
  readonly Watcher: new (id: number, crowd: Crowd) => Operation;
  /** Never completes before its timeout. */
  readonly Timeout: new (id: number, tally: Tally, delayMs: number) => Operation;
  readonly Request: new (id: number, latencyMs: number, timeoutMs: number, tally: Tally) => HarnessRequest;
}

export function operationsOn(Base: OperationBase): OperationClasses {
  class Flag extends Base {
    declare readonly counts: Counts;
    declare holds: boolean;

    constructor(counts: Counts) {
      super(LONG_MS);
      this.counts = counts;
      this.holds = false;
    }

    tryComplete(): boolean {
      return this.holds && this.forceComplete();
    }

    onComplete(): void {
      this.counts.completed++;
    }

    onExpiration(): void {
      this.counts.expired++;
    }
  }

  class Watcher extends Base {
    declare readonly id: number;
    declare readonly crowd: Crowd;

    constructor(id: number, crowd: Crowd) {
      super(LONG_MS);
      this.id = id;
      this.crowd = crowd;
    }

    tryComplete(): boolean {
      this.crowd.tries++;
      return this.crowd.readyId === this.id && this.forceComplete();
    }

    onComplete(): void {
      this.crowd.completed++;
    }

    onExpiration(): void {
      throw new Error('a watcher expired');
    }
  }

  class Timeout extends Base {
    declare readonly id: number;
    declare readonly tally: Tally;

    constructor(id: number, tally: Tally, delayMs: number) {
      super(delayMs);
      this.id = id;
      this.tally = tally;
    }

    tryComplete(): boolean {
      return false;
    }

    onComplete(): void {
      // Counted in onExpiration, so that the last one is counted as expired before the run ends.
    }

    onExpiration(): void {
      this.tally.expire();
      this.tally.complete(this.id);
    }
  }

  class Request extends Base {
    declare readonly id: number;
    declare readonly completesAtMs: number;
    declare readonly tally: Tally;
    declare hasExpired: boolean;

    constructor(id: number, latencyMs: number, timeoutMs: number, tally: Tally) {
      super(timeoutMs);
      this.id = id;
      this.completesAtMs = performance.now() + latencyMs;
      this.tally = tally;
      this.hasExpired = false;
    }

    tryComplete(): boolean {
      return performance.now() >= this.completesAtMs && this.forceComplete();
    }

    onComplete(): void {
      this.tally.complete(this.id);
    }

    onExpiration(): void {
      this.hasExpired = true;
      this.tally.expire();
    }
  }

  return { Flag, Watcher, Timeout, Request };
}

/** Pending flag operations with keys of their own. Those in the ring complete and are replaced; the others stay. */
export class WaitingOperations implements Checked {
  readonly #purgatory: Purgatory;
  readonly #Flag: OperationClasses['Flag'];
  readonly #size: number;
  readonly #keys: readonly (readonly string[])[];
  readonly #ring: FlagOperation[] = [];
  readonly #counts = new Counts();
  #oldest = 0;

  constructor(purgatory: Purgatory, Flag: OperationClasses['Flag'], size: number, ringSize: number) {
    this.#purgatory = purgatory;
    this.#Flag = Flag;
    this.#size = size;
    const keys = distinctKeys(size);
    this.#keys = keys.slice(0, ringSize);
    for (const others of keys.slice(ringSize)) purgatory.tryCompleteElseWatch(new Flag(this.#counts), others);
    for (const own of this.#keys) {
      const operation = new Flag(this.#counts);
      this.#ring.push(operation);
      purgatory.tryCompleteElseWatch(operation, own);
    }
  }

  /** Completes the oldest, by a check of its first key or by force, and watches a new one under its keys, `count` times. */
  replaceOldest(count: number, completeBy: CompleteBy): void {
    const purgatory = this.#purgatory;
    const Flag = this.#Flag;
    const ring = this.#ring;
    const counts = this.#counts;
    const isForced = completeBy === 'force';
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      const keys = this.#keys[place] as readonly string[];
      const oldest = ring[place] as FlagOperation;
      if (isForced) {
        if (oldest.forceComplete()) counts.returned++;
      } else {
        oldest.holds = true;
        counts.returned += purgatory.checkAndComplete(keys[0] as string);
      }
      const operation = new Flag(counts);
      ring[place] = operation;
      purgatory.tryCompleteElseWatch(operation, keys);
      place = place + 1 === ring.length ? 0 : place + 1;
    }
    this.#oldest = place;
    counts.requested += count;
  }

  check(): string | undefined {
    return this.#counts.check(this.#purgatory.watched, this.#size);
  }

  close(): void {
    this.#purgatory.close();
    this.#ring.length = Math.min(this.#ring.length, 1);
  }
}

/** Returns the keys of each operation, which no other has. */
function distinctKeys(size: number): readonly (readonly string[])[] {
  return Array.from({ length: size }, (_, place) =>
    Array.from({ length: KEYS_PER_OPERATION }, (__, index) => `topic-${place}-${index}`),
  );
}
