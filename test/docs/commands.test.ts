import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addDiskQueue } from '../../src/cli/diskqueue/diskqueue.ts';
import { addTasks } from '../../src/cli/tasks/tasks.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';

/** Its commands are described and never run. */
const NO_TERMINAL = {} as Terminal;

/** The names of all commands below a command, and the long names of their options. */
function wordsOf(command: Command): string[] {
  const options = command.options.flatMap(({ long, hidden }) => (long == null || hidden ? [] : [long]));
  return [...options, ...command.commands.flatMap((each) => [each.name(), ...wordsOf(each)])];
}

test.each([
  ['docs/tasks-command.md', addTasks],
  ['docs/diskqueue-command.md', addDiskQueue],
])('%s names every command and every option', (page, add) => {
  const program = new Command('escapement');
  add(program, NO_TERMINAL);
  const text = readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
  const words = new Set(program.commands.flatMap((part) => wordsOf(part)));
  expect(words.size).toBeGreaterThan(5);
  expect([...words].filter((word) => !new RegExp(`(?<![-\\w])${word}(?![-\\w])`).test(text))).toEqual([]);
});
