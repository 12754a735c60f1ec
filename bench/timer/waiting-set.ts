/**
 * What the cases ask of each kind of timer: a ring of requests, each with its timeout, all waiting. Every kind
 * writes the same loops anew, so that each runs at its own full speed (see `MicroRun.run`).
 */
import type { Checked, Contestant, Role } from '../lib/part.ts';
import type { DelaySequence, RandomPlaces } from './delay-sequence.ts';

export interface WaitingSet extends Checked {
  /** A request with a timeout for every place. Call it once. */
  fill(): void;
  /** Cancels the oldest request and puts a new one in its place, `count` times. */
  replaceOldest(count: number): void;
  /** The same at places that come from `places`. */
  replaceRandom(count: number, places: RandomPlaces): void;
  /** Makes a request and cancels it, `count` times. Nothing else waits. */
  addAndCancel(count: number): void;
}

export interface TimerKind {
  readonly name: string;
  readonly role: Role;
  readonly note?: string;
  /** Room for `size` requests, made beforehand, so that a fill is not charged for the array that holds them. */
  open(size: number, delays: DelaySequence): WaitingSet;
}

/** The same case for every kind. */
export function contest<Open>(
  kinds: readonly TimerKind[],
  openWith: (kind: TimerKind) => Open,
): Contestant<Open>[] {
  return kinds.map((kind) => ({ name: kind.name, role: kind.role, open: openWith(kind) }));
}

/** An array whose backing store is there already, and stays as it is. */
export function emptyRing<T>(size: number): (T | undefined)[] {
  return new Array<T | undefined>(size).fill(undefined);
}

/** Lets go of everything but one: a closed set that is kept keeps the shape of its requests in use. */
export function keepOne(ring: unknown[]): void {
  ring.length = Math.min(ring.length, 1);
}

/** What is wrong with a set in which `expected` requests should wait and none should have fallen due. */
export function checkWaiting(waiting: number, expected: number, fired: number): string | undefined {
  if (fired !== 0) return `${fired} timers fell due during the run`;
  return waiting === expected ? undefined : `${waiting} timers wait, not ${expected}`;
}
