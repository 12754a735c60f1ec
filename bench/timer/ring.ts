/**
 * A ring of requests, each with its timeout, and the loops that the cases measure.
 *
 *      ring   [ r0 ][ r1 ][ r2 ] … [ rN ]        replaceOldest: cancel r0, a new request takes its place, then r1, …
 *               ▲ oldest
 *
 * Loaded once for each kind of timer (see `instanceFor`), so that each loop is compiled for one class of requests.
 */
import { systemClock } from 'escapement';
import type { Checked } from '../lib/kinds.ts';
import { expectCount } from '../lib/part.ts';
import type { DelaySequence, SeededRandom } from '../lib/random.ts';

/** The object of a user that holds its timeout. Its constructor starts the timeout. */
export interface Request<Timers> {
  /** @returns false if there was nothing to cancel. */
  cancel(timers: Timers): boolean;
}

/** How a kind of timer makes, counts and releases requests. `Timers` is what they are added to. */
export interface TimerKind<Timers, R extends Request<Timers>> {
  /** @param nowMs - the time when the loop started, as a program has it that reads the clock once a turn. */
  readonly Request: new (id: number, timers: Timers, delayMs: number, nowMs: number) => R;
  readonly open: () => Timers;
  /** Counts the pending requests. @param cancelled - a request that must not be pending. */
  readonly pending: (timers: Timers, ring: readonly (R | undefined)[], cancelled: R | undefined) => number;
  readonly close: (timers: Timers, ring: readonly (R | undefined)[]) => void;
}

export interface Ring extends Checked {
  /** Makes a request for every place. Call it once. */
  fill(): void;
  /** Cancels the oldest request and puts a new one in its place, `count` times. */
  replaceOldest(count: number): void;
  /** The same at random places. */
  replaceRandom(count: number, random: SeededRandom): void;
  /** Makes a request and cancels it, `count` times. No other request is pending. */
  addAndCancel(count: number): void;
  close(): void;
}

/** @param expired - returns the number of requests that have expired, which must be 0. */
export function openRing<Timers, R extends Request<Timers>>(
  kind: TimerKind<Timers, R>,
  size: number,
  delays: DelaySequence,
  expired: () => number,
): Ring {
  const { Request } = kind;
  const timers = kind.open();
  /** Allocated beforehand, so that a fill does not measure the array. */
  const ring = newRing<R>(size);
  let oldest = 0;
  let expected = 0;
  /** Cancellations that found nothing to cancel. */
  let misses = 0;
  let cancelled: R | undefined;

  const replace = (place: number, nowMs: number): void => {
    if (ring[place]?.cancel(timers) !== true) misses++;
    ring[place] = new Request(place, timers, delays.next(), nowMs);
  };

  return {
    fill: () => {
      const nowMs = systemClock.now();
      for (let place = 0; place < size; place++) {
        ring[place] = new Request(place, timers, delays.next(), nowMs);
      }
      expected = size;
    },
    replaceOldest: (count) => {
      const nowMs = systemClock.now();
      cancelled = ring[oldest];
      for (let done = 0; done < count; done++) {
        replace(oldest, nowMs);
        oldest = oldest + 1 === size ? 0 : oldest + 1;
      }
    },
    replaceRandom: (count, random) => {
      const nowMs = systemClock.now();
      for (let done = 0; done < count; done++) replace(random.nextInt(size), nowMs);
    },
    addAndCancel: (count) => {
      const nowMs = systemClock.now();
      for (let done = 0; done < count; done++) {
        const request = new Request(done, timers, delays.next(), nowMs);
        ring[0] = request;
        if (!request.cancel(timers)) misses++;
      }
    },
    check: () =>
      misses > 0
        ? `${misses} cancellations found nothing to cancel`
        : checkPending(kind.pending(timers, ring, cancelled), expected, expired()),
    close: () => {
      kind.close(timers, ring);
      keepOne(ring);
    },
  };
}

/** An array whose backing store is allocated already. */
export function newRing<T>(size: number): (T | undefined)[] {
  return new Array<T | undefined>(size).fill(undefined);
}

/** Releases everything but one: a closed ring that is kept keeps the shape of its requests in use (see `keepFirst`). */
export function keepOne(ring: unknown[]): void {
  ring.length = Math.min(ring.length, 1);
}

export function checkPending(pending: number, expected: number, expired: number): string | undefined {
  if (expired !== 0) return `${expired} timers expired during the run`;
  return expectCount(pending, expected, 'timers are pending');
}
