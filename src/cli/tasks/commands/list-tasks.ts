import { Option, type Command } from 'commander';
import type { TaskState } from '../../../tasks/task-state.ts';
import { CommandError } from '../../command-error.ts';
import { addPage, addQueue, state, text, type PageOptions } from '../options.ts';
import { does, print, type Run, type Surroundings } from '../run.ts';
import { taskJson } from '../show/show-json.ts';
import { showDetails, showTable } from '../show/show-table.ts';
import { taskDetails, taskRows } from '../show/show-task.ts';
import type { TaskList } from '../target/tasks-target.ts';

/** Options that name a list. */
export interface ListOptions {
  readonly queue: string;
  readonly state: TaskState;
  readonly group?: string;
}

interface Hex {
  readonly hex?: boolean;
}

const HEX = '--hex';
const HEX_TEXT = 'payloads and results as hex';

/** `task list` and `task inspect`. */
export function addListCommands(group: Command, surroundings: Surroundings): void {
  const list = group.command('list').alias('ls').description('list the tasks of a state');
  addPage(addList(list)).option(HEX, HEX_TEXT);
  does(list, surroundings, listTasks);
  const inspect = addQueue(group.command('inspect').description('all that is known of a task'), true)
    .addOption(new Option('-i, --id <id>', 'the task').argParser(text).makeOptionMandatory())
    .option(HEX, HEX_TEXT);
  does(inspect, surroundings, inspectTask);
}

/** `-q -s [-g]`. */
export function addList(command: Command): Command {
  return addQueue(command, true)
    .addOption(new Option('-s, --state <state>', 'where they are').argParser(state).makeOptionMandatory())
    .addOption(new Option('-g, --group <group>', 'of aggregating tasks, their group').argParser(text));
}

/** @throws CommandError - the group is missing, or means nothing. */
export function listOf({ queue, state, group }: ListOptions): TaskList {
  if (state === 'aggregating' && group === undefined) {
    throw new CommandError('of aggregating tasks, say which with --group; `group ls` lists them');
  }
  if (state !== 'aggregating' && group !== undefined)
    throw new CommandError('--group is for aggregating tasks');
  return { queue, state, group };
}

async function listTasks(run: Run<ListOptions & PageOptions & Hex>): Promise<void> {
  const { page, size, hex } = run.options;
  const list = listOf(run.options);
  const tasks = await run.target.tasks(list, { page, pageSize: size });
  await print(
    run,
    () => ({ ...list, page, size, tasks: tasks.map(taskJson) }),
    () => [showTable(taskRows(tasks, list.state, { hex }, run.now()), run.terminal.out)],
  );
}

async function inspectTask(run: Run<{ queue: string; id: string } & Hex>): Promise<void> {
  const { queue, id, hex } = run.options;
  const task = await run.target.task(queue, id);
  await print(
    run,
    () => taskJson(task),
    () => showDetails(taskDetails(task, { hex }, run.now()), run.terminal.out),
  );
}
