/**
 * The operations that the cases watch, and the loop they measure, on any purgatory.
 *
 * Loaded once for each purgatory (see `instanceFor`), so that operations and loops are compiled for one base class.
 */
import { performance } from 'node:perf_hooks';
import type { Checked } from '../lib/kinds.ts';
import { expectCount } from '../lib/part.ts';
import { Tally } from '../lib/work.ts';

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

/** How the oldest operation completes: by a check of its first key, or by `forceComplete`. */
export type CompleteBy = 'check' | 'force';

/** The state that the conditions of watchers read, and what they did. */
export class Crowd {
  /** Id of the operation whose condition holds; -1 if there is none. */
  readyId = -1;
  /** Calls of `tryComplete`. */
  tries = 0;
  completed = 0;
  expired = 0;
}

/** Every request must complete once, some of them by their timeout. */
export class RequestTally extends Tally {
  expired = 0;
}

/** A request of the harness, which completes before its timeout if its latency is shorter. */
export interface HarnessRequest extends Operation {
  readonly completesAtMs: number;
  /** Whether its timeout ended first. */
  readonly hasExpired: boolean;
}

export type OperationClasses = ReturnType<typeof operationsOn>;

// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- the classes are the type
export function operationsOn(Base: OperationBase) {
  /** Completes when its id is the one that is ready. */
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
      this.crowd.expired++;
    }
  }

  class Request extends Base implements HarnessRequest {
    declare readonly id: number;
    declare readonly completesAtMs: number;
    declare readonly tally: RequestTally;
    declare hasExpired: boolean;

    constructor(id: number, latencyMs: number, timeoutMs: number, tally: RequestTally) {
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
      this.tally.expired++;
    }
  }

  return { Watcher, Request };
}

export interface WaitingOperations extends Checked {
  /** Completes the oldest, by a check of its first key or by force, and watches a new one under its keys, `count` times. */
  replaceOldest(count: number, completeBy: CompleteBy): void;
}

/** Opens pending watchers with keys of their own. Those in the ring complete and are replaced; the others stay. */
export function openWaiting(
  purgatory: Purgatory,
  Watcher: OperationClasses['Watcher'],
  size: number,
  ringSize: number,
): WaitingOperations {
  const crowd = new Crowd();
  const watch = (keys: readonly string[], id: number): Operation => {
    const operation = new Watcher(id, crowd);
    purgatory.tryCompleteElseWatch(operation, keys);
    return operation;
  };
  const all = distinctKeys(size);
  const ringKeys = all.slice(0, ringSize);
  const ring = all.map(watch).slice(0, ringSize);
  let oldest = 0;
  /** Operations that the loop completed, and completions that the purgatory returned. */
  let requested = 0;
  let returned = 0;
  return {
    replaceOldest: (count, completeBy) => {
      const isForced = completeBy === 'force';
      for (let done = 0; done < count; done++) {
        const keys = ringKeys[oldest] as readonly string[];
        if (isForced) {
          if ((ring[oldest] as Operation).forceComplete()) returned++;
        } else {
          crowd.readyId = oldest;
          returned += purgatory.checkAndComplete(keys[0] as string);
          crowd.readyId = -1;
        }
        ring[oldest] = watch(keys, oldest);
        oldest = oldest + 1 === ring.length ? 0 : oldest + 1;
      }
      requested += count;
    },
    check: () =>
      expectCount(crowd.expired, 0, 'operations expired') ??
      expectCount(crowd.completed, requested, 'operations completed') ??
      expectCount(returned, requested, 'completions returned') ??
      expectCount(purgatory.watched, size * KEYS_PER_OPERATION, 'watch entries'),
    close: () => {
      purgatory.close();
      ring.length = Math.min(ring.length, 1);
    },
  };
}

/** Returns the keys of each operation, which no other has. */
function distinctKeys(size: number): readonly (readonly string[])[] {
  return Array.from({ length: size }, (_, place) =>
    Array.from({ length: KEYS_PER_OPERATION }, (__, index) => `topic-${place}-${index}`),
  );
}
