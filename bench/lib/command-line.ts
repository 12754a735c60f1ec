/** What `npm run bench -- …` accepts. Everything that can be wrong is found before the first measurement. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import { wrap } from './wrap.ts';
import { UsageError } from './usage-error.ts';

export interface Settings {
  /** The parts to run, all of them unless one was named. */
  readonly parts: readonly string[];
  readonly filter: string;
  readonly isQuick: boolean;
  readonly jsonFile: string | undefined;
  readonly compareFile: string | undefined;
  readonly htmlFile: string | undefined;
}

/** Where `--help` goes. */
export interface Output {
  readonly out: (text: string) => void;
}

interface RawOptions {
  readonly filter?: string;
  readonly quick?: boolean;
  readonly json?: string;
  readonly compare?: string;
  readonly html?: string;
}

const EXPLANATION = `
Contestants of a case alternate inside one process, round after round. A cell is the median of the rounds, with
the range they spanned. The first column divides the baseline by the contestant: above 1 is faster than the
baseline. Less is better in every other column. 'collector' is what the garbage collector took, and part of the
time. Targets are judged by full runs only.

Exit codes: 0 measured; 1 a contestant did not do its work, see stderr; 2 a mistake on the command line.
A missed target is shown, and is no failure: another machine, another number.

Parts: `;

/**
 * @returns the settings, or `undefined` if `--help` was printed.
 * @throws UsageError - an unknown option or part, a missing value, a file that cannot be written.
 */
export function parseCommandLine(
  words: readonly string[],
  partNames: readonly string[],
  output: Output,
): Settings | undefined {
  const command = describeCommand(partNames, output);
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new UsageError(error.message.replace(/^error: /, ''));
  }
  return toSettings(command.args[0], command.opts<RawOptions>(), partNames);
}

function describeCommand(partNames: readonly string[], { out }: Output): Command {
  return new Command('npm run bench --')
    .description('Measures this library against what you would use without it.')
    .argument('[part]', 'the part to run (default: all)')
    .option('--filter <word>', 'only cases whose name contains WORD, whatever its case')
    .option('--quick', 'a smoke run of every case: fewer rounds, smaller sizes, targets not judged')
    .option('--json <file>', 'write machine, date and every sample of every round to FILE')
    .option('--compare <file>', 'print now / then against a FILE that --json wrote earlier')
    .option('--html <file>', 'write a report with charts to FILE')
    .addHelpText('after', wrap(EXPLANATION + partNames.join(', ')))
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: () => undefined });
}

function toSettings(part: string | undefined, raw: RawOptions, partNames: readonly string[]): Settings {
  if (part !== undefined && !partNames.includes(part)) {
    throw new UsageError(`unknown part '${part}'. There is: ${partNames.join(', ')}`);
  }
  requireWritable('--json', raw.json);
  requireWritable('--html', raw.html);
  return {
    parts: part === undefined ? partNames : [part],
    filter: raw.filter ?? '',
    isQuick: raw.quick ?? false,
    jsonFile: raw.json,
    compareFile: raw.compare,
    htmlFile: raw.html,
  };
}

/** Minutes of measuring must not end at a folder that is not there. */
function requireWritable(option: string, file: string | undefined): void {
  if (file === undefined) return;
  try {
    accessSync(dirname(resolve(file)), constants.W_OK);
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error('it is a folder');
  } catch (error) {
    throw new UsageError(`${option}: cannot write '${file}': ${(error as Error).message}`);
  }
}
