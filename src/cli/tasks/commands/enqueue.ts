import { InvalidArgumentError, Option, type Command } from 'commander';
import type { TaskOptions } from '../../../tasks/task-options.ts';
import { CommandError } from '../../command-error.ts';
import { printable } from '../../terminal/text.ts';
import { addOption, addQueue, duration, text, time, wholeNumber } from '../options.ts';
import { does, print, type Run, type Surroundings } from '../run.ts';
import { taskJson } from '../show/show-json.ts';
import { showTime } from '../show/show-time.ts';

/** What a 32-bit number on the wire holds. */
const MAX_RETRIES = 2 ** 31 - 1;

interface EnqueueOptions {
  readonly type_name: string;
  readonly payload?: string;
  readonly queue?: string;
  readonly id?: string;
  readonly retry?: number;
  readonly timeout?: number;
  readonly deadline?: Date;
  readonly unique?: number;
  readonly process_at?: Date;
  readonly process_in?: number;
  readonly retention?: number;
  readonly group?: string;
  readonly header?: Readonly<Record<string, string>>;
}

const HELP = `
A duration is written as in Go: 90s, 1h30m, 300ms. A time is written by RFC
3339: 2026-11-21T12:00:00Z.`;

/** `task enqueue`. */
export function addEnqueue(group: Command, surroundings: Surroundings): void {
  const command = group.command('enqueue').description('add a task').addHelpText('after', HELP);
  const type = new Option('-t, --type_name <type>', 'which handler it is for').argParser(text);
  addOption(command, type.makeOptionMandatory(), '--type <type>', '--type-name <type>');
  command.addOption(new Option('-l, --payload <text>', 'what the handler is given, as it is typed'));
  addQueue(command, false, "where it waits [default: 'default']");
  const add = (
    flags: string,
    description: string,
    parse: (word: string) => unknown,
    ...names: string[]
  ): void => {
    addOption(command, new Option(flags, description).argParser(parse), ...names);
  };
  add('--id <id>', 'its id [default: a UUID]', text, '--task_id <id>', '--task-id <id>');
  add('--retry <n>', 'failures that are tried again [default: 25]', wholeNumber(0, MAX_RETRIES));
  add('--timeout <duration>', 'how long a run may take', duration(0));
  add('--deadline <time>', 'when the last run must be over', time);
  add('--unique <duration>', 'keeps others like it out for so long', duration(1_000));
  add('--process_at <time>', 'when it is to be processed [default: now]', time, '--process-at <time>');
  add('--process_in <duration>', 'the same, from now', duration(0), '--process-in <duration>');
  add('--retention <duration>', 'how long it is kept when it is done', duration(0));
  add('-g, --group <group>', 'it is aggregated with others of the group', text);
  command.addOption(
    new Option('--header <header>', "passed on to the handler: 'name=value'; may be repeated").argParser(
      header,
    ),
  );
  does(command, surroundings, enqueue);
}

async function enqueue(run: Run<EnqueueOptions>): Promise<void> {
  const { type_name: type, payload } = run.options;
  if (run.options.process_at !== undefined && run.options.process_in !== undefined) {
    throw new CommandError('--process_at and --process_in cannot be used together');
  }
  const task = await run.target.enqueue({ type, payload, options: taskOptions(run.options) });
  await print(
    run,
    () => taskJson(task),
    () => {
      const when =
        task.state === 'scheduled' && task.nextProcessAt !== undefined ? task.nextProcessAt : undefined;
      const what = when === undefined ? task.state : `scheduled for ${showTime(when)}`;
      return [`${printable(task.id)}: ${printable(what)}, in queue ${printable(task.queue)}`];
    },
  );
}

function taskOptions(options: EnqueueOptions): TaskOptions {
  const { queue, id, retry, timeout, deadline, unique, process_at, process_in, retention, group, header } =
    options;
  return {
    ...{ queue, taskId: id, maxRetry: retry, timeoutMs: timeout, deadline, uniqueTtlMs: unique },
    ...{ processAt: process_at, processInMs: process_in, retentionMs: retention, group, headers: header },
  };
}

function header(
  word: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
  if (name === undefined || value === undefined || !word.isWellFormed()) {
    throw new InvalidArgumentError("It must be 'name=value'.");
  }
  return Object.fromEntries([...Object.entries(before), [name, value]]);
}
