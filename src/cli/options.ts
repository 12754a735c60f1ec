import { statSync } from 'node:fs';
import { sep } from 'node:path';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { utcDay } from '../core/units.ts';
import { parseGoDuration } from '../tasks/go-text.ts';
import { CommandError } from './command-error.ts';

/** Another name of an option: it sets the same value, and is not in the help. */
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

/** Adds an option that may have other names. A name with `_`, as asynq has it, may be written with `-` too. */
export function addOption(command: Command, option: Option, ...others: readonly string[]): void {
  command.addOption(option);
  const dashed = [option.flags, ...others]
    .filter((flags) => flags.includes('_'))
    .map((flags) => flags.replace(/^-\w, /, '').replaceAll('_', '-'));
  for (const flags of [...others, ...dashed]) command.addOption(new Alias(flags, option));
}

/** Parses the name of a queue, a task or a group. */
export function text(word: string): string {
  if (word.trim() === '') throw new InvalidArgumentError('It must not be blank.');
  if (!word.isWellFormed()) throw new InvalidArgumentError('It must be Unicode.');
  return word;
}

/** Does not match the root, nor that of a drive. A backslash separates on Windows only. */
const TRAILING_SEPARATORS = sep === '/' ? /(?<=.)\/+$/ : /(?<=[^:])[/\\]+$/;

/** Returns the path of a folder without separators at its end: those of its files begin with it, and one separator. */
export function withoutSeparator(path: string): string {
  return path.replace(TRAILING_SEPARATORS, '');
}

/** @throws CommandError - there is no folder at the path. */
export function requireFolder(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new CommandError(`${path}: no such folder`);
  if (!found.isDirectory()) throw new CommandError(`${path}: not a folder`);
}

/** Parses names: of an argument or option that may be repeated. */
export function texts(word: string, before: readonly string[] = []): readonly string[] {
  return [...before, text(word)];
}

export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (word: string) => number {
  return (word) => {
    const value = /^\d+$/.test(word) ? Number(word) : NaN;
    if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}

/** Parses a duration in Go's notation. @returns milliseconds. */
export function goDuration(leastMs: number): (word: string) => number {
  return (word) => {
    const ms = parseGoDuration(word);
    if (ms === undefined) throw new InvalidArgumentError("It must be a duration: '90s', '1h30m'.");
    if (ms >= leastMs) return ms;
    throw new InvalidArgumentError(`It must be at least ${leastMs === 0 ? '0' : `${leastMs / 1_000}s`}.`);
  };
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** Parses a time in RFC 3339, with its offset: it does not depend on the time zone of the machine. */
export function time(word: string): Date {
  const date = new Date(RFC_3339.test(word) ? word : NaN);
  const day = word.slice(0, 'YYYY-MM-DD'.length);
  // `Date` takes 30 February for 2 March.
  if (!Number.isNaN(date.getTime()) && utcDay(Date.parse(day)) === day) return date;
  throw new InvalidArgumentError("It must be a time in RFC 3339: '2026-11-21T12:00:00Z'.");
}
