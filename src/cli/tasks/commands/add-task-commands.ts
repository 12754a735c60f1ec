import type { Command } from 'commander';
import type { Surroundings } from '../run.ts';
import { addBulkCommands } from './bulk.ts';
import { addChangeCommands } from './change-tasks.ts';
import { addEnqueue } from './enqueue.ts';
import { addListCommands } from './list-tasks.ts';

/** `escapement tasks task …`. */
export function addTaskCommands(part: Command, surroundings: Surroundings): void {
  const group = part.command('task').description('look at tasks, and change them').enablePositionalOptions();
  addListCommands(group, surroundings);
  addChangeCommands(group, surroundings);
  addEnqueue(group, surroundings);
  addBulkCommands(group, surroundings);
}
