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

interface RingKind<Timers, R extends Request<Timers>> extends TimerKind<Timers, R> {
  /** Number of requests that have expired, which must be 0. */
  readonly expired: () => number;
}

export class Ring<Timers, R extends Request<Timers>> implements Checked {
  readonly #kind: RingKind<Timers, R>;
  readonly #timers: Timers;
  readonly #delays: DelaySequence;
  /** Allocated beforehand, so that a fill does not measure the array. */
  readonly #ring: (R | undefined)[];
  #oldest = 0;
  #expected = 0;
  /** Cancellations that found nothing to cancel. */
  #misses = 0;
  #cancelled: R | undefined;

  constructor(kind: RingKind<Timers, R>, size: number, delays: DelaySequence, timers = kind.open()) {
    this.#kind = kind;
    this.#timers = timers;
    this.#delays = delays;
    this.#ring = newRing(size);
  }

  /** Makes a request for every place. Call it once. */
  fill(): void {
    const ring = this.#ring;
    const timers = this.#timers;
    const delays = this.#delays;
    const { Request } = this.#kind;
    const nowMs = systemClock.now();
    for (let place = 0; place < ring.length; place++)
      ring[place] = new Request(place, timers, delays.next(), nowMs);
    this.#expected = ring.length;
  }

  /** Cancels the oldest request and puts a new one in its place, `count` times. */
  replaceOldest(count: number): void {
    const ring = this.#ring;
    const timers = this.#timers;
    const delays = this.#delays;
    const { Request } = this.#kind;
    const nowMs = systemClock.now();
    let place = this.#oldest;
    this.#cancelled = ring[place];
    for (let done = 0; done < count; done++) {
      if (ring[place]?.cancel(timers) !== true) this.#misses++;
      ring[place] = new Request(place, timers, delays.next(), nowMs);
      place = place + 1 === ring.length ? 0 : place + 1;
    }
    this.#oldest = place;
  }

  /** The same at random places. */
  replaceRandom(count: number, random: SeededRandom): void {
    const ring = this.#ring;
    const timers = this.#timers;
    const delays = this.#delays;
    const { Request } = this.#kind;
    const nowMs = systemClock.now();
    for (let done = 0; done < count; done++) {
      const place = random.nextInt(ring.length);
      if (ring[place]?.cancel(timers) !== true) this.#misses++;
      ring[place] = new Request(place, timers, delays.next(), nowMs);
    }
  }

  /** Makes a request and cancels it, `count` times. No other request is pending. */
  addAndCancel(count: number): void {
    const ring = this.#ring;
    const timers = this.#timers;
    const delays = this.#delays;
    const { Request } = this.#kind;
    const nowMs = systemClock.now();
    for (let done = 0; done < count; done++) {
      const request = new Request(done, timers, delays.next(), nowMs);
      ring[0] = request;
      if (!request.cancel(timers)) this.#misses++;
    }
  }

  cancelAll(): void {
    for (const request of this.#ring) if (request?.cancel(this.#timers) !== true) this.#misses++;
    this.#expected = 0;
  }

  check(): string | undefined {
    if (this.#misses > 0) return `${this.#misses} cancellations found nothing to cancel`;
    const pending = this.#kind.pending(this.#timers, this.#ring, this.#cancelled);
    return checkPending(pending, this.#expected, this.#kind.expired());
  }

  close(): void {
    this.#kind.close(this.#timers, this.#ring);
    keepOne(this.#ring);
  }
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
