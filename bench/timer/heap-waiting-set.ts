/** Requests that wait in a binary heap (see `HeapTimer`). */
import { performance } from 'node:perf_hooks';
import type { DelaySequence, RandomPlaces } from './delay-sequence.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';
import { checkWaiting, emptyRing, keepOne, type TimerKind, type WaitingSet } from './waiting-set.ts';

let fired = 0;

class HeapRequest extends HeapEntry {
  declare readonly id: number;

  constructor(id: number) {
    super();
    this.id = id;
  }

  expire(): void {
    fired++;
  }
}

class HeapWaitingSet implements WaitingSet {
  readonly #timer = new HeapTimer(() => performance.now(), true);
  readonly #ring: (HeapRequest | undefined)[];
  readonly #delays: DelaySequence;
  #oldest = 0;
  #expected = 0;

  constructor(size: number, delays: DelaySequence) {
    this.#ring = emptyRing(size);
    this.#delays = delays;
    fired = 0;
  }

  fill(): void {
    const ring = this.#ring;
    for (let place = 0; place < ring.length; place++) this.#addAt(place);
    this.#expected = ring.length;
  }

  replaceOldest(count: number): void {
    const { length } = this.#ring;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      this.#cancelAt(place);
      this.#addAt(place);
      place = place + 1 === length ? 0 : place + 1;
    }
    this.#oldest = place;
  }

  replaceRandom(count: number, places: RandomPlaces): void {
    for (let done = 0; done < count; done++) {
      const place = places.next();
      this.#cancelAt(place);
      this.#addAt(place);
    }
  }

  addAndCancel(count: number): void {
    for (let done = 0; done < count; done++) {
      this.#addAt(0);
      this.#cancelAt(0);
    }
  }

  check(): string | undefined {
    return checkWaiting(this.#timer.size, this.#expected, fired);
  }

  close(): void {
    this.#timer.close();
    keepOne(this.#ring);
  }

  #addAt(place: number): void {
    const request = new HeapRequest(place);
    this.#ring[place] = request;
    this.#timer.add(request, this.#delays.next());
  }

  #cancelAt(place: number): void {
    const request = this.#ring[place];
    if (request !== undefined) this.#timer.cancel(request);
  }
}

export const heapTimers: TimerKind = {
  name: 'binary heap',
  role: 'rival',
  open: (size, delays) => new HeapWaitingSet(size, delays),
};
