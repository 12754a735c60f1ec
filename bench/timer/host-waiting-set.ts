/** The host's `setTimeout` and `clearTimeout`: a request that holds its timeout. */
import type { DelaySequence, RandomPlaces } from './delay-sequence.ts';
import { checkWaiting, emptyRing, keepOne, type TimerKind, type WaitingSet } from './waiting-set.ts';

let fired = 0;

/** The request travels as `setTimeout`'s argument: cheaper than a closure a request. */
class HostRequest {
  declare readonly id: number;
  declare readonly timeout: NodeJS.Timeout;

  constructor(id: number, delayMs: number) {
    this.id = id;
    this.timeout = setTimeout(expire, delayMs, this);
  }
}

function expire(request: HostRequest): void {
  fired += request.id < 0 ? 0 : 1;
}

/** What keeps the process alive, as the host itself counts it. */
export function activeTimeouts(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}

class HostWaitingSet implements WaitingSet {
  readonly #ring: (HostRequest | undefined)[];
  readonly #delays: DelaySequence;
  readonly #foreign = activeTimeouts();
  #oldest = 0;
  #expected = 0;

  constructor(size: number, delays: DelaySequence) {
    this.#ring = emptyRing(size);
    this.#delays = delays;
    fired = 0;
  }

  fill(): void {
    const ring = this.#ring;
    const delays = this.#delays;
    for (let place = 0; place < ring.length; place++) ring[place] = new HostRequest(place, delays.next());
    this.#expected = ring.length;
  }

  replaceOldest(count: number): void {
    const ring = this.#ring;
    const delays = this.#delays;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      clearTimeout(ring[place]?.timeout);
      ring[place] = new HostRequest(place, delays.next());
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
      ring[place] = new HostRequest(place, delays.next());
    }
  }

  addAndCancel(count: number): void {
    const ring = this.#ring;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const request = new HostRequest(done, delays.next());
      ring[0] = request;
      clearTimeout(request.timeout);
    }
  }

  check(): string | undefined {
    return checkWaiting(activeTimeouts() - this.#foreign, this.#expected, fired);
  }

  close(): void {
    for (const request of this.#ring) clearTimeout(request?.timeout);
    keepOne(this.#ring);
  }
}

export const hostTimers: TimerKind = {
  name: 'setTimeout',
  role: 'baseline',
  open: (size, delays) => new HostWaitingSet(size, delays),
};
