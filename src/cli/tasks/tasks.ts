import type { Command } from 'commander';
import type { EntryView, QueueView, ServerView } from '../../tasks/http/asynqmon-json.ts';
import { countsOf, type SchedulerEnqueueEvent } from '../../tasks/info.ts';
import { TASK_STATES } from '../../tasks/task-state.ts';
import { texts } from '../options.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { formatCount, type Columns } from '../terminal/text.ts';
import { addCopy } from './commands/copy.ts';
import { addQueueCommands } from './commands/queue-commands.ts';
import { addRepair } from './commands/repair.ts';
import { addTaskCommands } from './commands/task-commands.ts';
import { connectTarget } from './connect.ts';
import { addConnectionOptions, CONNECTION_HELP } from './connection.ts';
import { addDash } from './dash/dash.ts';
import {
  reportEach,
  reportList,
  tableOf,
  tablesOf,
  TasksCommand,
  type PageOptions,
  type Report,
  type Run,
  type Surroundings,
} from './run.ts';
import {
  contentCell,
  GROUP_COLUMNS,
  infoJson,
  serverJson,
  showDuration,
  showErrorRate,
  showRelative,
  showTime,
} from './show.ts';

/** Adds `escapement tasks`. @param others - surroundings that a test replaces. */
export function addTasks(program: Command, terminal: Terminal, others: Partial<Surroundings> = {}): void {
  const host = { environment: process.env, connect: connectTarget, now: Date.now, keyboard: process.stdin };
  const part = new TasksCommand('tasks', { terminal, ...host, ...others })
    .copyInheritedSettings(program)
    .description('inspect and change tasks and their queues, in Redis, in a folder or in another process')
    .addHelpText('after', CONNECTION_HELP);
  program.addCommand(part);
  addConnectionOptions(part);
  part.command('stats').description('show counts of all queues and their tasks').reads(showStats);
  addQueueCommands(part);
  addTaskCommands(part);
  addListings(part);
  addRepair(part);
  addCopy(part);
  addDash(part);
  for (const group of part.commands)
    if (group.commands.length > 0)
      group.addHelpText('after', '\nOptions of the connection: escapement tasks --help');
}

/** Adds `server`, `cron` and `group`. */
function addListings(part: TasksCommand): void {
  const server = part.command('server').description('inspect servers');
  server.addList('list the servers that are running').reads(listServers);
  const cron = part.command('cron').description('inspect schedules');
  cron.addList('list the entries of running schedulers').reads(listEntries);
  cron
    .command('history')
    .description('list what entries have enqueued, the newest first')
    .argument('<entry...>', 'ids of the entries', texts)
    .inPages()
    .reads(listEvents);
  const group = part.command('group').description('inspect groups');
  group.addList('list the groups of a queue that have tasks').ofQueue().reads(listGroups);
}

// Counts.

const SUMMED = [...TASK_STATES, 'size', 'processed', 'failed'] as const;

type Totals = Pick<QueueView, (typeof SUMMED)[number]>;

const STATE_COLUMNS = TASK_STATES.map(
  (state) => [state, (counts: Totals) => formatCount(counts[state])] as const,
);

const QUEUE_COLUMNS: Columns<QueueView> = [
  ['queue', ({ queue, paused }) => queue + (paused ? ' (paused)' : '')],
  ['size', ({ size }) => formatCount(size), 'right'],
  ...STATE_COLUMNS.map(([state, cell]) => [state, cell, 'right'] as const),
  ['latency', ({ latencyMs }) => showDuration(latencyMs), 'right'],
];

const TODAY_COLUMNS: Columns<Totals> = [
  ['processed', ({ processed }) => formatCount(processed)],
  ['failed', ({ failed }) => formatCount(failed)],
  ['error rate', showErrorRate],
];

type RedisReport = Readonly<Record<string, string>>;

/** Columns of the table of Redis: the same as in asynq's command. */
const REDIS_COLUMNS: Columns<RedisReport> = [
  ['version', ({ redis_version: version = '?' }) => version],
  ['uptime', ({ uptime_in_days: days = '?' }) => `${days} d`],
  ['connections', ({ connected_clients: clients = '?' }) => clients],
  ['memory', ({ used_memory_human: memory = '?' }) => `${memory}B`],
  ['peak memory', ({ used_memory_peak_human: memory = '?' }) => `${memory}B`],
];

async function showStats(run: Run<unknown>): Promise<Report> {
  const queues = await run.target.queueInfos();
  const total = totalOf(queues);
  const redis = await run.target.redisInfo?.();
  const { size, processed, failed } = total;
  return {
    json: () => ({
      aggregate: { size, ...countsOf(total), processed, failed, timestamp: new Date(run.now()) },
      queues,
      redis: redis ?? null,
    }),
    lines: () => [
      ...['Tasks by state', tableOf(run, STATE_COLUMNS, [total])],
      ...['Tasks by queue', tableOf(run, QUEUE_COLUMNS, queues)],
      ...['Today, by UTC', tableOf(run, TODAY_COLUMNS, [total])],
      ...(redis === undefined ? [] : ['Redis', tableOf(run, REDIS_COLUMNS, [redis])]),
    ],
  };
}

function totalOf(queues: readonly QueueView[]): Totals {
  const sums = SUMMED.map((name) => [name, queues.reduce((sum, queue) => sum + queue[name], 0)] as const);
  return Object.fromEntries(sums) as Totals;
}

// Servers.

function serverColumns(nowMs: number): Columns<ServerView> {
  return [
    ['host', ({ host }) => host],
    ['pid', ({ pid }) => String(pid)],
    ['state', ({ status }) => status],
    ['active workers', ({ activeWorkers, concurrency }) => `${activeWorkers.length}/${concurrency}`],
    [
      'queues',
      ({ queues }) =>
        Object.entries(queues)
          .map((queue) => queue.join(':'))
          .join(' '),
    ],
    ['started', ({ startedAt }) => showRelative(startedAt, nowMs)],
  ];
}

async function listServers(run: Run<unknown>): Promise<Report> {
  const servers = await run.target.servers();
  return reportList(run, serverColumns(run.now()), servers, { servers: servers.map(serverJson) });
}

// Schedulers.

function entryColumns(nowMs: number): Columns<EntryView> {
  return [
    ['entry', ({ id }) => id],
    ['spec', ({ spec }) => spec],
    ['type', ({ taskType }) => taskType],
    ['payload', ({ taskPayload }) => contentCell(taskPayload)],
    ['options', ({ options }) => options.join(', ')],
    ['next', ({ nextEnqueueAt }) => showRelative(nextEnqueueAt, nowMs)],
    ['previous', ({ prevEnqueueAt }) => showRelative(prevEnqueueAt, nowMs)],
  ];
}

async function listEntries(run: Run<unknown>): Promise<Report> {
  const entries = await run.target.schedulerEntries();
  return reportList(run, entryColumns(run.now()), entries, { entries: entries.map(infoJson) });
}

function eventColumns(nowMs: number): Columns<SchedulerEnqueueEvent> {
  return [
    ['task', ({ taskId }) => taskId],
    ['enqueued', ({ enqueuedAt }) => showTime(enqueuedAt)],
    ['', ({ enqueuedAt }) => showRelative(enqueuedAt, nowMs)],
  ];
}

function listEvents(run: Run<PageOptions>): Promise<Report> {
  const { page, size } = run.options;
  const read = (id: string): Promise<readonly SchedulerEnqueueEvent[]> =>
    run.target.listSchedulerEnqueueEvents(id, { page, pageSize: size });
  return reportEach(run, 'id', run.words, read, {
    json: (done) => ({ page, size, entries: done.map(({ name, value }) => ({ id: name, events: value })) }),
    lines: (done) => tablesOf(run, eventColumns(run.now()), done),
  });
}

// Groups.

async function listGroups(run: Run<{ queue: string }>): Promise<Report> {
  const { queue } = run.options;
  await run.target.getQueueInfo(queue); // an unknown queue has no groups, and is an error
  const groups = await run.target.groups(queue);
  return reportList(run, GROUP_COLUMNS, groups, { queue, groups });
}
