/** What `npm run bench -- …` accepts. Every mistake is found before the first measurement. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Command } from 'commander';
import { wrap } from './terminal.ts';
import { parseWords, UsageError } from './program.ts';

interface Options {
  readonly filter?: string;
  readonly quick?: boolean;
  /** Names of files. */
  readonly json?: string;
  readonly compare?: string;
  readonly html?: string;
}

export interface Settings extends Options {
  /** The parts to run: all of them, unless one was named. */
  readonly parts: readonly string[];
}

const EXPLANATION = `
Contestants of a case alternate in one process, round after round. A cell is the median of the rounds, with their
range. The first column divides the baseline by the contestant: above 1 is faster than the baseline. Less is better
in every other column. 'collector' is the time of the garbage collector, which is part of the time. Targets are
judged by full runs only.

Exit codes: 0 measured; 1 a contestant did not do its work, see stderr; 2 a mistake on the command line.
A missed target is shown and does not change the exit code, because it may be due to the machine.

Parts: `;

/**
 * @returns the settings, or `undefined` if `--help` was printed.
 * @throws UsageError - an unknown option or part, a missing value, a file that cannot be written.
 */
export function parseCommandLine(
  words: readonly string[],
  partNames: readonly string[],
  out: (text: string) => void,
): Settings | undefined {
  const command = new Command('npm run bench --')
    .description('Measures this library against the alternatives to it.')
    .argument('[part]', 'the part to run (default: all)')
    .option('--filter <word>', 'run only cases whose name contains WORD, ignoring case')
    .option('--quick', 'smoke run: every case with fewer rounds and smaller sizes, targets not judged')
    .option('--json <file>', 'write machine, date and every sample of every round to FILE')
    .option('--compare <file>', 'print now / then against a FILE that --json wrote')
    .option('--html <file>', 'write a report with charts to FILE')
    .addHelpText('after', wrap(EXPLANATION + partNames.join(', ')));
  if (!parseWords(command, words, out)) return undefined;
  const [part] = command.args;
  const options = command.opts<Options>();
  if (part !== undefined && !partNames.includes(part)) {
    throw new UsageError(`unknown part '${part}'. Parts: ${partNames.join(', ')}`);
  }
  requireWritable('--json', options.json);
  requireWritable('--html', options.html);
  return { ...options, parts: part === undefined ? partNames : [part] };
}

/** Minutes of measuring must not end at a missing folder. */
function requireWritable(option: string, file: string | undefined): void {
  if (file === undefined) return;
  try {
    accessSync(dirname(resolve(file)), constants.W_OK);
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error('it is a folder');
  } catch (error) {
    throw new UsageError(`${option}: cannot write '${file}': ${(error as Error).message}`);
  }
}
