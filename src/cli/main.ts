import { Command, CommanderError } from 'commander';
import { describeError } from './command-error.ts';
import { addDiskQueue } from './diskqueue/diskqueue.ts';
import { EXIT_CODES } from './exit-code.ts';
import { interruptible } from './terminal/interrupt.ts';
import { hostTerminal, type Terminal } from './terminal/terminal.ts';
import { packageVersion } from './version.ts';

/** What the command can do: each part adds its own commands. */
const PARTS: readonly ((program: Command, terminal: Terminal) => void)[] = [addDiskQueue];

/** Runs the command. @returns what the process should end with. */
export function main(words: readonly string[]): Promise<number> {
  return interruptible((signal) => run(words, hostTerminal(signal)));
}

/** Runs the command on a terminal. */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  const texts: { out: string[]; err: string[] } = { out: [], err: [] };
  const program = describeProgram(terminal, texts);
  try {
    await program.parseAsync(words, { from: 'user' });
    await terminal.out.flush();
    return terminal.exitCode;
  } catch (error) {
    return await fail(error, terminal, texts);
  }
}

function describeProgram(terminal: Terminal, texts: { out: string[]; err: string[] }): Command {
  const program = new Command('escapement')
    .description('Looks after what escapement keeps on a disk.')
    .version(packageVersion())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => texts.out.push(text),
      writeErr: (text) => texts.err.push(text),
    })
    .showHelpAfterError('(add --help for what there is)');
  for (const add of PARTS) add(program, terminal);
  return program;
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
