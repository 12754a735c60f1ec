import type { Command } from 'commander';
import type { GroupInfo } from '../../../tasks/broker/broker.ts';
import type { EntryView, ServerView } from '../../../tasks/http/asynqmon-json.ts';
import type { SchedulerEnqueueEvent } from '../../../tasks/inspector-info.ts';
import { addPage, addQueue, texts, type PageOptions } from '../../options.ts';
import { formatCount, printable, type Columns } from '../../terminal/text.ts';
import { does, reportList, tableOf, withEach, type Report, type Run, type Surroundings } from '../run.ts';
import { addRepair } from './repair.ts';
import { contentCell, infoJson, serverJson, showRelative, showTime } from '../show.ts';

export function addOtherCommands(part: Command, surroundings: Surroundings): void {
  const group = (name: string, description: string): Command =>
    part.command(name).description(description).enablePositionalOptions();
  const server = group('server', 'inspect servers');
  does(list(server, 'list the servers that are running'), surroundings, listServers);
  const cron = group('cron', 'inspect schedules');
  does(list(cron, 'list the entries of running schedulers'), surroundings, listEntries);
  const history = cron
    .command('history')
    .description('list what entries have enqueued, the newest first')
    .argument('<entry...>', 'ids of the entries', texts);
  does(addPage(history), surroundings, listEvents);
  const groups = group('group', 'inspect groups');
  does(addQueue(list(groups, 'list the groups of a queue that have tasks')), surroundings, listGroups);
  addRepair(part, surroundings);
}

function list(group: Command, description: string): Command {
  return group.command('list').alias('ls').description(description);
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

async function listEvents(run: Run<PageOptions>): Promise<Report> {
  const { page, size } = run.options;
  const { done, failed } = await withEach(run, 'id', run.words, (id) =>
    run.target.listSchedulerEnqueueEvents(id, { page, pageSize: size }),
  );
  return {
    json: () => {
      const entries = done.map(({ name, value }) => ({ id: name, events: value.map(infoJson) }));
      return { page, size, entries, failed };
    },
    lines: () =>
      done.flatMap(({ name, value }) => [
        run.terminal.out.paint('bold', printable(name)),
        tableOf(run, eventColumns(run.now()), value),
      ]),
  };
}

// Groups.

export const GROUP_COLUMNS: Columns<GroupInfo> = [
  ['group', ({ group }) => group],
  ['tasks', ({ size }) => formatCount(size), 'right'],
];

async function listGroups(run: Run<{ queue: string }>): Promise<Report> {
  const { queue } = run.options;
  const groups = await run.target.groups(queue);
  return reportList(run, GROUP_COLUMNS, groups, { queue, groups });
}
