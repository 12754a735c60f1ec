import { Worker } from 'node:worker_threads';
import type { LeasedTask } from '../broker.ts';
import type { LeaseHolder, LeaseHolderOptions } from '../lease-holder.ts';
import { LeaseBoard, makeLeaseCells, type LeaseCells, type LongId } from './lease-board.ts';
import type { LeaseRoute } from './lease-route.ts';

/** What the thread starts with. */
export interface LeaseThreadData {
  readonly cells: LeaseCells;
  readonly queues: readonly string[];
  readonly leaseMs: number;
  readonly route: LeaseRoute;
}

/** What the thread is told: of something on the board, if it sleeps, and of ids that have no room there. */
export type ToLeaseThread = 'wake' | LongId;

/** What the thread tells: renewals do not work now. */
export interface FromLeaseThread {
  readonly error: unknown;
}

/** What a thread is made of. */
export interface LeaseThreadOptions extends LeaseHolderOptions {
  /** What the thread runs. Called when it starts, as the next. @throws unknown - there is none. */
  readonly file: () => URL;
  /** How it gets to Redis. */
  readonly route: () => LeaseRoute;
  readonly onClose: (thread: LeaseThread) => void;
}

/**
 * A thread with a connection of its own, which renews leases while our event loop is held.
 *
 * It starts with the first lease, and keeps no process alive. If it cannot start, or ends, that is told once, and it is not
 * started again: then leases are renewed by the event loop alone.
 */
export class LeaseThread implements LeaseHolder {
  readonly #options: LeaseThreadOptions;
  readonly #cells: LeaseCells;
  readonly #board: LeaseBoard;
  readonly #queues: ReadonlyMap<string, number>;
  #worker: Worker | undefined;
  /** It has ended, could not start, or is not wanted any more. */
  #isOver = false;

  constructor(options: LeaseThreadOptions) {
    this.#options = options;
    this.#cells = makeLeaseCells(options.places);
    this.#board = new LeaseBoard(this.#cells);
    this.#queues = new Map(options.queues.map((queue, index) => [queue, index]));
  }

  hold(place: number, { message: { id, queue }, epoch }: LeasedTask, untilWallMs: number): void {
    const index = this.#queues.get(queue);
    if (this.#isOver || index === undefined) return;
    const longId = this.#board.put(place, { id, epoch }, index, untilWallMs);
    if (this.#worker === undefined) this.#start();
    else if (this.#board.mustWake()) this.#tell('wake');
    if (longId !== undefined) this.#tell(longId);
  }

  release(place: number): void {
    this.#board.free(place);
  }

  renewedUntilMs(place: number): number {
    return this.#board.renewedUntilMs(place);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#options.onClose(this);
    await this.#worker?.terminate();
  }

  #start(): void {
    const { file, route, queues, leaseMs, onError } = this.#options;
    try {
      const data: LeaseThreadData = { cells: this.#cells, queues, leaseMs, route: route() };
      // The program's flags are for the program: what it loads first would be loaded twice, and some end a thread.
      const worker = new Worker(file(), { name: 'escapement leases', execArgv: [], workerData: data });
      worker.unref();
      worker.on('message', ({ error }: FromLeaseThread) => {
        if (!this.#isOver) onError(error);
      });
      worker.on('error', this.#fail);
      worker.on('exit', (code) => {
        this.#fail(`exit code ${code}`);
      });
      this.#worker = worker;
    } catch (error) {
      this.#fail(error);
    }
  }

  #tell(message: ToLeaseThread): void {
    this.#worker?.postMessage(message);
  }

  readonly #fail = (cause: unknown): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onError(
      new Error(
        'there is no thread that renews leases: a handler that holds the event loop may lose its own',
        {
          cause,
        },
      ),
    );
  };
}
