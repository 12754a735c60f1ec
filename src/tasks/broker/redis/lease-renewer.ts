import { QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { listOf, Script, secondsUp, type ScriptArgument } from './script.ts';

/** Longest id that fits into a slot, in characters: a UUID has 36. */
const ID_LENGTH = 42;

/** For any characters: counting their bytes first takes as long as writing them. */
const ID_BYTES = 3 * ID_LENGTH;

/** Instead of the length of an id that does not fit: the thread receives the id in a message. */
const SENT = 0xff_ff;

/** Generations start again at 1 after that. */
const LAST_GENERATION = 2 ** 31 - 1;

/** The shared memory: one element per slot, except for `asleep`. */
export interface LeaseCells {
  /** One number: 1 if the thread does not read the board and must be woken. */
  readonly asleep: Int32Array<SharedArrayBuffer>;
  /** 0 for a free slot; a new number for each task that is put there. */
  readonly generations: Int32Array<SharedArrayBuffer>;
  readonly epochs: Float64Array<SharedArrayBuffer>;
  /** Until when the lease may be renewed; 0 for no limit. */
  readonly endsMs: Float64Array<SharedArrayBuffer>;
  /** Until when it was renewed: the only array that the thread writes. */
  readonly renewedMs: Float64Array<SharedArrayBuffer>;
  /** Index of the task's queue. */
  readonly queues: Uint16Array<SharedArrayBuffer>;
  readonly idLengths: Uint16Array<SharedArrayBuffer>;
  /** UTF-8, `ID_BYTES` for each slot. */
  readonly ids: Uint8Array<SharedArrayBuffer>;
}

/** An id that is too long for the board. */
export interface LongId {
  readonly slot: number;
  readonly generation: number;
  readonly id: string;
}

/** Identifies a lease in Redis. */
export interface LeaseId {
  readonly id: string;
  readonly epoch: number;
}

/** A lease on the board. */
export interface HeldLease extends LeaseId {
  readonly slot: number;
  readonly generation: number;
  readonly queue: number;
}

/**
 * The leases of a server, in memory that it shares with a thread.
 *
 *     slot           0          1          2
 *     generation   │ 17       │ 0: free  │ 18       │   ◄── main: written last, freed first
 *     id, queue, … │ 9f3c…  0 │          │ 41d0…  0 │   ◄── main
 *     renewed      │ 12:00:30 │          │ 0        │   ◄── thread
 *
 * WHY not messages: each costs both sides microseconds and wakes the thread, and thousands of tasks a second end long before their
 * lease does. Here a task costs some writes, the thread reads the board six times per lease, and neither side waits for the other:
 * an event loop that is blocked by the next task has already written everything that the thread needs.
 *
 * WHY without locks: a read during a write may return the id of one task and the epoch of another. No task has that
 * lease: Redis reports it as lost, and the generation that was read has ended by then. A renewal that is written to a slot that
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

  get slots(): number {
    return this.#cells.generations.length;
  }

  // Methods of the event loop.

  /** @returns the id, if it must be sent to the thread. */
  put(slot: number, { id, epoch }: LeaseId, queue: number, untilMs: number): LongId | undefined {
    const { generations, epochs, endsMs, renewedMs, queues, idLengths } = this.#cells;
    const generation = (this.#generation % LAST_GENERATION) + 1;
    const isLong = id.length > ID_LENGTH;
    this.#generation = generation;
    epochs[slot] = epoch;
    endsMs[slot] = untilMs;
    renewedMs[slot] = 0;
    queues[slot] = queue;
    idLengths[slot] = isLong ? SENT : this.#bytes.write(id, slot * ID_BYTES);
    Atomics.store(generations, slot, generation);
    return isLong ? { slot, generation, id } : undefined;
  }

  free(slot: number): void {
    Atomics.store(this.#cells.generations, slot, 0);
  }

  renewedUntilMs(slot: number): number {
    return this.#cells.renewedMs[slot] ?? 0;
  }

  /** Whether the thread sleeps, and the caller is the one to wake it. */
  mustWake(): boolean {
    const { asleep } = this.#cells;
    return Atomics.load(asleep, 0) === 1 && Atomics.exchange(asleep, 0, 0) === 1;
  }

  // Methods of the thread.

  /** From now on a task that is put there wakes the thread. One that was put there just before has not: read the board once more. */
  sleep(): void {
    Atomics.store(this.#cells.asleep, 0, 1);
  }

  /** Returns the generation in a slot; 0 if it is free, or its lease may no longer be renewed. */
  generationAt(slot: number, nowMs: number): number {
    const generation = Atomics.load(this.#cells.generations, slot);
    const endMs = this.#cells.endsMs[slot] as number;
    return endMs === 0 || endMs > nowMs ? generation : 0;
  }

  /** @param longIds - those that were sent, by slot. */
  read(slot: number, generation: number, longIds: ReadonlyMap<number, LongId>): HeldLease | undefined {
    const { epochs, queues, idLengths } = this.#cells;
    const length = idLengths[slot] as number;
    const sent = longIds.get(slot);
    if (length === SENT && sent?.generation !== generation) return undefined;
    const at = slot * ID_BYTES;
    const id = length === SENT ? (sent as LongId).id : this.#bytes.toString('utf8', at, at + length);
    return { slot, generation, id, epoch: epochs[slot] as number, queue: queues[slot] as number };
  }

  renewed({ slot, generation }: HeldLease, untilMs: number): void {
    const { generations, renewedMs } = this.#cells;
    if (Atomics.load(generations, slot) === generation) renewedMs[slot] = untilMs;
  }
}

/** Returns shared memory of 160 bytes per slot. */
export function makeLeaseCells(slots: number): LeaseCells {
  const shared = (bytesPerSlot: number): SharedArrayBuffer => new SharedArrayBuffer(slots * bytesPerSlot);
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

/**
 * Extends leases of a queue.
 *
 * KEYS[1]   prefix of the queue's keys
 * ARGV[1]   when the leases end
 * ARGV[2…]  per task: id, epoch
 *
 * Returns per task 1, or 0 if its lease is lost.
 */
export const EXTEND_LEASES = new Script(`
local score, outcomes = ARGV[1], {}
need('zset', LEASE)
writeAnyway(LEASE)
for i = 2, #ARGV, 2 do
  local id, epoch = ARGV[i], ARGV[i + 1]
  if holds(id, epoch) then
    redis.call('ZADD', LEASE, score, id)
    redis.call('HSET', TASK .. id, 'x:lease', epoch .. ':' .. score)
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = 0
  end
end
return outcomes
`);

/** How often a lease is renewed in its time: five renewals may fail. */
const RENEWALS_PER_LEASE = 6;

/** What one script extends at most: some milliseconds in which Redis does nothing else. */
const MAX_PER_SCRIPT = 1_000;

/** Runs scripts. */
type ScriptRunner = Pick<RedisAccess, 'run'>;

/** Options of a {@link LeaseRenewer}. */
export interface LeaseRenewerOptions {
  readonly board: LeaseBoard;
  readonly queues: readonly string[];
  readonly leaseMs: number;
  /** Connects to Redis. Called before the first renewal. */
  readonly open: () => ScriptRunner;
  /** Called when a renewal fails; then not again before one has succeeded. */
  readonly onError: (error: unknown) => void;
}

/**
 * Reads the board at an interval, and renews the leases that were there at the interval before: a task that is shorter than the interval
 * costs nothing, and a server without longer tasks needs no connection. While the board is empty it sleeps.
 *
 * A lease that is lost is not renewed again: the server finds out by itself.
 */
export class LeaseRenewer {
  readonly #options: LeaseRenewerOptions;
  readonly #keys: readonly QueueKeys[];
  /** By slot, the generation that was there an interval ago. */
  readonly #seen: Int32Array;
  /** By slot, the generation whose lease is lost. */
  readonly #lost: Int32Array;
  readonly #longIds = new Map<number, LongId>();
  #redis: ScriptRunner | undefined;
  #isArmed = false;
  #isRenewing = false;
  #isFailing = false;

  constructor(options: LeaseRenewerOptions) {
    this.#options = options;
    this.#keys = options.queues.map((queue) => new QueueKeys(queue));
    this.#seen = new Int32Array(options.board.slots);
    this.#lost = new Int32Array(options.board.slots);
  }

  /** Called after a task was put on the board while it slept. */
  wake(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setTimeout(this.#onInterval, this.#options.leaseMs / RENEWALS_PER_LEASE);
  }

  /** Called with each id that is too long for the board. */
  addLongId(longId: LongId): void {
    this.#longIds.set(longId.slot, longId);
  }

  readonly #onInterval = (): void => {
    this.#isArmed = false;
    const { board } = this.#options;
    const { isEmpty, due } = this.#readBoard();
    if (isEmpty) {
      board.sleep();
      if (!this.#readBoard().isEmpty && board.mustWake()) this.wake();
      return;
    }
    if (due.length > 0 && !this.#isRenewing) void this.#renew(due);
    this.wake();
  };

  #readBoard(): { readonly isEmpty: boolean; readonly due: readonly HeldLease[] } {
    const { board } = this.#options;
    const nowMs = Date.now();
    const due: HeldLease[] = [];
    let isEmpty = true;
    for (let slot = 0; slot < board.slots; slot++) {
      const generation = board.generationAt(slot, nowMs);
      if (generation === 0 || generation === this.#lost[slot]) continue;
      isEmpty = false;
      const lease = generation === this.#seen[slot] ? board.read(slot, generation, this.#longIds) : undefined;
      if (lease !== undefined) due.push(lease);
      this.#seen[slot] = generation;
    }
    return { isEmpty, due };
  }

  async #renew(leases: readonly HeldLease[]): Promise<void> {
    this.#isRenewing = true;
    try {
      await Promise.all(
        this.#keys.map((keys, queue) =>
          this.#extend(
            keys,
            leases.filter((lease) => lease.queue === queue),
          ),
        ),
      );
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#options.onError(error);
      this.#isFailing = true;
    } finally {
      this.#isRenewing = false;
    }
  }

  async #extend(keys: QueueKeys, leases: readonly HeldLease[]): Promise<void> {
    const { board, leaseMs, open } = this.#options;
    for (let first = 0; first < leases.length; first += MAX_PER_SCRIPT) {
      this.#redis ??= open();
      const some = leases.slice(first, first + MAX_PER_SCRIPT);
      const untilMs = Date.now() + leaseMs;
      const lost = new Set(await extendLeasesOf(this.#redis, keys, some, untilMs));
      for (const lease of some) {
        if (lost.has(lease)) this.#lost[lease.slot] = lease.generation;
        else board.renewed(lease, untilMs);
      }
    }
  }
}

/**
 * Extends leases of one queue until `untilMs`, at most a thousand. The thread and the event loop share it.
 *
 * @returns those that are lost.
 */
export async function extendLeasesOf<T extends LeaseId>(
  redis: ScriptRunner,
  { prefix }: QueueKeys,
  leases: readonly T[],
  untilMs: number,
): Promise<T[]> {
  const args: ScriptArgument[] = [secondsUp(untilMs)];
  for (const { id, epoch } of leases) args.push(id, epoch);
  const outcomes = listOf(await redis.run(EXTEND_LEASES, [prefix], args));
  return leases.filter((_, at) => outcomes[at] !== 1);
}
