import type { Command } from 'commander';
import type { Terminal } from '../terminal/terminal.ts';
import { addCronCommands, addGroupCommands, addServerCommands } from './commands/add-other-commands.ts';
import { addQueueCommands } from './commands/add-queue-commands.ts';
import { addRepair } from './commands/add-repair.ts';
import { addStats } from './commands/add-stats.ts';
import { addTaskCommands } from './commands/add-task-commands.ts';
import { addConnectionOptions, CONNECTION_HELP } from './connection/add-connection-options.ts';
import { connectTarget } from './connection/connect.ts';
import { addDash } from './dash/add-dash.ts';
import type { Surroundings } from './run.ts';

/** `escapement tasks`: looks at tasks and their queues, and changes them, with the words of asynq's command. */
export function addTasks(program: Command, terminal: Terminal): void {
  addTasksIn(program, {
    terminal,
    environment: process.env,
    connect: connectTarget,
    now: Date.now,
    keyboard: process.stdin,
  });
}

/** The same, wherever the tasks are. */
export function addTasksIn(program: Command, surroundings: Surroundings): void {
  const part = program
    .command('tasks')
    .description('look at tasks and their queues, in Redis or in another process, and change them')
    .addHelpText('after', CONNECTION_HELP)
    .enablePositionalOptions();
  addConnectionOptions(part);
  addStats(part, surroundings);
  addQueueCommands(part, surroundings);
  addTaskCommands(part, surroundings);
  addServerCommands(part, surroundings);
  addCronCommands(part, surroundings);
  addGroupCommands(part, surroundings);
  addRepair(part, surroundings);
  addDash(part, surroundings);
}
