import type { RequestListener } from 'node:http';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { inject, onTestFinished } from 'vitest';
import type { Broker } from 'escapement/tasks';
import { tasksHandler, type TasksHandlerOptions } from 'escapement/tasks/http';
import { RedisBroker } from 'escapement/tasks/redis';
import { run } from '../../../../src/cli/main.ts';
import { connectTarget } from '../../../../src/cli/tasks/connect.ts';
import type { Connect } from '../../../../src/cli/tasks/run.ts';
import { BrokerTarget } from '../../../../src/cli/tasks/target/tasks-target.ts';
import { addTasks } from '../../../../src/cli/tasks/tasks.ts';
import { Output } from '../../../../src/cli/terminal/output.ts';
import type { Terminal } from '../../../../src/cli/terminal/terminal.ts';
import { listen } from '../../../listen.ts';
import { freshDatabase } from '../../../redis/redis-case.ts';
import { benchOf, openBench, START_MS, type Bench } from '../../../tasks/support/bench.ts';
import { addEveryState } from '../../../tasks/support/every-state.ts';

export const ESCAPE = '\u001b';

/** A stream that keeps what it is given. */
export class FakeStream {
  readonly isTTY: boolean;
  readonly columns: number;
  readonly rows = 30;
  written = '';
  /** The error of each write from now on, of which nothing is kept. */
  failure: Error | undefined;

  constructor(isTTY: boolean, columns = 120) {
    this.isTTY = isTTY;
    this.columns = columns;
  }

  hasColors(): boolean {
    return this.isTTY;
  }

  write(chunk: string | Uint8Array, done?: (error?: Error) => void): boolean {
    if (this.failure === undefined) this.written += Buffer.from(chunk as Uint8Array).toString();
    done?.(this.failure);
    return true;
  }

  on(): this {
    return this;
  }

  off(): this {
    return this;
  }
}

/** Keys that a test presses. */
export class FakeKeyboard extends PassThrough {
  readonly isTTY: boolean;
  isRaw = false;

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  setRawMode(isRaw: boolean): this {
    this.isRaw = isRaw;
    return this;
  }
}

export interface Result {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** What is left of a command that was refused: one line. */
export function refusal(message: string): Result {
  return { stdout: '', stderr: `escapement: ${message}\n`, code: 2 };
}

export interface CommandSurroundings {
  readonly connect?: Connect;
  readonly environment?: Readonly<Record<string, string>>;
  readonly out?: FakeStream;
  readonly err?: FakeStream;
  readonly keyboard?: FakeKeyboard;
  readonly signal?: AbortSignal;
  readonly nowMs?: number;
}

/** Runs `escapement tasks …` in this process. */
export async function tasksCommand(
  words: readonly string[],
  surroundings: CommandSurroundings = {},
): Promise<Result> {
  const { environment = {}, connect = connectTarget, nowMs = START_MS + 500 } = surroundings;
  const keyboard = (surroundings.keyboard ?? new FakeKeyboard(false)) as unknown as NodeJS.ReadStream;
  const others = { environment, connect, now: () => nowMs, keyboard };
  const addPart: AddPart = (program, terminal) => addTasks(program, terminal, others);
  return runPart(addPart, ['tasks', ...words], surroundings);
}

type AddPart = (program: Command, terminal: Terminal) => void;

/** Runs a command of one part in this process. */
export async function runPart(
  addPart: AddPart,
  words: readonly string[],
  { out = new FakeStream(false), err = new FakeStream(false), signal }: CommandSurroundings = {},
): Promise<Result> {
  const { signal: never } = new AbortController();
  const streams = { out: new Output(out), err: new Output(err) };
  const code = await run(words, { ...streams, signal: signal ?? never, exitCode: 0 }, [addPart], '0.0.0');
  return { stdout: out.written, stderr: err.written, code };
}

/** Runs commands on what a bench has. */
export type RunCommand = (...words: string[]) => Promise<Result>;

/** The same with `--json`. */
export type RunJson = (...words: string[]) => Promise<{ readonly json: unknown; readonly code: number }>;

export interface TargetBench extends Bench<Broker> {
  readonly command: RunCommand;
  readonly json: RunJson;
  readonly surroundings: CommandSurroundings;
}

/** How commands reach the tasks: all ways must be alike. */
export type Way = 'broker' | 'redis' | 'http';

export const WAYS: readonly Way[] = inject('redis').isThere
  ? ['broker', 'redis', 'http']
  : ['broker', 'http'];

export async function openTarget(way: Way): Promise<TargetBench> {
  const bench = way === 'redis' ? await openRedisBench() : await openBench();
  const { broker } = bench;
  const surroundings = way === 'http' ? await overHttp(broker) : overBroker(broker);
  const command: RunCommand = (...words) => tasksCommand(words, surroundings);
  const json: RunJson = async (...words) => {
    const { stdout, stderr, code } = await command(...words, '--json');
    if (stderr !== '') throw new Error(stderr);
    return { json: JSON.parse(stdout) as unknown, code };
  };
  return { ...bench, command, json, surroundings };
}

/** The same on a real Redis, which has whole seconds. */
async function openRedisBench(): Promise<Bench<Broker>> {
  const { clock } = await openBench();
  const database = await freshDatabase();
  const broker = new RedisBroker({ url: database.url, clock });
  onTestFinished(async () => {
    await broker.close();
    await database.dispose();
  });
  return benchOf(clock, broker);
}

function overBroker(broker: Broker): CommandSurroundings {
  // The bench has the broker for longer than one command.
  const close = (): Promise<void> => Promise.resolve();
  return { connect: () => Promise.resolve(Object.assign(new BrokerTarget(broker, 'there'), { close })) };
}

async function overHttp(broker: Broker): Promise<CommandSurroundings> {
  return { environment: { ESCAPEMENT_URI: await serveTasks({ broker, rootPath: '/admin' }, '/admin') } };
}

/** @returns where it is. */
export async function serveTasks(options: TasksHandlerOptions, path = ''): Promise<string> {
  return `${await serve(tasksHandler(options))}${path}`;
}

/** For the length of the test. */
export async function serve(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(listener)}`;
}

/** In queue `default`, one task in each state, whose id is that state. */
export async function withEveryState(way: Way): Promise<TargetBench> {
  const bench = await openTarget(way);
  await addEveryState(bench, 60_000);
  bench.clock.advance(500);
  return bench;
}

/** A server that shows itself, with a worker. */
export async function announceServer(
  { broker }: Pick<TargetBench, 'broker'>,
  host = 'machine',
): Promise<void> {
  const worker = { taskId: 'active', taskType: 'work', payload: Buffer.from('p'), queue: 'default' };
  const times = { startedAtMs: START_MS, deadlineMs: START_MS + 9_000 };
  await broker.announceServer(
    () => ({
      ...{ id: 's1', host, pid: 7, concurrency: 10, queues: { default: 6, low: 1 } },
      ...{ strictPriority: false, status: 'active', startedAtMs: START_MS },
      workers: [{ ...worker, ...times }],
    }),
    600_000,
  );
}
