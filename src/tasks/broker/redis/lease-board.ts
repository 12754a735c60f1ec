/** Longest id that fits into a place, in characters: a UUID has 36. */
const ID_LENGTH = 42;

/** For any characters: counting their bytes first takes as long as writing them. */
const ID_BYTES = 3 * ID_LENGTH;

/** Instead of the length of an id that does not fit: the thread receives the id in a message. */
const SENT = 0xff_ff;

/** Generations start again at 1 after that. */
const LAST_GENERATION = 2 ** 31 - 1;

/** The shared memory: one element per place, except for `asleep`. */
export interface LeaseCells {
  /** One number: 1 if the thread does not read the board and must be woken. */
  readonly asleep: Int32Array<SharedArrayBuffer>;
  /** 0 for a free place; a new number for each task that is put there. */
  readonly generations: Int32Array<SharedArrayBuffer>;
  readonly epochs: Float64Array<SharedArrayBuffer>;
  /** Until when the lease may be renewed; 0 for no limit. */
  readonly endsMs: Float64Array<SharedArrayBuffer>;
  /** Until when it was renewed: the only array that the thread writes. */
  readonly renewedMs: Float64Array<SharedArrayBuffer>;
  /** Index of the task's queue. */
  readonly queues: Uint16Array<SharedArrayBuffer>;
  readonly idLengths: Uint16Array<SharedArrayBuffer>;
  /** UTF-8, `ID_BYTES` for each place. */
  readonly ids: Uint8Array<SharedArrayBuffer>;
}

/** An id that is too long for the board. */
export interface LongId {
  readonly place: number;
  readonly generation: number;
  readonly id: string;
}

/** What identifies a lease in Redis. */
export interface LeaseId {
  readonly id: string;
  readonly epoch: number;
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
 * WHY not messages: each costs both sides microseconds and wakes the thread, and thousands of tasks a second end long before their
 * lease does. Here a task costs some writes, the thread reads the board six times per lease, and neither side waits for the other:
 * an event loop that is blocked by the next task has already written all that the thread needs.
 *
 * WHY without locks: what the thread reads during a write may be the id of one task and the epoch of another. No task has that
 * lease: Redis reports it as lost, and the generation that was read has ended by then. A renewal that is written to a place that
 * holds another task by then belongs to an earlier lease, and ends before the later one does.
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

  // The side of the event loop.

  /** @returns the id, if it must be sent to the thread. */
  put(place: number, { id, epoch }: LeaseId, queue: number, untilMs: number): LongId | undefined {
    const { generations, epochs, endsMs, renewedMs, queues, idLengths } = this.#cells;
    const generation = (this.#generation % LAST_GENERATION) + 1;
    const isLong = id.length > ID_LENGTH;
    this.#generation = generation;
    epochs[place] = epoch;
    endsMs[place] = untilMs;
    renewedMs[place] = 0;
    queues[place] = queue;
    idLengths[place] = isLong ? SENT : this.#bytes.write(id, place * ID_BYTES);
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

  // The side of the thread.

  /** From now on a task that is put there wakes the thread. One that was put there just before has not: read the board once more. */
  sleep(): void {
    Atomics.store(this.#cells.asleep, 0, 1);
  }

  /** The generation in a place; 0 if it is free, or its lease may no longer be renewed. */
  generationAt(place: number, nowMs: number): number {
    const generation = Atomics.load(this.#cells.generations, place);
    const endMs = this.#cells.endsMs[place] as number;
    return endMs === 0 || endMs > nowMs ? generation : 0;
  }

  /** @param longIds - those that were sent, by place. */
  read(place: number, generation: number, longIds: ReadonlyMap<number, LongId>): HeldLease | undefined {
    const { epochs, queues, idLengths } = this.#cells;
    const length = idLengths[place] as number;
    const sent = longIds.get(place);
    if (length === SENT && sent?.generation !== generation) return undefined;
    const at = place * ID_BYTES;
    const id = length === SENT ? (sent as LongId).id : this.#bytes.toString('utf8', at, at + length);
    return { place, generation, id, epoch: epochs[place] as number, queue: queues[place] as number };
  }

  renewed({ place, generation }: HeldLease, untilMs: number): void {
    const { generations, renewedMs } = this.#cells;
    if (Atomics.load(generations, place) === generation) renewedMs[place] = untilMs;
  }
}

/** 160 bytes per place. */
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
