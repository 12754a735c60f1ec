import { InvalidArgumentError, Option } from 'commander';
import type { CancelOutcome } from '../../../tasks/broker/broker.ts';
import { httpErrorOf } from '../../../tasks/http/http-error.ts';
import {
  type OptionFlag,
  type OptionKind,
  TASK_OPTIONS,
  type TaskOptions,
} from '../../../tasks/task-options.ts';
import { ASYNQ_CHANGES, TASK_STATES, type TaskChange } from '../../../tasks/task-state.ts';
import { Task } from '../../../tasks/task.ts';
import { CommandError } from '../../command-error.ts';
import { addOption, goDuration, text, texts, time, wholeNumber } from '../../options.ts';
import { ProgressBar } from '../../terminal/progress-bar.ts';
import { counted, printable } from '../../terminal/text.ts';
import {
  changeEach,
  detailsOf,
  type StateOptions,
  NotActive,
  type PageOptions,
  type Report,
  reportEach,
  reportList,
  type Run,
  type TasksCommand,
} from '../run.ts';
import { infoJson, showTime, taskColumns, taskDetails } from '../show.ts';
import type { TasksOfState, TasksTarget } from '../target/tasks-target.ts';

/** A change of tasks, what they are then, and the commands that make it: for some tasks, and for all in a state. */
type ChangeRow = readonly [change: TaskChange, past: string, some: string, all: string, ...aliases: string[]];

const CHANGES: readonly ChangeRow[] = [
  ['archive', 'archived', 'archive tasks: they do not run again', 'archive all tasks in a state'],
  ['delete', 'deleted', 'delete tasks', 'delete all tasks in a state', 'remove', 'rm'],
  ['run', 'pending', 'make tasks pending', 'make all tasks in a state pending'],
];

const CANCEL_HELP = `
Requests the server that runs a task to stop it: the signal of its handler
fires. A server of this package answers; one of asynq stops the task without an
answer, and over the HTTP API there is none. The exit code is 1 if there is no
active task with the id.`;

const HEX = ['--hex', 'show payloads and results as hex'] as const;

interface Hex {
  readonly hex?: boolean;
}

export function addTaskCommands(part: TasksCommand): void {
  const group = part.command('task').description('inspect and change tasks');
  group
    .addList('list the tasks in a state')
    .ofList()
    .inPages()
    .option(...HEX)
    .reads(listTasks);
  group
    .command('inspect')
    .description('show everything about a task')
    .ofQueue()
    .requiredOption('-i, --id <id>', 'the task', text)
    .option(...HEX)
    .reads(inspectTask);
  addCancel(group);
  for (const row of CHANGES) addChange(group, row);
  addEnqueue(group);
  for (const [change, past, , all] of CHANGES) {
    const states = TASK_STATES.filter((state) => ASYNQ_CHANGES[state].includes(change));
    const command = group.command(`${change}all`).description(all).ofList(states);
    command.changes<StateOptions>((run) => changeAll(run, change, past));
  }
}

/** @throws CommandError - the group is missing, or given for another state. */
function listOf({ queue, state, group }: StateOptions): TasksOfState {
  if (state === 'aggregating' && group === undefined) {
    throw new CommandError('aggregating tasks need --group; `group ls` lists the groups');
  }
  if (state !== 'aggregating' && group !== undefined)
    throw new CommandError('--group is for aggregating tasks');
  return { queue, state, group };
}

async function listTasks(run: Run<StateOptions & PageOptions & Hex>): Promise<Report> {
  const { page, size, hex } = run.options;
  const list = listOf(run.options);
  const tasks = await run.target.list(list.queue, list.state, { page, pageSize: size }, list.group);
  const columns = taskColumns(list.state, run.now(), hex);
  return reportList(run, columns, tasks, { ...list, page, size, tasks: tasks.map(infoJson) });
}

async function inspectTask(run: Run<{ queue: string; id: string } & Hex>): Promise<Report> {
  const { queue, id, hex } = run.options;
  const task = await run.target.getTaskInfo(queue, id);
  return {
    json: () => infoJson(task),
    lines: () => detailsOf(run, taskDetails(task, run.now(), hex)),
  };
}

// Cancelling.

interface CancelOptions {
  readonly queue?: string;
  readonly outcome: CancelOutcome;
}

function addCancel(group: TasksCommand): void {
  const outcome = new Option('--outcome <outcome>', 'what becomes of the tasks');
  group
    .command('cancel')
    .description('request the servers that run tasks to stop them')
    .argument('<id...>', 'ids of the tasks', texts)
    .addOption(outcome.choices(['retry', 'archive', 'delete']).default('retry'))
    .option('-q, --queue <queue>', 'queue of the tasks [default: any]', text)
    .addHelpText('after', CANCEL_HELP)
    .reads(cancelTasks);
}

function cancelTasks(run: Run<CancelOptions>): Promise<Report> {
  return reportEach(run, 'id', run.words, (id) => cancel(run, id), {
    json: (done) => ({ cancelled: done.map(({ name, value }) => ({ id: name, isAnswered: value ?? null })) }),
    lines: (done) => done.map(({ name, value }) => `${printable(name)}: ${showAnswer(value)}`),
  });
}

/** Several queues may have an active task with the id. @throws NotActive - none has. */
async function cancel({ target, options }: Run<CancelOptions>, id: string): Promise<boolean | undefined> {
  const { queue, outcome } = options;
  const queues = queue === undefined ? (await target.queueInfos()).map((info) => info.queue) : [queue];
  const answers: (boolean | undefined)[] = [];
  for (const name of queues) {
    if (!(await isActive(target, name, id))) continue;
    answers.push(await target.cancelProcessing(id, { queue: name, outcome }));
  }
  if (answers.length === 0) throw new NotActive(id);
  return answers.find((isAnswered) => isAnswered === true) ?? answers[0];
}

async function isActive(target: TasksTarget, queue: string, id: string): Promise<boolean> {
  try {
    return (await target.getTaskInfo(queue, id)).state === 'active';
  } catch (error) {
    if (httpErrorOf(error)?.status === 404) return false;
    throw error;
  }
}

function showAnswer(isAnswered: boolean | undefined): string {
  if (isAnswered === undefined) return 'stop requested';
  return isAnswered ? 'stopping' : 'stop requested; no server has answered';
}

// Changes.

interface ChangeOptions {
  readonly queue: string;
  readonly id?: readonly string[];
}

function addChange(group: TasksCommand, [change, past, some, , ...aliases]: ChangeRow): void {
  group
    .command(change)
    .aliases(aliases)
    .description(some)
    .ofQueue()
    .argument('[id...]', 'ids of the tasks', texts)
    .option('-i, --id <id>', 'id of a task; may be repeated', texts)
    .changes<ChangeOptions>((run) => {
      const ids = [...(run.options.id ?? []), ...run.words];
      if (ids.length === 0) throw new CommandError('no task is given; use --id');
      return changeEach(run, 'id', ids, past, (id) => run.target.change(run.options.queue, { id }, change));
    });
}

async function changeAll(run: Run<StateOptions>, change: TaskChange, past: string): Promise<Report> {
  const list = listOf(run.options);
  const changed = await withBar(run, list, () => run.target.change(list.queue, list, change));
  return {
    json: () => ({ ...list, [past]: changed }),
    lines: () => [`${printable(list.queue)}: ${counted(changed, 'task')} ${past}`],
  };
}

/** How often the number of remaining tasks is read, in milliseconds. */
const READ_EVERY_MS = 300;

/** The tasks are changed in batches by the broker: the progress is the number of remaining tasks. */
async function withBar<R>(run: Run<unknown>, list: TasksOfState, work: () => Promise<R>): Promise<R> {
  const { terminal, target } = run;
  if (!terminal.err.isTerminal) return work();
  const total = await remaining(target, list);
  const bar = new ProgressBar(terminal.err, printable(list.queue));
  let isOver = false;
  const show = (left: number): void => {
    if (!isOver) bar.update(Math.max(0, total - left), total);
  };
  const timer = setInterval(() => void remaining(target, list).then(show, () => undefined), READ_EVERY_MS);
  try {
    return await work();
  } finally {
    isOver = true;
    clearInterval(timer);
    bar.stop();
  }
}

async function remaining(target: TasksTarget, { queue, state, group }: TasksOfState): Promise<number> {
  if (state !== 'aggregating') return (await target.getQueueInfo(queue))[state];
  return (await target.groups(queue)).find((one) => one.group === group)?.size ?? 0;
}

// Enqueueing.

const PARSERS: Readonly<Record<OptionKind, (word: string, before: never) => unknown>> = {
  count: wholeNumber(0),
  duration: goDuration(0),
  headers: header,
  text,
  time,
};

const ENQUEUE_HELP = `
A duration is in Go's notation: 90s, 1h30m, 300ms. A time is in RFC 3339:
2026-11-21T12:00:00Z.`;

interface EnqueueOptions extends Readonly<Record<string, unknown>> {
  readonly type_name: string;
  readonly payload?: string;
}

/** Adds `task enqueue`, with a flag for each task option. */
function addEnqueue(group: TasksCommand): void {
  const command = group.command('enqueue').description('add a task').addHelpText('after', ENQUEUE_HELP);
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
  command.changes<EnqueueOptions>((run) =>
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
