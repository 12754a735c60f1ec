/** The original, in Go, in a process of its own. */
import { execFileSync, spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Cannot, OpenContestant, OpenOn, RedisContestant } from './contestant.ts';

const SOURCE = fileURLToPath(new URL('asynq', import.meta.url));
/** Its modules have to be fetched the first time. */
const BUILD_TIMEOUT_MS = 120_000;

export const asynq: RedisContestant = {
  name: 'asynq',
  role: 'rival',
  note:
    'version 0.25.1, in Go, in a process of its own, which may use all processors; the others share one thread of this one. Its ' +
    'connections and intervals are as it makes them.',
  hasNoBulk: true,
  open: openerOf(),
};

function openerOf(): OpenOn | Cannot {
  let program: string;
  try {
    program = build();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return { cannot: isMissing ? 'there is no `go` here.' : 'Go could not build it: see above.' };
  }
  return async ({ host, port }) => {
    const child = spawn(program, [`${host}:${port}`], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child, 'spawn');
    return new OtherProcess(child);
  };
}

/** In a folder that goes with this process. Go's cache makes the second time quick. */
function build(): string {
  const folder = mkdtempSync(join(tmpdir(), 'escapement-bench-asynq-'));
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true });
  });
  cpSync(SOURCE, folder, { recursive: true });
  execFileSync('go', ['build', '-o', 'asynq-bench', '.'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: BUILD_TIMEOUT_MS,
  });
  return join(folder, 'asynq-bench');
}

interface Question {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Asks `asynq/main.go`: see there. */
class OtherProcess implements OpenContestant {
  readonly #child: ChildProcess;
  readonly #questions = new Map<string, Question>();
  readonly #input: Writable;
  #asked = 0;
  #problem: string | undefined;

  constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.#input = child.stdin;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const end = line.indexOf(' ');
      this.#settle(line.slice(0, end), JSON.parse(line.slice(end)));
    });
    child.once('exit', () => {
      for (const { reject } of this.#questions.values()) reject(new Error('asynq-bench is gone'));
    });
  }

  async enqueue(count: number, callers: number): Promise<void> {
    await this.#ask('enqueue', count, callers);
  }

  enqueueBulk(): Promise<void> {
    return Promise.reject(new Error('asynq 0.25 has no call for that'));
  }

  async start(concurrency: number): Promise<void> {
    await this.#ask('start', concurrency);
  }

  async handled(count: number): Promise<void> {
    await this.#ask('handled', count);
    this.#problem = ((await this.#ask('problem')) as string) || undefined;
  }

  async latenciesMs(count: number, perSecond: number): Promise<Float64Array> {
    const latenciesMs = Float64Array.from((await this.#ask('latencies', count, perSecond)) as number[]);
    await this.handled(count);
    return latenciesMs;
  }

  problem(): string | undefined {
    return this.#problem;
  }

  async close(): Promise<void> {
    const gone = once(this.#child, 'exit');
    await this.#ask('close');
    await gone;
  }

  #ask(verb: string, ...numbers: readonly number[]): Promise<unknown> {
    const id = String(this.#asked++);
    return new Promise((resolve, reject) => {
      this.#questions.set(id, { resolve, reject });
      this.#input.write(`${[id, verb, ...numbers].join(' ')}\n`);
    });
  }

  #settle(id: string, answer: unknown): void {
    this.#questions.get(id)?.resolve(answer);
    this.#questions.delete(id);
  }
}
