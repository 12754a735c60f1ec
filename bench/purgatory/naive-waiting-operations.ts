/** A host timeout for each, and a Map of Sets. */
import { NaiveOperation, NaivePurgatory } from './naive-purgatory.ts';
import {
  Counts,
  distinctKeys,
  LONG_MS,
  type PurgatoryKind,
  type WaitingOperations,
} from './waiting-operations.ts';

class FlagOperation extends NaiveOperation {
  declare readonly counts: Counts;
  declare holds: boolean;

  constructor(counts: Counts) {
    super(LONG_MS);
    this.counts = counts;
    this.holds = false;
  }

  tryComplete(): boolean {
    return this.holds && this.forceComplete();
  }

  onComplete(): void {
    this.counts.completed++;
  }

  onExpiration(): void {
    this.counts.expired++;
  }
}

class NaiveWaitingOperations implements WaitingOperations {
  readonly #purgatory = new NaivePurgatory();
  readonly #size: number;
  readonly #keys: readonly (readonly string[])[];
  readonly #ring: FlagOperation[] = [];
  readonly #counts = new Counts();
  #oldest = 0;

  constructor(size: number, ringSize: number) {
    this.#size = size;
    this.#keys = distinctKeys(size).slice(0, ringSize);
    this.#fill(distinctKeys(size).slice(ringSize));
  }

  #fill(others: readonly (readonly string[])[]): void {
    for (const keys of others) this.#purgatory.tryCompleteElseWatch(new FlagOperation(this.#counts), keys);
    for (const keys of this.#keys) {
      const operation = new FlagOperation(this.#counts);
      this.#ring.push(operation);
      this.#purgatory.tryCompleteElseWatch(operation, keys);
    }
  }

  checkOldest(count: number): void {
    const purgatory = this.#purgatory;
    const ring = this.#ring;
    const counts = this.#counts;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      const keys = this.#keys[place] as readonly string[];
      (ring[place] as FlagOperation).holds = true;
      counts.said += purgatory.checkAndComplete(keys[0] as string);
      const operation = new FlagOperation(counts);
      ring[place] = operation;
      purgatory.tryCompleteElseWatch(operation, keys);
      place = place + 1 === ring.length ? 0 : place + 1;
    }
    this.#oldest = place;
    counts.asked += count;
  }

  forceOldest(count: number): void {
    const purgatory = this.#purgatory;
    const ring = this.#ring;
    const counts = this.#counts;
    let place = this.#oldest;
    for (let done = 0; done < count; done++) {
      const keys = this.#keys[place] as readonly string[];
      if ((ring[place] as FlagOperation).forceComplete()) counts.said++;
      const operation = new FlagOperation(counts);
      ring[place] = operation;
      purgatory.tryCompleteElseWatch(operation, keys);
      place = place + 1 === ring.length ? 0 : place + 1;
    }
    this.#oldest = place;
    counts.asked += count;
  }

  check(): string | undefined {
    return this.#counts.check(this.#purgatory.watched, this.#size);
  }

  close(): void {
    this.#purgatory.close();
    this.#ring.length = Math.min(this.#ring.length, 1);
  }
}

export const naiveOperations: PurgatoryKind = {
  name: 'setTimeout + Map',
  role: 'baseline',
  open: (size, ringSize) => new NaiveWaitingOperations(size, ringSize),
};
