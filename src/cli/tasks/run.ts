import type { Command } from 'commander';
import { EscapementError } from '../../core/errors.ts';
import { isUnavailable } from '../../tasks/broker/broker-errors.ts';
import { CommandError } from '../command-error.ts';
import { EXIT_CODES } from '../exit-code.ts';
import { toJson } from '../terminal/json.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printable } from '../terminal/text.ts';
import { addConnectionOptions } from './connection/add-connection-options.ts';
import { connectionOf, type Connection, type Environment } from './connection/connection.ts';
import { HttpStatusError, Unreachable } from './target/http-api.ts';
import { NotActive, type TasksTarget } from './target/tasks-target.ts';

/** Reaches what is looked at; the signal gives everything up. */
export type Connect = (connection: Connection, signal: AbortSignal) => Promise<TasksTarget>;

/** What all commands have. */
export interface Surroundings {
  readonly terminal: Terminal;
  readonly environment: Environment;
  readonly connect: Connect;
  /** In wall-clock milliseconds. */
  readonly now: () => number;
  /** Where keys come from. */
  readonly keyboard: NodeJS.ReadStream;
}

/** One run of a command. */
export interface Run<Options> extends Surroundings {
  readonly target: TasksTarget;
  readonly options: Options;
  /** What was typed besides options. */
  readonly words: readonly string[];
  readonly isJson: boolean;
}

/** Says what a command does: with a target that is there as long as it runs. */
export function does<Options>(
  command: Command,
  surroundings: Surroundings,
  work: (run: Run<Options>) => Promise<void>,
): void {
  addConnectionOptions(command);
  command.action(async () => {
    const options = allOptions(command);
    const { terminal, environment, connect } = surroundings;
    const { signal } = terminal;
    const attempt = async (): Promise<void> => {
      const connecting = connect(connectionOf(options, environment), signal);
      const target = await unlessAborted(signal, connecting).catch(async (error: unknown) => {
        await connecting.then(close, () => undefined);
        throw error;
      });
      const words = command.processedArgs.flat() as readonly string[];
      const run = { ...surroundings, target, words, isJson: options['json'] === true };
      try {
        await unlessAborted(signal, work({ ...run, options: options as Options }));
      } finally {
        await close(target);
      }
    };
    await attempt().catch((error: unknown) => {
      throw asOneLine(error);
    });
  });
}

/** Prints what a program is to read, or what people are. */
export async function print(
  { terminal, isJson }: Run<unknown>,
  json: () => unknown,
  lines: () => readonly string[],
): Promise<void> {
  await terminal.out.print(...(isJson ? [toJson(json())] : lines()));
}

/** What has come of each of several. */
export interface Outcome<R> {
  readonly done: readonly { readonly name: string; readonly value: R }[];
  readonly failed: readonly { readonly name: string; readonly message: string }[];
}

/**
 * Does something with each, and goes on after one that has failed: 1 is what the command will end with, or 2 if it was
 * done with none of them. Nothing to cancel is 1.
 */
export async function withEach<R>(
  { terminal, isJson }: Run<unknown>,
  names: readonly string[],
  work: (name: string) => Promise<R>,
): Promise<Outcome<R>> {
  const done: { name: string; value: R }[] = [];
  const failed: { name: string; message: string }[] = [];
  let exitCode: number = EXIT_CODES.problems;
  for (const name of names) {
    try {
      done.push({ name, value: await work(name) });
    } catch (error) {
      if (!isAboutOne(error)) throw error;
      if (!(error instanceof NotActive)) exitCode = EXIT_CODES.failed;
      failed.push({ name, message: error.message });
      const line = `${terminal.err.paint('red', 'escapement:')} ${printable(error.message)}`;
      if (!isJson) await terminal.err.print(line);
    }
  }
  if (failed.length > 0) terminal.exitCode = done.length > 0 ? EXIT_CODES.problems : exitCode;
  return { done, failed };
}

/** Whether the next one may fare better. */
function isAboutOne(error: unknown): error is Error {
  if (error instanceof HttpStatusError) return [400, 404, 409].includes(error.status);
  if (error instanceof Unreachable || isUnavailable(error)) return false;
  return isExpected(error);
}

function close(target: TasksTarget): Promise<void> {
  return target.close();
}

/** Those of the command, over those of the ones that it is part of. */
function allOptions(command: Command): Record<string, unknown> {
  const above = command.parent === null ? {} : allOptions(command.parent);
  return { ...above, ...command.opts() };
}

/** Names of users are in it. */
function asOneLine(error: unknown): unknown {
  return isExpected(error) ? new CommandError(printable(error.message), { cause: error }) : error;
}

/** What was typed may be wrong in ways that only the broker knows; or Redis has something against it. */
const EXPECTED_CODES = ['ERR_INVALID_ARG_VALUE', 'ERR_OUT_OF_RANGE'];

function isExpected(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (error instanceof CommandError || error instanceof EscapementError || error.name === 'ReplyError')
    return true;
  return 'code' in error && EXPECTED_CODES.includes(String(error.code));
}

async function unlessAborted<R>(signal: AbortSignal, promise: Promise<R>): Promise<R> {
  const ended = new AbortController();
  try {
    return await Promise.race([promise, abortOf(signal, ended.signal)]);
  } finally {
    ended.abort();
  }
}

/** @param until - when nobody waits for it any more. */
function abortOf(signal: AbortSignal, until: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true, signal: until });
  });
}
