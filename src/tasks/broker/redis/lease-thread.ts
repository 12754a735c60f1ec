import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { EscapementError } from '../../../core/errors.ts';
import type { LeasedTask, LeaseHolder, LeaseHolderOptions } from '../broker.ts';
import type { ConnectionRoute } from './client.ts';

/** Data that the thread starts with; see lease-thread-main.ts. */
export interface LeaseThreadData {
  readonly cells: LeaseCells;
  readonly queues: readonly string[];
  readonly leaseMs: number;
  readonly route: ConnectionRoute;
}

/** Messages to the thread: to end it, and ids that are too long for the board. */
export type ToLeaseThread = 'end' | LongId;

/** The only message of the thread: renewals have begun to fail. A copy of an error has no code, so its parts are sent. */
export type FromLeaseThread = Pick<EscapementError, 'code' | 'message' | 'cause'>;

const OP = 'RedisBroker.leaseHolder';

/** How long the thread may take to end by itself, in milliseconds; then it is terminated. */
const END_MS = 2_000;

interface LeaseThreadOptions extends LeaseHolderOptions {
  /** Returns the program of the thread. Called when it starts, as `route`. @throws unknown - it cannot be found. */
  readonly file: () => URL;
  readonly route: () => ConnectionRoute;
  readonly onClose: (thread: LeaseThread) => void;
}

/**
 * A thread with its own connection, which renews leases while our event loop is blocked.
 *
 * It starts with the first lease, and keeps no process alive. If it cannot start, or ends, that is reported once, and it is not
 * started again: then only the event loop renews leases.
 */
export class LeaseThread implements LeaseHolder {
  readonly #options: LeaseThreadOptions;
  readonly #cells: LeaseCells;
  readonly #board: LeaseBoard;
  readonly #queues: ReadonlyMap<string, number>;
  #worker: Worker | undefined;
  /** Whether the thread has ended, could not start, or was closed. */
  #isOver = false;

  /** @throws RangeError - there is not so much memory. */
  constructor(options: LeaseThreadOptions) {
    this.#options = options;
    this.#cells = makeLeaseCells(options.slots);
    this.#board = new LeaseBoard(this.#cells);
    this.#queues = new Map(options.queues.map((queue, index) => [queue, index]));
  }

  hold(slot: number, { message: { id, queue }, epoch }: LeasedTask, untilWallMs: number): void {
    const index = this.#queues.get(queue);
    if (this.#isOver || index === undefined) return;
    const longId = this.#board.put(slot, { id, epoch }, index, untilWallMs);
    if (this.#worker === undefined) this.#start();
    if (longId !== undefined) this.#send(longId);
  }

  release(slot: number): void {
    this.#board.free(slot);
  }

  renewedUntilMs(slot: number): number {
    return this.#board.renewedUntilMs(slot);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#options.onClose(this);
    if (this.#worker !== undefined) await this.#end(this.#worker);
  }

  /** Not with `terminate` alone: a thread that still loads its modules would leave the file open that it reads. */
  async #end(worker: Worker): Promise<void> {
    const late = setTimeout(() => void worker.terminate(), END_MS);
    this.#send('end');
    await new Promise((resolve) => worker.once('exit', resolve));
    clearTimeout(late);
  }

  #start(): void {
    const { file, route, queues, leaseMs, onError } = this.#options;
    try {
      const data: LeaseThreadData = { cells: this.#cells, queues, leaseMs, route: route() };
      // The flags of the process are for its program: what they preload would be loaded twice, and some end a thread.
      const worker = new LeaseWorker(file(), { name: 'escapement leases', execArgv: [], workerData: data });
      worker.unref();
      worker.on('message', ({ code, message, cause }: FromLeaseThread) => {
        if (!this.#isOver) onError(new EscapementError(code, message, { op: OP, cause }));
      });
      worker.on('error', this.#fail);
      worker.on('exit', (code) => {
        this.#worker = undefined;
        this.#fail(`exit code ${code}`);
      });
      this.#worker = worker;
    } catch (error) {
      this.#fail(error);
    }
  }

  #send(message: ToLeaseThread): void {
    this.#worker?.postMessage(message);
  }

  readonly #fail = (cause: unknown): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onError(threadFailed(cause));
  };
}

/** A subclass, because Next.js (Turbopack) includes the whole folder for a `new Worker(…)` of a computed file, and refuses its `.d.cts`. */
class LeaseWorker extends Worker {}

export function threadFailed(cause: unknown): Error {
  const message = 'the lease thread is not running: a handler that blocks the event loop may lose its lease';
  return new Error(message, { cause });
}

/** Relative to `dist`, to `dist/tasks`, and to this file. */
const PROGRAM_FILES = [
  './tasks/redis-lease-thread.js',
  './redis-lease-thread.js',
  '../../../../dist/tasks/redis-lease-thread.js',
];

/**
 * Returns the program of the thread: a file of the package with a build of its own.
 *
 * @throws Error - it is missing: a bundler has put a program and its packages into one file without it.
 */
export function leaseThreadFile(): URL {
  // The build for `require` has the first, the one for `import` the second.
  const here = typeof __filename === 'string' ? pathToFileURL(__filename).href : import.meta.url;
  const file = PROGRAM_FILES.map((path) => new URL(path, here)).find((url) => existsSync(url));
  if (file === undefined) throw new Error('cannot find the file tasks/redis-lease-thread.js of escapement');
  return file;
}

/** Longest id that fits into a slot, in characters: a UUID has 36. */
const ID_LENGTH = 42;

/** For any characters: counting their bytes first takes as long as writing them. */
const ID_BYTES = 3 * ID_LENGTH;

/** Instead of the length of an id that does not fit: the thread receives the id in a message. */
const SENT = 0xff_ff;

/** Generations start again at 1 after that. */
const LAST_GENERATION = 2 ** 31 - 1;

/** The shared memory: one element per slot. */
interface LeaseCells {
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

export interface LeaseId {
  readonly id: string;
  readonly epoch: number;
}

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

  // Methods of the thread.

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
    generations: new Int32Array(shared(4)),
    epochs: new Float64Array(shared(8)),
    endsMs: new Float64Array(shared(8)),
    renewedMs: new Float64Array(shared(8)),
    queues: new Uint16Array(shared(2)),
    idLengths: new Uint16Array(shared(2)),
    ids: new Uint8Array(shared(ID_BYTES)),
  };
}
