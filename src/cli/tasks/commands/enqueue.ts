import { InvalidArgumentError, Option, type Command } from 'commander';
import type { TaskOptions } from '../../../tasks/task-options.ts';
import { CommandError } from '../../command-error.ts';
import { addOption, duration, text, time, wholeNumber } from '../../options.ts';
import { printable } from '../../terminal/text.ts';
import { infoJson } from '../info-json.ts';
import { does, type Report, type Run, type Surroundings } from '../run.ts';
import { showTime } from '../show.ts';

/** The maximum of a 32-bit number on the wire. */
const MAX_RETRIES = 2 ** 31 - 1;

type Parse = (word: string, before: never) => unknown;

/** Task options: flags, help, parser, name of the task option, other flags. */
const ROWS: readonly (readonly [string, string, Parse, keyof TaskOptions, ...string[]])[] = [
  ['-q, --queue <queue>', "queue of the task [default: 'default']", text, 'queue'],
  ['--id <id>', 'id of the task [default: a UUID]', text, 'taskId', '--task_id <id>'],
  ['--retry <n>', 'number of retries [default: 25]', wholeNumber(0, MAX_RETRIES), 'maxRetry'],
  ['--timeout <duration>', 'how long a run may take', duration(0), 'timeoutMs'],
  ['--deadline <time>', 'when the last run must be over', time, 'deadline'],
  ['--unique <duration>', 'how long duplicates are rejected', duration(1_000), 'uniqueTtlMs'],
  ['--process_at <time>', 'when to process it [default: now]', time, 'processAt'],
  ['--process_in <duration>', 'when to process it, from now', duration(0), 'processInMs'],
  ['--retention <duration>', 'how long it is kept when it is done', duration(0), 'retentionMs'],
  ['-g, --group <group>', 'group with which it is aggregated', text, 'group'],
  ['--header <header>', "header for the handler: 'name=value'; may be repeated", header, 'headers'],
];

const HELP = `
A duration is in Go's notation: 90s, 1h30m, 300ms. A time is in RFC 3339:
2026-11-21T12:00:00Z.`;

interface EnqueueOptions extends Readonly<Record<string, unknown>> {
  readonly type_name: string;
  readonly payload?: string;
}

/** Adds `task enqueue`. */
export function addEnqueue(group: Command, surroundings: Surroundings): void {
  const command = group.command('enqueue').description('add a task').addHelpText('after', HELP);
  const type = new Option('-t, --type_name <type>', 'type of the task').argParser(text);
  addOption(command, type.makeOptionMandatory(), '--type <type>');
  command.option('-l, --payload <text>', 'payload, byte for byte');
  const options = ROWS.map(([flags, description, parse, name, ...aliases]) => {
    const option = new Option(flags, description).argParser(parse as (word: string) => unknown);
    addOption(command, option, ...aliases);
    return { name, attribute: option.attributeName() };
  });
  does<EnqueueOptions>(command, surroundings, (run) =>
    enqueue(run, Object.fromEntries(options.map(({ name, attribute }) => [name, run.options[attribute]]))),
  );
}

async function enqueue({ target, options }: Run<EnqueueOptions>, taskOptions: TaskOptions): Promise<Report> {
  if (taskOptions.processAt !== undefined && taskOptions.processInMs !== undefined) {
    throw new CommandError('--process_at and --process_in cannot be used together');
  }
  const task = await target.enqueue(options.type_name, options.payload, taskOptions);
  const { id, queue, state, nextProcessAt } = task;
  const when = state === 'scheduled' && nextProcessAt !== undefined ? ` for ${showTime(nextProcessAt)}` : '';
  return {
    json: () => infoJson(task),
    lines: () => [`${printable(id)}: ${printable(state)}${when}, in queue ${printable(queue)}`],
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
