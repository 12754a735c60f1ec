import { InvalidArgumentError, Option, type Command } from 'commander';
import {
  TASK_OPTIONS,
  type OptionFlag,
  type OptionKind,
  type TaskOptions,
} from '../../../tasks/task-options.ts';
import { Task } from '../../../tasks/task.ts';
import { CommandError } from '../../command-error.ts';
import { addOption, goDuration, text, time, wholeNumber } from '../../options.ts';
import { printable } from '../../terminal/text.ts';
import { changes, type Report, type Run, type Surroundings } from '../run.ts';
import { infoJson, showTime } from '../show.ts';

const PARSERS: Readonly<Record<OptionKind, (word: string, before: never) => unknown>> = {
  count: wholeNumber(0),
  duration: goDuration(0),
  headers: header,
  text,
  time,
};

const HELP = `
A duration is in Go's notation: 90s, 1h30m, 300ms. A time is in RFC 3339:
2026-11-21T12:00:00Z.`;

interface EnqueueOptions extends Readonly<Record<string, unknown>> {
  readonly type_name: string;
  readonly payload?: string;
}

/** Adds `task enqueue`, with a flag for each task option. */
export function addEnqueue(group: Command, surroundings: Surroundings): void {
  const command = group.command('enqueue').description('add a task').addHelpText('after', HELP);
  const type = new Option('-t, --type_name <type>', 'type of the task').argParser(text);
  addOption(command, type.makeOptionMandatory(), '--type <type>');
  command.option('-l, --payload <text>', 'payload, byte for byte');
  const attributes = Object.entries(TASK_OPTIONS).map(([name, [check, , { kind }, flag]]) => {
    const { flags, help, alias }: OptionFlag = flag;
    const option = new Option(flags, help).argParser((word, before) => {
      const value = PARSERS[kind](word, before as never);
      return checked(value, check);
    });
    addOption(command, option, ...(alias === undefined ? [] : [alias]));
    return [name, option.attributeName()] as const;
  });
  changes<EnqueueOptions>(command, surroundings, (run) =>
    enqueue(run, Object.fromEntries(attributes.map(([name, attribute]) => [name, run.options[attribute]]))),
  );
}

/** Reports at the flag what `enqueue` would reject. */
function checked(value: unknown, check: (argument: string, value: unknown) => void): unknown {
  try {
    check('It', value);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
  return value;
}

async function enqueue({ target, options }: Run<EnqueueOptions>, taskOptions: TaskOptions): Promise<Report> {
  if (taskOptions.processAt !== undefined && taskOptions.processInMs !== undefined) {
    throw new CommandError('--process_at and --process_in cannot be used together');
  }
  const { type_name: type, payload } = options;
  const bytes = payload === undefined ? undefined : Buffer.from(payload);
  const info = await target.enqueue(new Task(type, bytes, taskOptions)).catch((error: unknown) => {
    throw inFlags(error);
  });
  const { id, queue, state, nextProcessAt } = info;
  const when = state === 'scheduled' && nextProcessAt !== undefined ? ` for ${showTime(nextProcessAt)}` : '';
  return {
    json: () => infoJson(info),
    lines: () => [`${printable(id)}: ${printable(state)}${when}, in queue ${printable(queue)}`],
  };
}

/** Names the flags of the options in an error: that options contradict each other is found only when the task is enqueued. */
function inFlags(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const flags: ReadonlyMap<string, string | undefined> = new Map(
    Object.entries(TASK_OPTIONS).map(([name, [, , , { flags: all }]]) => [name, /--\w+/.exec(all)?.[0]]),
  );
  const message = error.message.replace(/\boptions\.(\w+)/g, (word, name: string) => flags.get(name) ?? word);
  return message === error.message ? error : new CommandError(message, { cause: error });
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
