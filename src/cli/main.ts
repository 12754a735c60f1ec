import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { describeError } from './command-error.ts';
import { addDashboard } from './dashboard/dashboard.ts';
import { addDiskQueue } from './diskqueue/diskqueue.ts';
import { addTasks } from './tasks/tasks.ts';
import { EXIT_CODES, hostTerminal, interruptible, printError, type Terminal } from './terminal/terminal.ts';

type Part = (program: Command, terminal: Terminal) => void;

const PARTS: readonly Part[] = [addDashboard, addDiskQueue, addTasks];

export function main(words: readonly string[]): Promise<number> {
  return interruptible((signal) => run(words, hostTerminal(signal), PARTS, packageVersion()));
}

export async function run(
  words: readonly string[],
  terminal: Terminal,
  parts: readonly Part[],
  version: string,
): Promise<number> {
  const program = describeProgram(terminal).version(version);
  for (const add of parts) add(program, terminal);
  try {
    // The `help` of commander takes one word, and every group of commands has it.
    const [first, ...others] = words;
    const meant = first === 'help' ? [...others.slice(0, -1), first, ...others.slice(-1)] : words;
    await program.parseAsync(meant, { from: 'user' });
    await terminal.out.flush();
    return terminal.exitCode;
  } catch (error) {
    return await fail(error, terminal);
  }
}

function describeProgram({ out, err }: Terminal): Command {
  return new Command('escapement')
    .description('Inspect and manage disk queues and task queues.')
    .enablePositionalOptions() // the options of a part may have the same letters
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void out.add(text),
      writeErr: (text) => void err.add(text),
    })
    .showHelpAfterError('(add --help for a list of commands and options)');
}

async function fail(error: unknown, terminal: Terminal): Promise<number> {
  const { out, err, signal } = terminal;
  if (error instanceof CommanderError) {
    try {
      await out.flush();
      await err.flush();
    } catch (notWritten) {
      return fail(notWritten, terminal);
    }
    return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.failed;
  }
  await out.flush().catch(() => undefined);
  if (signal.aborted && error === signal.reason) return EXIT_CODES.interrupted;
  await printError(terminal, describeError(error)).catch(() => undefined);
  return EXIT_CODES.failed;
}

/** Returns the version of the package, whose manifest lies beside the folder of the built command. */
function packageVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
