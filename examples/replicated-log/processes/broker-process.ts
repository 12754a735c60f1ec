import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { machineNowMs } from '../machine-clock.ts';
import type { Listening } from './child-protocol.ts';

/** `node --import` this, to run TypeScript. */
const RUN_TYPESCRIPT = new URL('../../request-deadlines/run-typescript.mjs', import.meta.url).href;
/** Ample: a long poll ends within half a second. */
const OBEYS_WITHIN_MS = 4_000;

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A broker in a child process of its own. */
export class BrokerProcess {
  readonly name: string;
  readonly startedAtMs = machineNowMs();
  /** Resolves to its port when it listens; rejects if it ends before. */
  readonly port: Promise<number>;
  /** Resolves when it is gone. */
  readonly ended: Promise<ProcessEnd>;
  readonly #child: ChildProcess;

  /** @param file - which program, beside this one. */
  constructor(name: string, file: string, options: object) {
    this.name = name;
    this.#child = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(options)], {
      execArgv: ['--import', RUN_TYPESCRIPT],
      // In a process group of its own, so that a Ctrl-C reaches the parent alone. Windows would open a window.
      detached: process.platform !== 'win32',
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        resolve({ code, signal });
      });
    });
    this.port = new Promise((resolve, reject) => {
      this.#child.once('message', (listening: Listening) => {
        resolve(listening.port);
      });
      this.#child.once('error', reject);
      void this.ended.then(({ code, signal }) => {
        reject(new Error(`${name} ended before it listened, with ${signal ?? `exit code ${String(code)}`}`));
      });
    });
    // Whoever needs the port awaits it; nobody may, after an interruption.
    this.port.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid ?? NaN;
  }

  /** Whether the system still knows a process of this id. */
  get isRunning(): boolean {
    try {
      return Number.isInteger(this.pid) && process.kill(this.pid, 0);
    } catch {
      return false;
    }
  }

  /** The end that no process hears of. */
  async kill(): Promise<ProcessEnd> {
    this.#child.kill('SIGKILL');
    return this.ended;
  }

  /** Lets it finish what it does. */
  async stop(): Promise<ProcessEnd> {
    // A child that is gone shows in its end.
    if (this.#child.connected) this.#child.send('stop', () => undefined);
    const lastResort = setTimeout(() => void this.kill(), OBEYS_WITHIN_MS);
    const end = await this.ended;
    clearTimeout(lastResort);
    return end;
  }
}
