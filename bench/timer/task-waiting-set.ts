/** Ours, as a class: the request is a `TimerTask`. */
import { SystemTimer, TimerTask } from 'escapement';
import type { DelaySequence, RandomPlaces } from './delay-sequence.ts';
import { checkWaiting, emptyRing, keepOne, type TimerKind, type WaitingSet } from './waiting-set.ts';

let fired = 0;

class TaskRequest extends TimerTask {
  declare readonly id: number;

  constructor(id: number, delayMs: number) {
    super(delayMs);
    this.id = id;
  }

  run(): void {
    fired++;
  }
}

class TaskWaitingSet implements WaitingSet {
  readonly #timer = new SystemTimer();
  readonly #ring: (TaskRequest | undefined)[];
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
      const request = new TaskRequest(place, delays.next());
      ring[place] = request;
      timer.add(request);
    }
    this.#expected = ring.length;
  }

  replaceOldest(count: number): void {
    const ring = this.#ring;
    const timer = this.#timer;
    const delays = this.#delays;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      if (ring[place]?.cancel() !== true) this.#misses++;
      const request = new TaskRequest(place, delays.next());
      ring[place] = request;
      timer.add(request);
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
      if (ring[place]?.cancel() !== true) this.#misses++;
      const request = new TaskRequest(place, delays.next());
      ring[place] = request;
      timer.add(request);
    }
  }

  addAndCancel(count: number): void {
    const ring = this.#ring;
    const timer = this.#timer;
    const delays = this.#delays;
    for (let done = 0; done < count; done++) {
      const request = new TaskRequest(done, delays.next());
      ring[0] = request;
      timer.add(request);
      if (!request.cancel()) this.#misses++;
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
}

export const taskTimers: TimerKind = {
  name: 'ours: TimerTask',
  role: 'ours',
  open: (size, delays) => new TaskWaitingSet(size, delays),
};
