import type { Command } from 'commander';
import { unlessAborted } from '../../core/signal-options.ts';
import { isUnavailable } from '../../tasks/broker/broker-errors.ts';
import { HttpError } from '../../tasks/http/http-error.ts';
import { CommandError, describeError, isExpected } from '../command-error.ts';
import { EXIT_CODES, printError, type Terminal } from '../terminal/terminal.ts';
import {
  counted,
  detailLines,
  printable,
  table,
  toJson,
  type Columns,
  type Detail,
} from '../terminal/text.ts';
import { addConnectionOptions, type FolderAccess } from './connect.ts';
import { connectionOf, type Connection, type ConnectionOptions, type Environment } from './connection.ts';
import type { TasksTarget } from './target/tasks-target.ts';

/** Connects to the tasks; the signal aborts everything. */
export type Connect = (
  connection: Connection,
  signal: AbortSignal,
  access: FolderAccess,
) => Promise<TasksTarget>;

export interface Surroundings {
  readonly terminal: Terminal;
  readonly environment: Environment;
  readonly connect: Connect;
  /** Returns wall-clock milliseconds. */
  readonly now: () => number;
  readonly keyboard: NodeJS.ReadStream;
}

/** A command with its arguments. */
export interface Invocation<Options> extends Surroundings {
  readonly options: Options;
  /** The arguments that are not options. */
  readonly words: readonly string[];
  readonly isJson: boolean;
}

/** A command with the tasks that it is about. */
export interface Run<Options> extends Invocation<Options> {
  readonly target: TasksTarget;
}

/** What a command prints: one JSON document with `--json`, else lines for people. */
export interface Report {
  readonly json: () => unknown;
  readonly lines: () => readonly string[];
}

type Work<Options> = (run: Run<Options>) => Promise<Report | undefined>;

/** Sets the action of a command that inspects tasks. It has a target, which is closed afterwards, and what it returns is printed. */
export function does<Options>(command: Command, surroundings: Surroundings, work: Work<Options>): void {
  calls<Options>(command, surroundings, (call) => withTarget(call, 'read', work));
}

/** The same for a command that changes tasks: it takes the folder that they are in. */
export function changes<Options>(command: Command, surroundings: Surroundings, work: Work<Options>): void {
  calls<Options>(command, surroundings, (call) => withTarget(call, 'change', work));
}

/** Sets the action of a command that finds the tasks by itself. */
export function calls<Options>(
  command: Command,
  surroundings: Surroundings,
  work: (call: Invocation<Options>) => Promise<void>,
): void {
  addConnectionOptions(command);
  command.action(async () => {
    const options = allOptions(command);
    const words = command.processedArgs.flat() as readonly string[];
    const isJson = options['json'] === true;
    await work({ ...surroundings, words, isJson, options: options as Options });
  });
}

export async function print(
  { terminal, isJson }: Invocation<unknown>,
  report: Report | undefined,
): Promise<void> {
  if (report === undefined) return;
  await terminal.out.print(...(isJson ? [toJson(report.json())] : report.lines()));
}

/** Ctrl-C rejects at once, whatever is pending. */
export async function withTarget<Options>(
  call: Invocation<Options>,
  access: FolderAccess,
  work: Work<Options>,
): Promise<void> {
  const { terminal, environment, connect, options } = call;
  const { signal } = terminal;
  const run = async (target: TasksTarget): Promise<void> => {
    await print(call, await work({ ...call, target }));
    const damages = target.damages ?? 0;
    if (damages === 0) return;
    const message = `${counted(damages, 'damaged part')} of the folder left out; 'tasks verify' lists them`;
    await printError(terminal, message);
  };
  const connecting = connect(connectionOf(options as ConnectionOptions, environment), signal, access);
  try {
    signal.throwIfAborted();
    await unlessAborted(signal, connecting.then(run));
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

/** Reports a list: as a table, or as `json`. */
export function reportList<T>(
  run: Surroundings,
  columns: Columns<T>,
  items: readonly T[],
  json: object,
): Report {
  return { json: () => json, lines: () => [tableOf(run, columns, items)] };
}

export function tableOf<T>({ terminal }: Surroundings, columns: Columns<T>, items: readonly T[]): string {
  return table(columns, items, terminal.out.width);
}

/** Returns a table for each, below its name. */
export function tablesOf<T>(
  run: Surroundings,
  columns: Columns<T>,
  done: Outcome<readonly T[]>['done'],
): string[] {
  return done.flatMap(({ name, value }) => [
    run.terminal.out.paint('bold', printable(name)),
    tableOf(run, columns, value),
  ]);
}

/** Returns a line for each detail, with the names in bold. */
export function detailsOf({ terminal }: Surroundings, details: readonly Detail[]): string[] {
  return detailLines(details, (name) => terminal.out.paint('bold', name));
}

/** There is nothing to cancel. */
export class NotActive extends CommandError {
  constructor(id: string) {
    super(`there is no active task '${id}'`);
  }
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
      if (!isJson) await printError(terminal, describeError(error));
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
  if (error instanceof HttpError) return [400, 404, 409].includes(error.status);
  return isExpected(error) && !isUnavailable(error);
}
