/** The npm package timer-wheel: objects in wheels of lists, pulled by whoever calls `advance`. */
import { TimerWheel, type TimerHandle } from 'timer-wheel';
import type { DelaySequence, RandomPlaces } from './delay-sequence.ts';
import { checkWaiting, emptyRing, keepOne, type TimerKind, type WaitingSet } from './waiting-set.ts';

/** Past every delay and inside the 32 bits the package shifts: `advance` to there returns all that waits. */
const PAST_ALL_MS = 2 ** 31;

class PackageRequest {
  declare readonly id: number;
  declare readonly handle: TimerHandle;

  constructor(id: number, wheel: TimerWheel<PackageRequest>, delayMs: number) {
    this.id = id;
    this.handle = wheel.schedule(this, delayMs);
  }
}

class PackageWaitingSet implements WaitingSet {
  readonly #wheel = new TimerWheel<PackageRequest>();
  readonly #ring: (PackageRequest | undefined)[];
  readonly #delays: DelaySequence;
  #oldest = 0;
  #expected = 0;

  constructor(size: number, delays: DelaySequence) {
    this.#ring = emptyRing(size);
    this.#delays = delays;
  }

  fill(): void {
    const ring = this.#ring;
    const wheel = this.#wheel;
    const delays = this.#delays;
    for (let place = 0; place < ring.length; place++) {
      ring[place] = new PackageRequest(place, wheel, delays.next());
    }
    this.#expected = ring.length;
  }

  replaceOldest(count: number): void {
    const ring = this.#ring;
    const wheel = this.#wheel;
    const delays = this.#delays;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      ring[place]?.handle.remove();
      ring[place] = new PackageRequest(place, wheel, delays.next());
      place = place + 1 === ring.length ? 0 : place + 1;
    }
    this.#oldest = place;
  }

  replaceRandom(count: number, places: RandomPlaces): void {
    const ring = this.#ring;
    const wheel = this.#wheel;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const place = places.next();
      ring[place]?.handle.remove();
      ring[place] = new PackageRequest(place, wheel, delays.next());
    }
  }

  addAndCancel(count: number): void {
    const ring = this.#ring;
    const wheel = this.#wheel;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const request = new PackageRequest(done, wheel, delays.next());
      ring[0] = request;
      request.handle.remove();
    }
  }

  /** The package counts nothing, so everything is taken out and counted. */
  check(): string | undefined {
    return checkWaiting(new Set(this.#wheel.advance(PAST_ALL_MS)).size, this.#expected, 0);
  }

  close(): void {
    keepOne(this.#ring);
  }
}

export const packageTimers: TimerKind = {
  name: 'timer-wheel',
  role: 'rival',
  open: (size, delays) => new PackageWaitingSet(size, delays),
};
