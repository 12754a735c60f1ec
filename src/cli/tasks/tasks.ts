import type { Command } from 'commander';
import type { Terminal } from '../terminal/terminal.ts';
import { addCopy } from './commands/copy.ts';
import { addOtherCommands } from './commands/other-commands.ts';
import { addQueueCommands } from './commands/queue-commands.ts';
import { addStats } from './commands/stats.ts';
import { addTaskCommands } from './commands/task-commands.ts';
import { addConnectionOptions, CONNECTION_HELP, connectTarget } from './connect.ts';
import { addDash } from './dash/dash.ts';
import type { Surroundings } from './run.ts';

export function addTasks(program: Command, terminal: Terminal): void {
  addTasksIn(program, {
    terminal,
    environment: process.env,
    connect: connectTarget,
    now: Date.now,
    keyboard: process.stdin,
  });
}

/** Adds `escapement tasks` in surroundings that a test may replace. */
export function addTasksIn(program: Command, surroundings: Surroundings): void {
  const part = program
    .command('tasks')
    .description('inspect and change tasks and their queues, in Redis, in a folder or in another process')
    .addHelpText('after', CONNECTION_HELP)
    .enablePositionalOptions();
  addConnectionOptions(part);
  addStats(part, surroundings);
  addQueueCommands(part, surroundings);
  addTaskCommands(part, surroundings);
  addOtherCommands(part, surroundings);
  addCopy(part, surroundings);
  addDash(part, surroundings);
}
