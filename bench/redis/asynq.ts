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
  return (opener ??= openerOf());
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
    return contestantOf(child, address);
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
function contestantOf(child: ChildProcessByStdio<Writable, Readable, null>, address: string): OpenContestant {
  let problem: string | undefined;
  const request = async (verb: string, ...numbers: readonly number[]): Promise<unknown> => {
    const response = await fetch(`http://${address}/${[verb, ...numbers].join('/')}`);
    return response.json();
  };
  const handled = async (count: number): Promise<void> => {
    problem = ((await request('handled', count)) as string) || undefined;
  };
  return {
    enqueue: (count, callers) => request('enqueue', count, callers),
    enqueueBulk: () => Promise.reject(new Error('asynq 0.25 has no call for many tasks')),
    start: (concurrency) => request('start', concurrency),
    handled,
    latenciesMs: async (count, perSecond) => {
      const latenciesMs = Float64Array.from((await request('latencies', count, perSecond)) as number[]);
      await handled(count);
      return latenciesMs;
    },
    problem: () => problem,
    close: async () => {
      await request('close');
      const exited = once(child, 'exit');
      child.stdin.end();
      await exited;
    },
  };
}
