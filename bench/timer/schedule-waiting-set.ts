/** Ours, by id: the request holds what `schedule` returned. */
import { SystemTimer, type TimerId } from 'escapement';
import type { DelaySequence, RandomPlaces } from './delay-sequence.ts';
import { checkWaiting, emptyRing, keepOne, type TimerKind, type WaitingSet } from './waiting-set.ts';

let fired = 0;

class ScheduledRequest {
  declare readonly id: number;
  declare readonly timerId: TimerId;

  constructor(id: number, timer: SystemTimer, delayMs: number) {
    this.id = id;
    this.timerId = timer.schedule(delayMs, expire, this);
  }
}

function expire(request: ScheduledRequest): void {
  fired += request.id < 0 ? 0 : 1;
}

class ScheduleWaitingSet implements WaitingSet {
  readonly #timer = new SystemTimer();
  readonly #ring: (ScheduledRequest | undefined)[];
  readonly #delays: DelaySequence;
  #oldest = 0;
  #expected = 0;
  /** Cancellations that found nothing to cancel. */
  #misses = 0;

  constructor(size: number, delays: DelaySequence) {
    this.#ring = emptyRing(size);
    this.#delays = delays;
    fired = 0;
  }

  fill(): void {
    const ring = this.#ring;
    const timer = this.#timer;
    const delays = this.#delays;
    for (let place = 0; place < ring.length; place++) {
      ring[place] = new ScheduledRequest(place, timer, delays.next());
    }
    this.#expected = ring.length;
  }

  replaceOldest(count: number): void {
    const ring = this.#ring;
    const timer = this.#timer;
    const delays = this.#delays;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      this.#cancel(ring[place]);
      ring[place] = new ScheduledRequest(place, timer, delays.next());
      place = place + 1 === ring.length ? 0 : place + 1;
    }
    this.#oldest = place;
  }

  replaceRandom(count: number, places: RandomPlaces): void {
    const ring = this.#ring;
    const timer = this.#timer;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const place = places.next();
      this.#cancel(ring[place]);
      ring[place] = new ScheduledRequest(place, timer, delays.next());
    }
  }

  addAndCancel(count: number): void {
    const ring = this.#ring;
    const timer = this.#timer;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const request = new ScheduledRequest(done, timer, delays.next());
      ring[0] = request;
      this.#cancel(request);
    }
  }

  check(): string | undefined {
    if (this.#misses > 0) return `${this.#misses} cancellations found nothing to cancel`;
    return checkWaiting(this.#timer.size, this.#expected, fired);
  }

  close(): void {
    this.#timer.close();
    keepOne(this.#ring);
  }

  #cancel(request: ScheduledRequest | undefined): void {
    if (request === undefined || !this.#timer.cancel(request.timerId)) this.#misses++;
  }
}

export const scheduledTimers: TimerKind = {
  name: 'ours: schedule',
  role: 'ours',
  open: (size, delays) => new ScheduleWaitingSet(size, delays),
};
