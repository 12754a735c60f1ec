import { Option, type Command } from 'commander';
import type { CancelOutcome } from '../../../tasks/broker/broker.ts';
import type { TaskChange } from '../../../tasks/task-state.ts';
import { CommandError } from '../../command-error.ts';
import { printable } from '../../terminal/text.ts';
import { addQueue, texts } from '../options.ts';
import { does, print, withEach, type Outcome, type Run, type Surroundings } from '../run.ts';

interface ChangeOptions {
  readonly queue: string;
  readonly id?: readonly string[];
}

interface CancelOptions {
  readonly queue?: string;
  readonly outcome: CancelOutcome;
}

const CANCEL_HELP = `
The server that runs the task is asked to stop it, and cannot be made to.
Servers of this package answer; those of asynq stop without an answer, and over
the HTTP API there is none. Ends with 1 if there is no active task of that id.`;

/** `task cancel`, `archive`, `delete` and `run`. */
export function addChangeCommands(group: Command, surroundings: Surroundings): void {
  addCancel(group, surroundings);
  const several = (name: string, description: string): Command =>
    addQueue(group.command(name).description(description), true)
      .argument('[id...]', 'the tasks', texts)
      .addOption(new Option('-i, --id <id>', 'a task; may be repeated').argParser(texts));
  does<ChangeOptions>(several('archive', 'archive tasks: they are not tried again'), surroundings, (run) =>
    changeEach(run, 'archived', 'archive'),
  );
  const remove = several('delete', 'delete tasks').aliases(['remove', 'rm']);
  does<ChangeOptions>(remove, surroundings, (run) => changeEach(run, 'deleted', 'delete'));
  does<ChangeOptions>(several('run', 'make tasks pending, whatever they wait for'), surroundings, (run) =>
    changeEach(run, 'pending', 'run'),
  );
}

function addCancel(group: Command, surroundings: Surroundings): void {
  const cancel = group
    .command('cancel')
    .description('ask whoever runs tasks to stop')
    .argument('<id...>', 'the tasks', texts)
    .addOption(
      new Option('--outcome <outcome>', 'what becomes of the tasks')
        .choices(['retry', 'archive', 'delete'])
        .default('retry'),
    )
    .addHelpText('after', CANCEL_HELP);
  does(addQueue(cancel, false, 'their queue [default: any]'), surroundings, cancelTasks);
}

async function cancelTasks(run: Run<CancelOptions>): Promise<void> {
  const { queue, outcome } = run.options;
  const result = await withEach(run, run.words, (id) => run.target.cancelTask({ id, queue, outcome }));
  await print(
    run,
    () => ({
      cancelled: result.done.map(({ name, value }) => ({ id: name, isAnswered: value ?? null })),
      ...failedJson(result),
    }),
    () => result.done.map(({ name, value }) => `${printable(name)}: ${showAnswer(value)}`),
  );
}

function showAnswer(isAnswered: boolean | undefined): string {
  if (isAnswered === undefined) return 'asked to stop';
  return isAnswered ? 'told to stop' : 'asked to stop; nobody has answered';
}

async function changeEach(run: Run<ChangeOptions>, done: string, change: TaskChange): Promise<void> {
  const ids = [...(run.options.id ?? []), ...run.words];
  if (ids.length === 0) throw new CommandError('say which task with --id');
  const outcome = await withEach(run, ids, (id) => run.target.change(run.options.queue, { id }, change));
  await print(
    run,
    () => ({ [done]: outcome.done.map(({ name }) => name), ...failedJson(outcome) }),
    () => outcome.done.map(({ name }) => `${printable(name)}: ${done}`),
  );
}

function failedJson({ failed }: Outcome<unknown>): object {
  return { failed: failed.map(({ name, message }) => ({ id: name, message })) };
}
