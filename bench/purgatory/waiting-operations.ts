/**
 * What the micro cases ask of each purgatory: a ring of operations, each waiting under keys of its own for a flag.
 * Every kind writes the same loops anew, so that each runs at its own full speed (see `MicroRun.run`).
 */
import type { Checked, Contestant, Role } from '../lib/part.ts';

/** Nothing expires in these cases. */
export const LONG_MS = 30_000;
export const KEYS_PER_OPERATION = 3;

export interface WaitingOperations extends Checked {
  /** Completes the oldest by a check of its first key and watches a new one under the same keys, `count` times. */
  checkOldest(count: number): void;
  /** The same with `forceComplete`. */
  forceOldest(count: number): void;
}

export interface PurgatoryKind {
  readonly name: string;
  readonly role: Role;
  /** With `size` waiting, of which `ringSize` are in the ring and the others stay. */
  open(size: number, ringSize: number): WaitingOperations;
}

/** The same case for every kind. */
export function contest<Open>(
  kinds: readonly PurgatoryKind[],
  openWith: (kind: PurgatoryKind) => Open,
): Contestant<Open>[] {
  return kinds.map((kind) => ({ name: kind.name, role: kind.role, open: openWith(kind) }));
}

/** For each place its keys, shared with no other. */
export function distinctKeys(size: number): readonly (readonly string[])[] {
  return Array.from({ length: size }, (_, place) =>
    Array.from({ length: KEYS_PER_OPERATION }, (__, index) => `topic-${place}-${index}`),
  );
}

/** What happened, and what should have. */
export class Counts {
  /** Operations that were to be completed. */
  asked = 0;
  /** Completions that the purgatory spoke of. */
  said = 0;
  /** Calls of `onComplete`. */
  completed = 0;
  expired = 0;

  /** @param watched - entries there are; `size` operations should wait. */
  check(watched: number, size: number): string | undefined {
    if (this.expired > 0) return `${this.expired} operations expired`;
    if (this.completed !== this.asked) return `${this.completed} completed, not ${this.asked}`;
    if (this.said !== this.asked) return `completed ${this.asked}, and said ${this.said}`;
    const expected = size * KEYS_PER_OPERATION;
    return watched === expected ? undefined : `${watched} watch entries, not ${expected}`;
  }
}
