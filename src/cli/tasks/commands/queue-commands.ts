import { InvalidArgumentError, Option } from 'commander';
import { hasCode } from '../../../core/errors.ts';
import { utcDay } from '../../../core/units.ts';
import { HISTORY_DAYS, limitsOf } from '../../../tasks/broker/broker-settings.ts';
import type { KeyStats, QueueLimits, Rate } from '../../../tasks/broker/broker.ts';
import { parseGoDuration } from '../../../tasks/go-text.ts';
import type { QueueView } from '../../../tasks/http/asynqmon-json.ts';
import type { DailyStats } from '../../../tasks/info.ts';
import type { DeleteQueueOptions } from '../../../tasks/inspector-options.ts';
import { CommandError } from '../../command-error.ts';
import { addOption, text, texts, wholeNumber } from '../../options.ts';
import { type Columns, formatCount, printable } from '../../terminal/text.ts';
import {
  changeEach,
  detailsOf,
  type PageOptions,
  type Report,
  reportEach,
  reportList,
  type Run,
  tablesOf,
  type TasksCommand,
  withTarget,
} from '../run.ts';
import { dayJson, limitDetails, queueColumns, queueDetails, showDuration, showErrorRate } from '../show.ts';
import type { TasksTarget } from '../target/tasks-target.ts';

const DEFAULT_DAYS = 10;

const DAY_COLUMNS: Columns<DailyStats> = [
  ['date', ({ date }) => utcDay(date.getTime())],
  ['processed', ({ processed }) => formatCount(processed), 'right'],
  ['failed', ({ failed }) => formatCount(failed), 'right'],
  ['error rate', showErrorRate, 'right'],
];

export function addQueueCommands(part: TasksCommand): void {
  const group = part.command('queue').description('inspect and change queues');
  const several = (name: string, description: string): TasksCommand =>
    group.command(name).description(description).argument('<queue...>', 'names of the queues', texts);
  group.addList('list all queues').reads(listQueues);
  several('inspect', 'show everything about queues').reads(inspectQueues);
  several('history', 'show what queues have processed, day by day')
    .option('-x, --days <n>', 'number of days, up to today', wholeNumber(1, HISTORY_DAYS), DEFAULT_DAYS)
    .reads(showHistory);
  several('pause', 'pause queues: none of their tasks is started').changes((run) =>
    changeEach(run, 'queue', run.words, 'paused', (queue) => run.target.pauseQueue(queue)),
  );
  several('resume', 'resume queues')
    .alias('unpause')
    .changes((run) =>
      changeEach(run, 'queue', run.words, 'resumed', (queue) => run.target.unpauseQueue(queue)),
    );
  addLimits(group);
  several('remove', 'remove queues: empty ones, or any with --force')
    .aliases(['rm', 'delete'])
    .option('-f, --force', 'also with tasks, if none is active')
    .changes<DeleteQueueOptions>((run) =>
      changeEach(run, 'queue', run.words, 'removed', (queue) => removeQueue(run.target, queue, run.options)),
    );
}

async function removeQueue(target: TasksTarget, queue: string, { force }: DeleteQueueOptions): Promise<void> {
  try {
    await target.deleteQueue(queue, { force });
  } catch (error) {
    if (force === true || !hasCode(error, 'ERR_QUEUE_NOT_EMPTY')) throw error;
    throw new CommandError(`${error.message}; --force removes them too`, { cause: error });
  }
}

async function listQueues(run: Run<unknown>): Promise<Report> {
  const queues = await run.target.queueInfos();
  return reportList(run, queueColumns(queues), queues, { queues });
}

function inspectQueues(run: Run<unknown>): Promise<Report> {
  const read = async (queue: string): Promise<{ info: QueueView; limits: QueueLimits | undefined }> => ({
    info: await run.target.getQueueInfo(queue),
    limits: await run.target.limits(queue),
  });
  return reportEach(run, 'queue', run.words, read, {
    json: (done) => ({
      queues: done.map(({ value: { info, limits } }) => ({ ...info, limits: limits ?? null })),
    }),
    lines: (done) =>
      done.flatMap(({ value }, at) => [
        ...(at === 0 ? [] : ['']),
        ...detailsOf(run, [...queueDetails(value.info), ...limitDetails(value.limits)]),
      ]),
  });
}

function showHistory(run: Run<{ days: number }>): Promise<Report> {
  const { days } = run.options;
  return reportEach(run, 'queue', run.words, (queue) => run.target.history(queue, days), {
    json: (done) => ({ queues: done.map(({ name, value }) => ({ queue: name, days: value.map(dayJson) })) }),
    lines: (done) => tablesOf(run, DAY_COLUMNS, done),
  });
}

// Limits and keys.

const LIMITS_HELP = `
Limits hold for all servers together, within a second, and runs in progress go
on. The limits that are given replace all that the queue has. A rate is a number
of tasks in a time: 100/1s, 10/1m.`;

/** The limits of a key have flags with a prefix. */
type LimitFlags = Partial<Record<'concurrency' | 'burst' | 'key_concurrency' | 'key_burst', number>> &
  Partial<Record<'rate' | 'key_rate', Rate>> & { readonly none?: boolean };

function limitFlags(prefix: '' | 'key_', tasks: string): readonly Option[] {
  return [
    new Option(`--${prefix}concurrency <n>`, `${tasks} that run at once`).argParser(wholeNumber(1)),
    new Option(`--${prefix}rate <n/time>`, `${tasks} that start in a time`).argParser(rate),
    new Option(
      `--${prefix}burst <n>`,
      `of these, at once after a pause [default: as --${prefix}rate]`,
    ).argParser(wholeNumber(1)),
  ];
}

/** Adds `queue limits` and `queue keys`. */
function addLimits(group: TasksCommand): void {
  const limits = group
    .command('limits')
    .description('show the limits of a queue; with options, set them')
    .argument('<queue>', 'name of the queue', text)
    .addHelpText('after', LIMITS_HELP);
  const flags = [
    ...limitFlags('', 'tasks'),
    ...limitFlags('key_', 'tasks of each key'),
    new Option('--none', 'remove all limits'),
  ];
  for (const flag of flags) addOption(limits, flag);
  limits.calls<LimitFlags>((call) => {
    const isChange = flags.some((flag) => Object.hasOwn(call.options, flag.attributeName()));
    return withTarget(call, isChange ? 'change' : 'read', isChange ? setLimits : showLimits);
  });
  group
    .command('keys')
    .description('list the keys of a queue that have tasks which wait or run')
    .argument('<queue>', 'name of the queue', text)
    .inPages()
    .reads(listKeys);
}

/** Parses a rate: `100/1s`. */
function rate(word: string): Rate {
  const [, tasks, time = ''] = /^(\d+)\/(.*)$/s.exec(word) ?? [];
  const perMs = parseGoDuration(time);
  if (tasks === undefined || perMs === undefined)
    throw new InvalidArgumentError("It must be a rate: '100/1s'.");
  if (perMs < 1) throw new InvalidArgumentError('Its time must be at least 1ms.');
  return { tasks: wholeNumber(1)(tasks), perMs };
}

async function showLimits(run: Run<LimitFlags>): Promise<Report> {
  const [queue = ''] = run.words;
  await run.target.getQueueInfo(queue); // an unknown queue has no limits, and is an error
  const limits = await run.target.limits(queue);
  return {
    json: () => ({ queue, limits: limits ?? null }),
    lines: () => detailsOf(run, [['queue', printable(queue)], ...limitDetails(limits)]),
  };
}

async function setLimits(run: Run<LimitFlags>): Promise<Report> {
  const [queue = ''] = run.words;
  const limits = limitsOfFlags(run.options);
  await run.target.setLimits(queue, limits);
  return showLimits(run);
}

/** @throws CommandError - flags contradict each other. */
function limitsOfFlags(flags: LimitFlags): QueueLimits | undefined {
  const limits = limitsOf({ ...limitsIn(flags, ''), perKey: limitsIn(flags, 'key_') });
  if (flags.none === true && limits !== undefined)
    throw new CommandError('--none removes all limits: give no others');
  return limits;
}

function limitsIn(flags: LimitFlags, prefix: '' | 'key_'): Omit<QueueLimits, 'perKey'> {
  const given = flags[`${prefix}rate`];
  const burst = flags[`${prefix}burst`];
  if (burst !== undefined && given === undefined) throw new CommandError(`a burst needs --${prefix}rate`);
  return { concurrency: flags[`${prefix}concurrency`], rate: given && { ...given, burst } };
}

const KEY_COLUMNS: Columns<KeyStats> = [
  ['key', ({ key }) => (key === '' ? '-' : key)],
  ['pending', ({ pending }) => formatCount(pending), 'right'],
  ['active', ({ active }) => formatCount(active), 'right'],
  ['held by', ({ heldBy = '-' }) => heldBy],
  ['again in', ({ againInMs }) => (againInMs === undefined ? '-' : showDuration(againInMs)), 'right'],
];

/** Times are whole milliseconds, as over HTTP. */
function keyJson(key: KeyStats): object {
  return { ...key, againInMs: key.againInMs && Math.ceil(key.againInMs) };
}

async function listKeys(run: Run<PageOptions>): Promise<Report> {
  const [queue = ''] = run.words;
  const { page, size } = run.options;
  const keys = await run.target.keys(queue, { page, pageSize: size });
  return reportList(run, KEY_COLUMNS, keys, { queue, page, size, keys: keys.map(keyJson) });
}
