/** asynq, in Go, in a process of its own. */
import { execFileSync, spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Cannot } from '../lib/part.ts';
import type { OpenContestant, OpenOn } from './contestant.ts';

const SOURCE = fileURLToPath(new URL('asynq', import.meta.url));
/** The first build fetches modules. */
const BUILD_TIMEOUT_MS = 120_000;

let opener: OpenOn | Cannot | undefined;

/** Builds it, once. */
export function openAsynq(): OpenOn | Cannot {
  opener ??= openerOf();
  return opener;
}

function openerOf(): OpenOn | Cannot {
  let program: string;
  try {
    program = build();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return { cannot: isMissing ? '`go` is not on the PATH.' : 'Go could not build it: see above.' };
  }
  return async ({ host, port }) => {
    const child = spawn(program, [`${host}:${port}`], { stdio: ['pipe', 'pipe', 'inherit'] });
    const exited = once(child, 'exit').then(([code]) => {
      throw new Error(`asynq-bench has exited with ${code}`);
    });
    const lines = createInterface({ input: child.stdout });
    const [address] = (await Promise.race([once(lines, 'line'), exited])) as [string];
    return new OtherProcess(child, address);
  };
}

/** Builds in a folder that is removed with this process. Go's cache makes later builds quick. */
function build(): string {
  const folder = mkdtempSync(join(tmpdir(), 'escapement-bench-asynq-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  cpSync(SOURCE, folder, { recursive: true });
  execFileSync('go', ['build', '-o', 'asynq-bench', '.'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: BUILD_TIMEOUT_MS,
  });
  return join(folder, 'asynq-bench');
}

/** Sends requests to `asynq/main.go`, which describes them. */
class OtherProcess implements OpenContestant {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #address: string;
  #problem: string | undefined;

  constructor(child: ChildProcessByStdio<Writable, Readable, null>, address: string) {
    this.#child = child;
    this.#address = address;
  }

  async enqueue(count: number, callers: number): Promise<void> {
    await this.#request('enqueue', count, callers);
  }

  enqueueBulk(): Promise<void> {
    return Promise.reject(new Error('asynq 0.25 has no call for many tasks'));
  }

  async start(concurrency: number): Promise<void> {
    await this.#request('start', concurrency);
  }

  async handled(count: number): Promise<void> {
    this.#problem = ((await this.#request('handled', count)) as string) || undefined;
  }

  async latenciesMs(count: number, perSecond: number): Promise<Float64Array> {
    const latenciesMs = Float64Array.from((await this.#request('latencies', count, perSecond)) as number[]);
    await this.handled(count);
    return latenciesMs;
  }

  problem(): string | undefined {
    return this.#problem;
  }

  async close(): Promise<void> {
    await this.#request('close');
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    await exited;
  }

  async #request(verb: string, ...numbers: readonly number[]): Promise<unknown> {
    const response = await fetch(`http://${this.#address}/${[verb, ...numbers].join('/')}`);
    return response.json();
  }
}
