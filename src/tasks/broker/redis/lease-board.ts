import type { LeaseId } from './extend-leases.ts';

/** Longest id that has room in its place, in characters: an UUID has 36. */
const ID_LENGTH = 42;

/** Whatever characters they are: to count their bytes first takes as long as to write them. */
const ID_BYTES = 3 * ID_LENGTH;

/** In the place of the length of an id that has no room: the thread is told of it. */
const TOLD = 0xff_ff;

/** Generations begin anew after that. */
const LAST_GENERATION = 2 ** 31 - 1;

/** The memory that both have. Arrays of places, except `asleep`. */
export interface LeaseCells {
  /** One number: 1 if the thread does not look at the board, and must be woken. */
  readonly asleep: Int32Array<SharedArrayBuffer>;
  /** 0 for a place that is free; another number for each task that is in it. */
  readonly generations: Int32Array<SharedArrayBuffer>;
  readonly epochs: Float64Array<SharedArrayBuffer>;
  /** Until when it may be renewed; 0 for ever. */
  readonly endsMs: Float64Array<SharedArrayBuffer>;
  /** Until when it was renewed: all that the thread writes. */
  readonly renewedMs: Float64Array<SharedArrayBuffer>;
  /** Index of its queue. */
  readonly queues: Uint16Array<SharedArrayBuffer>;
  readonly idLengths: Uint16Array<SharedArrayBuffer>;
  /** UTF-8, `ID_BYTES` for each place. */
  readonly ids: Uint8Array<SharedArrayBuffer>;
}

/** An id that has no room on the board. */
export interface LongId {
  readonly place: number;
  readonly generation: number;
  readonly id: string;
}

/** A lease on the board. */
export interface HeldLease extends LeaseId {
  readonly place: number;
  readonly generation: number;
  readonly queue: number;
}

/**
 * The leases of a server, in memory that it shares with a thread.
 *
 *     place          0          1          2
 *     generation   │ 17       │ 0: free  │ 18       │   ◄── main: written last, freed first
 *     id, queue, … │ 9f3c…  0 │          │ 41d0…  0 │   ◄── main
 *     renewed      │ 12:00:30 │          │ 0        │   ◄── thread
 *
 * WHY not messages: each costs both sides microseconds and wakes the thread, and thousands of tasks a second are over long
 * before their lease is. Here a task costs some writes, the thread looks six times in a lease, and nobody waits for anybody:
 * a loop that is held the next moment has said all there is to say.
 *
 * WHY without locks: what the thread reads while it is written is the id of one task and the epoch of another, and no task has
 * that lease: Redis says that it is lost, and the generation that was read is over by then. A renewal that is written to a
 * place that has another task meanwhile is of an earlier lease, and ends before that one's does.
 */
export class LeaseBoard {
  readonly #cells: LeaseCells;
  readonly #bytes: Buffer;
  #generation = 0;

  constructor(cells: LeaseCells) {
    this.#cells = cells;
    this.#bytes = Buffer.from(cells.ids.buffer);
  }

  get places(): number {
    return this.#cells.generations.length;
  }

  // The one who has tasks.

  /** @returns the id, if the thread must be told of it. */
  put(place: number, { id, epoch }: LeaseId, queue: number, untilMs: number): LongId | undefined {
    const { generations, epochs, endsMs, renewedMs, queues, idLengths } = this.#cells;
    const generation = (this.#generation % LAST_GENERATION) + 1;
    const isLong = id.length > ID_LENGTH;
    this.#generation = generation;
    epochs[place] = epoch;
    endsMs[place] = untilMs;
    renewedMs[place] = 0;
    queues[place] = queue;
    idLengths[place] = isLong ? TOLD : this.#bytes.write(id, place * ID_BYTES);
    Atomics.store(generations, place, generation);
    return isLong ? { place, generation, id } : undefined;
  }

  free(place: number): void {
    Atomics.store(this.#cells.generations, place, 0);
  }

  renewedUntilMs(place: number): number {
    return this.#cells.renewedMs[place] ?? 0;
  }

  /** Whether the thread sleeps, and the caller is the one to wake it. */
  mustWake(): boolean {
    const { asleep } = this.#cells;
    return Atomics.load(asleep, 0) === 1 && Atomics.exchange(asleep, 0, 0) === 1;
  }

  // The thread.

  /** From now on who puts something there wakes us. What came just before it has woken nobody: look once more. */
  sleep(): void {
    Atomics.store(this.#cells.asleep, 0, 1);
  }

  /** 0 if it is free, or may not be renewed any more. */
  generationAt(place: number, nowMs: number): number {
    const generation = Atomics.load(this.#cells.generations, place);
    const endMs = this.#cells.endsMs[place] as number;
    return endMs === 0 || endMs > nowMs ? generation : 0;
  }

  /** @param longIds - those that were told, by place. */
  read(place: number, generation: number, longIds: ReadonlyMap<number, LongId>): HeldLease | undefined {
    const { epochs, queues, idLengths } = this.#cells;
    const length = idLengths[place] as number;
    const told = longIds.get(place);
    if (length === TOLD && told?.generation !== generation) return undefined;
    const at = place * ID_BYTES;
    const id = length === TOLD ? (told as LongId).id : this.#bytes.toString('utf8', at, at + length);
    return { place, generation, id, epoch: epochs[place] as number, queue: queues[place] as number };
  }

  renewed({ place, generation }: HeldLease, untilMs: number): void {
    const { generations, renewedMs } = this.#cells;
    if (Atomics.load(generations, place) === generation) renewedMs[place] = untilMs;
  }
}

/** For that many places: 160 bytes each. */
export function makeLeaseCells(places: number): LeaseCells {
  const shared = (bytesPerPlace: number): SharedArrayBuffer => new SharedArrayBuffer(places * bytesPerPlace);
  return {
    asleep: new Int32Array(new SharedArrayBuffer(4)),
    generations: new Int32Array(shared(4)),
    epochs: new Float64Array(shared(8)),
    endsMs: new Float64Array(shared(8)),
    renewedMs: new Float64Array(shared(8)),
    queues: new Uint16Array(shared(2)),
    idLengths: new Uint16Array(shared(2)),
    ids: new Uint8Array(shared(ID_BYTES)),
  };
}
