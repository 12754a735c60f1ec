import { Command, Option } from 'commander';
import { unlessAborted } from '../../core/signal-options.ts';
import { isUnavailable } from '../../tasks/broker/broker-errors.ts';
import { HttpError } from '../../tasks/http/http-error.ts';
import { MAX_PAGE, MAX_PAGE_SIZE } from '../../tasks/inspector-options.ts';
import { TASK_STATES, type TaskState } from '../../tasks/task-state.ts';
import { CommandError, describeError, isExpected } from '../command-error.ts';
import { text, wholeNumber } from '../options.ts';
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
import type { connectTarget, FolderAccess } from './connect.ts';
import {
  addConnectionOptions,
  connectionOf,
  type ConnectionOptions,
  type Environment,
} from './connection.ts';
import type { TasksTarget } from './target/tasks-target.ts';

export type Connect = typeof connectTarget;

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

/** It may print by itself instead of returning a report. */
type Work<Options> = (run: Run<Options>) => Promise<Report | undefined>;

export interface StateOptions {
  readonly queue: string;
  readonly state: TaskState;
  readonly group?: string;
}

export interface PageOptions {
  readonly page: number;
  readonly size: number;
}

/** The same as in asynq's command. */
const DEFAULT_PAGE_SIZE = 30;

/** `escapement tasks`, a group of its commands, or one of them. */
export class TasksCommand extends Command {
  readonly #surroundings: Surroundings;

  constructor(name: string | undefined, surroundings: Surroundings) {
    super(name);
    this.#surroundings = surroundings;
  }

  override createCommand(name?: string): TasksCommand {
    return new TasksCommand(name, this.#surroundings);
  }

  /** Adds a command that lists what a group is about. */
  addList(description: string): TasksCommand {
    return this.command('list').alias('ls').description(description);
  }

  /** Sets the options that select a queue. */
  ofQueue(): this {
    return this.requiredOption('-q, --queue <queue>', 'the queue', text);
  }

  /** Sets the options that select all tasks in a state: {@link StateOptions}. */
  ofList(states: readonly TaskState[] = TASK_STATES): this {
    const state = new Option('-s, --state <state>', 'state of the tasks').choices(states);
    return this.ofQueue()
      .addOption(state.makeOptionMandatory())
      .option('-g, --group <group>', 'group of aggregating tasks', text);
  }

  /** Sets the options that select a page: {@link PageOptions}. */
  inPages(): this {
    return this.option('--page <n>', 'number of the page, from 1', wholeNumber(1, MAX_PAGE), 1).option(
      '--size <n>',
      'entries per page',
      wholeNumber(1, MAX_PAGE_SIZE),
      DEFAULT_PAGE_SIZE,
    );
  }

  /** Sets the action of a command that inspects tasks. It has a target, which is closed afterwards, and what it returns is printed. */
  reads<Options>(work: Work<Options>): void {
    this.calls<Options>((call) => withTarget(call, 'read', work));
  }

  /** The same for a command that changes tasks: it takes the folder that they are in. */
  changes<Options>(work: Work<Options>): void {
    this.calls<Options>((call) => withTarget(call, 'change', work));
  }

  /** Sets the action of a command that finds the tasks by itself. */
  calls<Options>(work: (call: Invocation<Options>) => Promise<void>): void {
    addConnectionOptions(this);
    this.action(async () => {
      const options = allOptions(this);
      const words = this.processedArgs.flat() as readonly string[];
      const isJson = options['json'] === true;
      await work({ ...this.#surroundings, words, isJson, options: options as Options });
    });
  }
}

export async function print({ terminal, isJson }: Invocation<unknown>, report: Report): Promise<void> {
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
    const report = await work({ ...call, target });
    if (report !== undefined) await print(call, report);
    const damages = target.damages ?? 0;
    if (damages === 0) return;
    const message = `${counted(damages, 'damaged part')} of the folder left out; 'tasks verify' lists them`;
    await printError(terminal, message);
  };
  signal.throwIfAborted();
  const connecting = connect(connectionOf(options as ConnectionOptions, environment), signal, access);
  try {
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
export function tablesOf<T>(run: Surroundings, columns: Columns<T>, done: Done<readonly T[]>): string[] {
  return done.flatMap(({ name, value }) => [
    run.terminal.out.paint('bold', printable(name)),
    tableOf(run, columns, value),
  ]);
}

/** Returns a line for each detail, with the names in bold. */
export function detailsOf({ terminal }: Surroundings, details: readonly Detail[]): string[] {
  return detailLines(details, (name) => terminal.out.paint('bold', name));
}

/** Error of a task that cannot be cancelled, because it is not active. */
export class NotActive extends CommandError {
  constructor(id: string) {
    super(`there is no active task '${id}'`);
  }
}

/** What an operation has returned for each name. */
type Done<R> = readonly { readonly name: string; readonly value: R }[];

/**
 * Runs an operation on each, also after one that failed, and reports what it has returned, with what has failed: in `failed` of the JSON
 * the name, as `kind`, and the message; else as errors that are printed at once. The exit code is 1 if some failed, 2 if all did, and 1
 * if there was nothing to cancel.
 */
export async function reportEach<R>(
  { terminal, isJson }: Run<unknown>,
  kind: 'queue' | 'id',
  names: readonly string[],
  work: (name: string) => Promise<R>,
  report: {
    readonly json: (done: Done<R>) => object;
    readonly lines: (done: Done<R>) => readonly string[];
  },
): Promise<Report> {
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
  return { json: () => ({ ...report.json(done), failed }), lines: () => report.lines(done) };
}

/** Changes each, and reports the names of those that were changed. @param past - what they are then: `paused`. */
export function changeEach(
  run: Run<unknown>,
  kind: 'queue' | 'id',
  names: readonly string[],
  past: string,
  work: (name: string) => Promise<unknown>,
): Promise<Report> {
  return reportEach(run, kind, names, work, {
    json: (done) => ({ [past]: done.map(({ name }) => name) }),
    lines: (done) => done.map(({ name }) => `${printable(name)}: ${past}`),
  });
}

/** Returns whether the operation may succeed on another queue or task. */
function isAboutOne(error: unknown): error is Error {
  if (error instanceof HttpError) return [400, 404, 409].includes(error.status);
  return isExpected(error) && !isUnavailable(error);
}
