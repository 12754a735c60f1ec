import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RUN_TYPESCRIPT, type ProcessEnd } from './child.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Told what a shipper says. */
export interface ShipperEvents {
  /** So many of the lines that it was given are in its spool. */
  confirmed(lines: number): void;
  /** It takes more. */
  drained(): void;
}

/** A shipper at the other end of a pipe: the real one, as a command line starts it. */
export class ShipperPipe {
  readonly pid: number;
  /** Resolves when it is gone and was heard to the end. */
  readonly ended: Promise<ProcessEnd>;
  readonly #process;
  #isFull = false;

  constructor(args: readonly string[], events: ShipperEvents) {
    const command = ['--import', RUN_TYPESCRIPT, MAIN, ...args, '--confirm'];
    this.#process = spawn(process.execPath, command, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.pid = this.#process.pid ?? NaN;
    this.ended = new Promise((resolve) => {
      this.#process.once('close', (code, signal) => {
        resolve({ code, signal });
      });
    });
    createInterface(this.#process.stdout).on('line', (text) => {
      events.confirmed(Number(text));
    });
    this.#process.stdin
      .on('error', () => undefined) // it is gone: that shows in its end
      .on('drain', () => {
        this.#isFull = false;
        events.drained();
      });
  }

  /** Whether the pipe takes no more for now: the shipper does not read. */
  get isFull(): boolean {
    return this.#isFull;
  }

  write(text: string): void {
    this.#isFull = !this.#process.stdin.write(text);
  }

  /** That was all. */
  end(): void {
    this.#process.stdin.end();
  }

  /** Asks it to stop, and to keep what it has. */
  stop(): void {
    this.#process.kill('SIGTERM');
  }
}
