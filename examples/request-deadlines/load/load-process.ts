import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadCommand, LoadPlan, LoadReport, LoadResult } from './load-protocol.ts';

type LoadSuccess = Exclude<LoadReport, { readonly failure: string }>;

/** Ample: hanging up takes a few milliseconds. */
const OBEYS_WITHIN_MS = 2_000;

const NO_RESULT: LoadResult = {
  sent: 0,
  answered: 0,
  timedOut: 0,
  failed: 0,
  unsent: 0,
  timeoutSeenMs: { p50: NaN, p99: NaN },
};

/**
 * The clients, in a process of their own: their work neither delays the server's event loop nor counts as its
 * CPU time.
 */
export class LoadProcess {
  /** Resolves when every connection is open. */
  readonly started: Promise<unknown>;
  /** Resolves when the last answer has come. */
  readonly result: Promise<LoadResult>;
  readonly #child: ChildProcess;
  #isStopped = false;

  constructor(plan: LoadPlan) {
    this.#child = fork(fileURLToPath(new URL('./load.ts', import.meta.url)), {
      // JSON, the default, has no NaN.
      serialization: 'advanced',
      // In a process group of its own, so that a Ctrl-C reaches this process alone. Windows would open a window.
      detached: process.platform !== 'win32',
    });
    this.started = this.#report((report) => (report === 'started' ? true : undefined), true);
    this.result = this.#report((report) => (report === 'started' ? undefined : report.result), NO_RESULT);
    // A load that never starts fails both; the caller waits for one of them at a time.
    this.result.catch(() => undefined);
    this.#send({ plan });
  }

  /** Ends the load now. The result comes at once. */
  stop(): void {
    this.#isStopped = true;
    this.#send('stop');
    const lastResort = setTimeout(() => this.#child.kill('SIGKILL'), OBEYS_WITHIN_MS);
    this.#child.once('exit', () => {
      clearTimeout(lastResort);
    });
  }

  #send(command: LoadCommand): void {
    // A child that is gone shows in its exit.
    if (this.#child.connected) this.#child.send(command, () => undefined);
  }

  /** The first report that `pick` makes something of. A child that was stopped may owe it. */
  #report<T>(pick: (report: LoadSuccess) => T | undefined, ifStopped: T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#child.on('message', (report: LoadReport) => {
        if (typeof report === 'object' && 'failure' in report) {
          reject(new Error(report.failure));
          return;
        }
        const value = pick(report);
        if (value !== undefined) resolve(value);
      });
      this.#child.once('error', reject);
      this.#child.once('exit', (code, signal) => {
        const end = signal ?? `exit code ${String(code)}`;
        if (this.#isStopped) resolve(ifStopped);
        else reject(new Error(`The load process ended early, with ${end}.`));
      });
    });
  }
}
