import type { Command } from 'commander';
import { EscapementError } from '../../core/errors.ts';
import { isUnavailable } from '../../tasks/broker/broker-errors.ts';
import { CommandError } from '../command-error.ts';
import { EXIT_CODES, printError, type Terminal } from '../terminal/terminal.ts';
import { printable, table, toJson, type Columns } from '../terminal/text.ts';
import { addConnectionOptions } from './connect.ts';
import { connectionOf, type Connection, type Environment } from './connection.ts';
import { HttpStatusError, Unreachable } from './target/http-api.ts';
import { NotActive, type TasksTarget } from './target/tasks-target.ts';

/** Connects to the tasks; the signal aborts everything. */
export type Connect = (connection: Connection, signal: AbortSignal) => Promise<TasksTarget>;

export interface Surroundings {
  readonly terminal: Terminal;
  readonly environment: Environment;
  readonly connect: Connect;
  /** Returns wall-clock milliseconds. */
  readonly now: () => number;
  readonly keyboard: NodeJS.ReadStream;
}

export interface Run<Options> extends Surroundings {
  readonly target: TasksTarget;
  readonly options: Options;
  /** The arguments that are not options. */
  readonly words: readonly string[];
  readonly isJson: boolean;
}

/** What a command prints: one JSON document with `--json`, else lines for people. */
export interface Report {
  readonly json: () => unknown;
  readonly lines: () => readonly string[];
}

/** Sets the action of a command. It has a target, which is closed afterwards, and what it returns is printed. */
export function does<Options>(
  command: Command,
  surroundings: Surroundings,
  work: (run: Run<Options>) => Promise<Report | undefined>,
): void {
  addConnectionOptions(command);
  command.action(async () => {
    const options = allOptions(command);
    const words = command.processedArgs.flat() as readonly string[];
    const isJson = options['json'] === true;
    try {
      await withTarget(surroundings, options, async (target) => {
        const report = await work({ ...surroundings, target, words, isJson, options: options as Options });
        if (report === undefined) return;
        await surroundings.terminal.out.print(...(isJson ? [toJson(report.json())] : report.lines()));
      });
    } catch (error) {
      // Messages have names of users in them.
      throw isExpected(error) ? new CommandError(printable(error.message), { cause: error }) : error;
    }
  });
}

/** Ctrl-C rejects at once, whatever is pending. */
async function withTarget(
  { terminal, environment, connect }: Surroundings,
  options: Record<string, unknown>,
  work: (target: TasksTarget) => Promise<void>,
): Promise<void> {
  const { signal } = terminal;
  const connecting = connect(connectionOf(options, environment), signal);
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
  try {
    signal.throwIfAborted();
    await Promise.race([connecting.then(work), aborted]);
  } finally {
    await connecting.then(
      (target) => target.close(),
      () => undefined,
    );
  }
}

/** Returns the options of a command and of those that it is part of. */
function allOptions(command: Command): Record<string, unknown> {
  const above = command.parent === null ? {} : allOptions(command.parent);
  return { ...above, ...command.opts() };
}

export function tableOf<T>({ terminal }: Surroundings, columns: Columns<T>, items: readonly T[]): string {
  return table(columns, items, terminal.out.width);
}

interface Outcome<R> {
  readonly done: readonly { readonly name: string; readonly value: R }[];
  /** For `--json`: the name, and `message`. Without it, they were printed. */
  readonly failed: readonly object[];
}

/**
 * Runs an operation on each, also after one that failed. The exit code is 1 if some failed, 2 if all did, and 1 if there was nothing
 * to cancel.
 *
 * @param kind - name of the names in `failed`.
 */
export async function withEach<R>(
  { terminal, isJson }: Run<unknown>,
  kind: 'queue' | 'id',
  names: readonly string[],
  work: (name: string) => Promise<R>,
): Promise<Outcome<R>> {
  const done: { name: string; value: R }[] = [];
  const failed: object[] = [];
  let exitCode: number = EXIT_CODES.problems;
  for (const name of names) {
    try {
      done.push({ name, value: await work(name) });
    } catch (error) {
      if (!isAboutOne(error)) throw error;
      if (!(error instanceof NotActive)) exitCode = EXIT_CODES.failed;
      failed.push({ [kind]: name, message: error.message });
      if (!isJson) await printError(terminal, printable(error.message));
    }
  }
  if (failed.length > 0) terminal.exitCode = done.length > 0 ? EXIT_CODES.problems : exitCode;
  return { done, failed };
}

/** Changes each, and reports the names of those that were changed. @param past - what they are then: `paused`. */
export async function changeEach(
  run: Run<unknown>,
  kind: 'queue' | 'id',
  names: readonly string[],
  past: string,
  work: (name: string) => Promise<unknown>,
): Promise<Report> {
  const { done, failed } = await withEach(run, kind, names, work);
  return {
    json: () => ({ [past]: done.map(({ name }) => name), failed }),
    lines: () => done.map(({ name }) => `${printable(name)}: ${past}`),
  };
}

/** Returns whether the operation may succeed on another queue or task. */
function isAboutOne(error: unknown): error is Error {
  if (error instanceof HttpStatusError) return [400, 404, 409].includes(error.status);
  if (error instanceof Unreachable || isUnavailable(error)) return false;
  return isExpected(error);
}

/** Codes of arguments that only the broker checks. */
const EXPECTED_CODES = ['ERR_INVALID_ARG_VALUE', 'ERR_OUT_OF_RANGE'];

/** Returns whether an error is not a fault of this program; a `ReplyError` is one of Redis. */
function isExpected(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (error instanceof CommandError || error instanceof EscapementError) return true;
  return error.name === 'ReplyError' || ('code' in error && EXPECTED_CODES.includes(String(error.code)));
}
