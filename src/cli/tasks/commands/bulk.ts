import { Option, type Command } from 'commander';
import type { TaskChange, TaskState } from '../../../tasks/task-state.ts';
import { ProgressBar } from '../../terminal/progress-bar.ts';
import { count, printable } from '../../terminal/text.ts';
import { addQueue, text } from '../options.ts';
import { does, print, type Run, type Surroundings } from '../run.ts';
import type { TaskList, TasksTarget } from '../target/tasks-target.ts';
import { listOf, type ListOptions } from './list-tasks.ts';

/** How often it is looked at how many are left, in milliseconds. */
const LOOK_EVERY_MS = 300;

interface Bulk {
  readonly name: string;
  readonly description: string;
  /** What the tasks are afterwards. */
  readonly done: string;
  readonly states: readonly TaskState[];
  readonly change: TaskChange;
}

const BULKS: readonly Bulk[] = [
  {
    name: 'archiveall',
    description: 'archive all tasks of a state',
    done: 'archived',
    states: ['pending', 'scheduled', 'retry', 'aggregating'],
    change: 'archive',
  },
  {
    name: 'deleteall',
    description: 'delete all tasks of a state',
    done: 'deleted',
    states: ['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'],
    change: 'delete',
  },
  {
    name: 'runall',
    description: 'make all tasks of a state pending',
    done: 'pending',
    states: ['scheduled', 'retry', 'archived', 'aggregating'],
    change: 'run',
  },
];

/** `task archiveall`, `deleteall` and `runall`. */
export function addBulkCommands(group: Command, surroundings: Surroundings): void {
  for (const bulk of BULKS) {
    const command = addQueue(group.command(bulk.name).description(bulk.description), true)
      .addOption(
        new Option('-s, --state <state>', 'where they are').choices(bulk.states).makeOptionMandatory(),
      )
      .addOption(new Option('-g, --group <group>', 'of aggregating tasks, their group').argParser(text));
    does<ListOptions>(command, surroundings, (run) => runBulk(run, bulk));
  }
}

async function runBulk(run: Run<ListOptions>, bulk: Bulk): Promise<void> {
  const list = listOf(run.options);
  const changed = await watched(run, list, () => run.target.change(list.queue, list, bulk.change));
  await print(
    run,
    () => ({ ...list, [bulk.done]: changed }),
    () => [`${printable(list.queue)}: ${count(changed, 'task')} ${bulk.done}`],
  );
}

/** It goes on in pieces, elsewhere: how far it is can be seen by how many are left. */
async function watched<R>(run: Run<unknown>, list: TaskList, work: () => Promise<R>): Promise<R> {
  const { terminal, target } = run;
  if (!terminal.err.isTerminal) return work();
  const total = await leftOf(target, list);
  const bar = new ProgressBar(terminal.err, printable(list.queue));
  let isOver = false;
  const show = (left: number): void => {
    if (!isOver) bar.update(Math.max(0, total - left), total);
  };
  const look = setInterval(() => void leftOf(target, list).then(show, () => undefined), LOOK_EVERY_MS);
  try {
    return await work();
  } finally {
    isOver = true;
    clearInterval(look);
    bar.stop();
  }
}

async function leftOf(target: TasksTarget, { queue, state, group }: TaskList): Promise<number> {
  if (state !== 'aggregating') return (await target.queue(queue))[state];
  return (await target.groups(queue)).find((one) => one.group === group)?.size ?? 0;
}
