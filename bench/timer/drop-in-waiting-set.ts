/** Ours, as what takes the place of the host's functions: the request holds its timeout. */
import { clearTimeout, setTimeout, type Timeout } from 'escapement/timers';
import type { DelaySequence, RandomPlaces } from './delay-sequence.ts';
import { emptyRing, keepOne, type TimerKind, type WaitingSet } from './waiting-set.ts';

let fired = 0;

class DropInRequest {
  declare readonly id: number;
  declare readonly timeout: Timeout;

  constructor(id: number, delayMs: number) {
    this.id = id;
    this.timeout = setTimeout(expire, delayMs, this);
  }
}

function expire(request: DropInRequest): void {
  fired += request.id < 0 ? 0 : 1;
}

class DropInWaitingSet implements WaitingSet {
  readonly #ring: (DropInRequest | undefined)[];
  readonly #delays: DelaySequence;
  #oldest = 0;
  #lastCleared: Timeout | undefined;
  #isFull = false;

  constructor(size: number, delays: DelaySequence) {
    this.#ring = emptyRing(size);
    this.#delays = delays;
    fired = 0;
  }

  fill(): void {
    const ring = this.#ring;
    const delays = this.#delays;
    for (let place = 0; place < ring.length; place++) ring[place] = new DropInRequest(place, delays.next());
    this.#isFull = true;
  }

  replaceOldest(count: number): void {
    const ring = this.#ring;
    const delays = this.#delays;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      clearTimeout(ring[place]?.timeout);
      if (done === 0) this.#lastCleared = ring[place]?.timeout;
      ring[place] = new DropInRequest(place, delays.next());
      place = place + 1 === ring.length ? 0 : place + 1;
    }
    this.#oldest = place;
  }

  replaceRandom(count: number, places: RandomPlaces): void {
    const ring = this.#ring;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const place = places.next();
      clearTimeout(ring[place]?.timeout);
      if (done === 0) this.#lastCleared = ring[place]?.timeout;
      ring[place] = new DropInRequest(place, delays.next());
    }
  }

  addAndCancel(count: number): void {
    const ring = this.#ring;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const request = new DropInRequest(done, delays.next());
      ring[0] = request;
      clearTimeout(request.timeout);
      if (done === 0) this.#lastCleared = request.timeout;
    }
  }

  /** Like the host, the functions do not say how many wait: a timeout that was cleared has no callback any more. */
  check(): string | undefined {
    if (fired > 0) return `${fired} timers fell due during the run`;
    if (isWaiting(this.#lastCleared)) return 'a timeout that was cleared still waits';
    const waiting = this.#ring.filter((request) => isWaiting(request?.timeout)).length;
    const expected = this.#isFull ? this.#ring.length : 0;
    return waiting === expected ? undefined : `${waiting} timers wait, not ${expected}`;
  }

  close(): void {
    for (const request of this.#ring) clearTimeout(request?.timeout);
    keepOne(this.#ring);
  }
}

function isWaiting(timeout: Timeout | undefined): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the one thing that tells
  return typeof timeout?._onTimeout === 'function';
}

export const dropInTimers: TimerKind = {
  name: 'ours: setTimeout',
  role: 'ours',
  open: (size, delays) => new DropInWaitingSet(size, delays),
};
