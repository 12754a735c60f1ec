import { fork, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Order } from './child-protocol.ts';

/** `node --import` this, to run TypeScript. */
export const RUN_TYPESCRIPT = new URL('../../request-deadlines/run-typescript.mjs', import.meta.url).href;
/** Ample: the shipper forwards what is left before it ends. */
const OBEYS_WITHIN_MS = 20_000;

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Told what a child says. */
export interface ChildEvents {
  /** What it reports to its parent. */
  message(message: unknown): void;
  /** What it prints to standard error, or a child of its own. */
  line(text: string): void;
}

/** A program of this folder in a process of its own. */
export class Child {
  readonly name: string;
  /** Resolves when it is gone and was heard to the end. */
  readonly ended: Promise<ProcessEnd>;
  readonly #process: ChildProcess;

  constructor(name: string, file: string, options: object, events: ChildEvents) {
    this.name = name;
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(options)], {
      execArgv: ['--import', RUN_TYPESCRIPT],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // In a process group of its own, so that a Ctrl-C reaches the parent alone. Windows would open a window.
      detached: process.platform !== 'win32',
    });
    this.ended = new Promise((resolve) => {
      this.#process.once('close', (code, signal) => {
        resolve({ code, signal });
      });
    });
    this.#process.on('message', (message) => {
      events.message(message);
    });
    if (this.#process.stderr !== null)
      createInterface(this.#process.stderr).on('line', (text) => {
        events.line(text);
      });
  }

  get pid(): number {
    return this.#process.pid ?? NaN;
  }

  /** The end that no process hears of. */
  async kill(): Promise<ProcessEnd> {
    this.#process.kill('SIGKILL');
    return this.ended;
  }

  /** Lets it end by itself. */
  async end(order: Order): Promise<ProcessEnd> {
    // A child that is gone shows in its end.
    if (this.#process.connected) this.#process.send(order, () => undefined);
    const lastResort = setTimeout(() => void this.kill(), OBEYS_WITHIN_MS);
    const end = await this.ended;
    clearTimeout(lastResort);
    return end;
  }
}

/** Whether the system still knows a process of this id. */
export function isRunning(pid: number): boolean {
  try {
    return Number.isInteger(pid) && process.kill(pid, 0);
  } catch {
    return false;
  }
}
