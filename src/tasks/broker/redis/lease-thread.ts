import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { LeasedTask, LeaseHolder, LeaseHolderOptions } from '../broker.ts';
import type { ConnectionRoute } from './client.ts';
import { LeaseBoard, makeLeaseCells, type LeaseCells, type LongId } from './lease-renewer.ts';

/** Data that the thread starts with; see lease-thread-main.ts. */
export interface LeaseThreadData {
  readonly cells: LeaseCells;
  readonly queues: readonly string[];
  readonly leaseMs: number;
  readonly route: ConnectionRoute;
}

/** Messages to the thread: to wake it after a task was put on the board, and ids that are too long for the board. */
export type ToLeaseThread = 'wake' | LongId;

/** Message from the thread: renewals have begun to fail. */
export interface FromLeaseThread {
  readonly error: unknown;
}

/** Options of a {@link LeaseThread}. */
export interface LeaseThreadOptions extends LeaseHolderOptions {
  /** Returns the program of the thread. Called when it starts, as `route`. @throws unknown - it cannot be found. */
  readonly file: () => URL;
  /** Returns how the thread connects to Redis. */
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
  /** It has ended, could not start, or was closed. */
  #isOver = false;

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
    else if (this.#board.mustWake()) this.#send('wake');
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
    await this.#worker?.terminate();
  }

  #start(): void {
    const { file, route, queues, leaseMs, onError } = this.#options;
    try {
      const data: LeaseThreadData = { cells: this.#cells, queues, leaseMs, route: route() };
      // The flags of the process are for its program: what they preload would be loaded twice, and some end a thread.
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

  #send(message: ToLeaseThread): void {
    this.#worker?.postMessage(message);
  }

  readonly #fail = (cause: unknown): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    const message =
      'the lease thread is not running: a handler that blocks the event loop may lose its lease';
    this.#options.onError(new Error(message, { cause }));
  };
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
