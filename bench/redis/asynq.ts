/** asynq, in Go, in a process of its own. */
import { execFileSync, spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
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
    await once(child, 'spawn');
    return new OtherProcess(child);
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

interface Request {
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Sends requests to `asynq/main.go`, which describes the protocol. */
class OtherProcess implements OpenContestant {
  readonly #child: ChildProcess;
  readonly #requests = new Map<string, Request>();
  readonly #input: Writable;
  #sent = 0;
  #problem: string | undefined;

  constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.#input = child.stdin;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const end = line.indexOf(' ');
      this.#settle(line.slice(0, end), JSON.parse(line.slice(end)));
    });
    child.once('exit', () => {
      for (const { reject } of this.#requests.values()) reject(new Error('asynq-bench has exited'));
    });
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
    await this.#request('handled', count);
    this.#problem = ((await this.#request('problem')) as string) || undefined;
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
    const exited = once(this.#child, 'exit');
    await this.#request('close');
    await exited;
  }

  #request(verb: string, ...numbers: readonly number[]): Promise<unknown> {
    const id = String(this.#sent++);
    return new Promise((resolve, reject) => {
      this.#requests.set(id, { resolve, reject });
      this.#input.write(`${[id, verb, ...numbers].join(' ')}\n`);
    });
  }

  #settle(id: string, reply: unknown): void {
    this.#requests.get(id)?.resolve(reply);
    this.#requests.delete(id);
  }
}
