import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseGoDuration } from '../../tasks/go-text.ts';
import { TASK_STATES, type TaskState } from '../../tasks/task-state.ts';

/** What makes a value of a word. */
export type Parse = (word: string) => unknown;

/** Another name of an option: it sets the same value, and the help leaves it out. */
class Alias extends Option {
  readonly #attribute: string;

  constructor(flags: string, of: Option) {
    super(flags);
    this.#attribute = of.attributeName();
    if (of.parseArg !== undefined) this.argParser(of.parseArg);
    this.hideHelp();
  }

  override attributeName(): string {
    return this.#attribute;
  }
}

/** Adds an option that has other names too. */
export function addOption(command: Command, option: Option, ...aliases: readonly string[]): Command {
  command.addOption(option);
  for (const flags of aliases) command.addOption(new Alias(flags, option));
  return command;
}

/** A name of a queue, a task, a group: anything but nothing. */
export function text(word: string): string {
  if (word.trim() === '') throw new InvalidArgumentError('It must not be blank.');
  if (!word.isWellFormed()) throw new InvalidArgumentError('It must be Unicode.');
  return word;
}

/** For an option that may be repeated. */
export function texts(word: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text(word)];
}

/** @param most - the greatest that will do. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (word: string) => number {
  return (word) => {
    const value = /^\d+$/.test(word) ? Number(word) : NaN;
    if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}

/** Milliseconds, of a duration as Go writes it. */
export function duration(least: number): (word: string) => number {
  return (word) => {
    const ms = parseGoDuration(word);
    if (ms === undefined) throw new InvalidArgumentError("It must be a duration: '90s', '1h30m'.");
    if (ms < least)
      throw new InvalidArgumentError(`It must be at least ${least === 0 ? '0' : `${least / 1_000}s`}.`);
    return ms;
  };
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** A time as RFC 3339 has it: never without its offset, so that nobody needs to know where it is typed. */
export function time(word: string): Date {
  const date = new Date(RFC_3339.test(word) ? word : NaN);
  if (!Number.isNaN(date.getTime())) return date;
  throw new InvalidArgumentError("It must be a time by RFC 3339: '2026-11-21T12:00:00Z'.");
}

export function state(word: string): TaskState {
  const found = TASK_STATES.find((one) => one === word);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`It must be one of ${TASK_STATES.join(', ')}.`);
}

/** `-q, --queue`, needed or not. */
export function addQueue(command: Command, isNeeded: boolean, description = 'the queue'): Command {
  return command.addOption(
    new Option('-q, --queue <queue>', description).argParser(text).makeOptionMandatory(isNeeded),
  );
}

/** What `--page` and `--size` say. */
export interface PageOptions {
  readonly page: number;
  readonly size: number;
}

/** asynq's. */
const DEFAULT_PAGE_SIZE = 30;

/** A page is made in one go. */
const MAX_PAGE_SIZE = 1_000;
const MAX_PAGE = Math.floor(Number.MAX_SAFE_INTEGER / MAX_PAGE_SIZE);

/** `--page`, `--size`. */
export function addPage(command: Command): Command {
  return command
    .addOption(new Option('--page <n>', 'which part, from 1').argParser(wholeNumber(1, MAX_PAGE)).default(1))
    .addOption(
      new Option('--size <n>', 'how many are in a part')
        .argParser(wholeNumber(1, MAX_PAGE_SIZE))
        .default(DEFAULT_PAGE_SIZE),
    );
}
