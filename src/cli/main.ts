import { Command, CommanderError } from 'commander';
import { describeError } from './command-error.ts';
import { addDiskQueue } from './diskqueue/diskqueue.ts';
import { EXIT_CODES } from './exit-code.ts';
import { addTasks } from './tasks/tasks.ts';
import { interruptible } from './terminal/interrupt.ts';
import { hostTerminal, type Terminal } from './terminal/terminal.ts';
import { packageVersion } from './version.ts';

/** A part of what the command can do: adds its own commands. */
export type Part = (program: Command, terminal: Terminal) => void;

const PARTS: readonly Part[] = [addDiskQueue, addTasks];

/** Runs the command. @returns what the process should end with. */
export function main(words: readonly string[]): Promise<number> {
  return interruptible((signal) => run(words, hostTerminal(signal), PARTS, packageVersion()));
}

/** Runs the command on a terminal. */
export async function run(
  words: readonly string[],
  terminal: Terminal,
  parts: readonly Part[],
  version: string,
): Promise<number> {
  const texts: { out: string[]; err: string[] } = { out: [], err: [] };
  const program = describeProgram(texts).version(version);
  for (const add of parts) add(program, terminal);
  try {
    await program.parseAsync(words, { from: 'user' });
    await terminal.out.flush();
    return terminal.exitCode;
  } catch (error) {
    return await fail(error, terminal, texts);
  }
}

function describeProgram(texts: { out: string[]; err: string[] }): Command {
  return new Command('escapement')
    .description('Looks after what escapement keeps: queues on a disk, and tasks.')
    .enablePositionalOptions() // what a part has may have the same letters
    .exitOverride()
    .configureOutput({
      writeOut: (text) => texts.out.push(text),
      writeErr: (text) => texts.err.push(text),
    })
    .showHelpAfterError('(add --help for what there is)');
}

async function fail(
  error: unknown,
  { out, err, signal }: Terminal,
  texts: { out: string[]; err: string[] },
): Promise<number> {
  if (error instanceof CommanderError) {
    await out.add(texts.out.join(''));
    await out.flush();
    await err.add(texts.err.join(''));
    await err.flush();
    return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.failed;
  }
  await out.flush().catch(() => undefined);
  if (signal.aborted && error === signal.reason) return EXIT_CODES.interrupted;
  await err.print(`${err.paint('red', 'escapement:')} ${describeError(error)}`).catch(() => undefined);
  return EXIT_CODES.failed;
}
