import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addDashboard } from '../../src/cli/dashboard/dashboard.ts';
import { addDiskQueue } from '../../src/cli/diskqueue/diskqueue.ts';
import { addTasks } from '../../src/cli/tasks/tasks.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';
import { filesIn, read } from './read.ts';

/** Its commands are described and never run. */
const NO_TERMINAL = {} as Terminal;

/** The names of all commands below a command, and the long names of their options. */
function wordsOf(command: Command): string[] {
  const options = command.options.flatMap(({ long, hidden }) => (long == null || hidden ? [] : [long]));
  return [...options, ...command.commands.flatMap((each) => [each.name(), ...wordsOf(each)])];
}

test.each([
  [['docs/tasks-command.md'], addTasks],
  [['docs/diskqueue-command.md'], addDiskQueue],
  [['docs/dashboard.md', 'docs/tasks-command.md'], addDashboard], // the latter has the options of the connection
])('%s: every command and every option is named', (pages, add) => {
  const program = new Command('escapement');
  add(program, NO_TERMINAL);
  const text = pages.map(read).join('\n');
  const words = new Set(program.commands.flatMap((part) => wordsOf(part)));
  expect(words.size).toBeGreaterThan(5);
  expect([...words].filter((word) => !new RegExp(`(?<![-\\w])${word}(?![-\\w])`).test(text))).toEqual([]);
});

/** The lines of the documents that call the command, with the page and the words after its name. */
function commandLines(): { where: string; words: string[] }[] {
  return ['README.md', ...filesIn('docs', '.md')].flatMap((page) => {
    const blocks = read(page).matchAll(/^```sh\n(.*?)^```/gms);
    const lines = [...blocks].flatMap(([, block = '']) => block.split('\n'));
    return lines.flatMap((line) => {
      const rest = /npx escapement (.*?)\s*(?: #.*| \| .*| > .*| \|)?$/.exec(line)?.[1];
      if (rest === undefined) return [];
      const words = [...rest.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
      return [{ where: `${page}: ${rest}`, words }];
    });
  });
}

/** Makes each command only check its words. */
function withoutActions(command: Command): Command {
  command.exitOverride().configureOutput({ writeErr: () => undefined });
  if (command.commands.length === 0) command.action(() => undefined);
  command.commands.forEach(withoutActions);
  return command;
}

test.each(commandLines())('the command takes the words of $where', async ({ words }) => {
  const program = new Command('escapement');
  for (const add of [addTasks, addDiskQueue, addDashboard]) add(program, NO_TERMINAL);
  await withoutActions(program).parseAsync(words, { from: 'user' });
});
