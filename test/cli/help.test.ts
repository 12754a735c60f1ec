import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addDiskQueue } from '../../src/cli/diskqueue/diskqueue.ts';
import { run } from '../../src/cli/main.ts';
import { addTasks } from '../../src/cli/tasks/tasks.ts';
import { Output } from '../../src/cli/terminal/output.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';
import { FakeStream } from './tasks/support/tasks-command.ts';

const PARTS = [addDiskQueue, addTasks];

function terminalOn(stream: FakeStream): Terminal {
  const out = new Output(stream);
  return { out, err: out, signal: new AbortController().signal, exitCode: 0 };
}

async function helpOf(...words: string[]): Promise<string> {
  const stream = new FakeStream(false);
  expect(await run([...words, '--help'], terminalOn(stream), PARTS, '0.0.0')).toBe(0);
  return stream.written;
}

/** The words of every command, and of every group of commands. */
function commandsIn(parent: Command, words: readonly string[] = []): string[][] {
  return parent.commands.flatMap((command) => {
    const path = [...words, command.name()];
    return [path, ...commandsIn(command, path)];
  });
}

const program = new Command();
for (const add of PARTS) add(program, terminalOn(new FakeStream(false)));

describe('--help', () => {
  it.each([[], ...commandsIn(program)].map((words) => ({ words, command: words.join(' ') })))(
    'of escapement $command fits 80 columns',
    async ({ words }) => {
      const lines = (await helpOf(...words)).split('\n');
      expect(lines.filter(({ length }) => length > 80)).toEqual([]);
    },
  );

  it('of a command on tasks explains the connection options', async () => {
    const help = await helpOf('tasks', 'queue', 'ls');
    expect(help).toMatch(/^Connection \(see: escapement tasks --help\):\n {2}-u, --uri <uri> /m);
    for (const option of ['--db', '--password', '--cluster_addrs', '--tls', '--token', '--json']) {
      expect(help).toContain(option);
    }
    expect(help).not.toContain('--cluster-addrs');
  });

  it('of queue remove explains --force where the command is listed', async () => {
    expect(await helpOf('tasks', 'queue')).toContain('--force');
  });
});
