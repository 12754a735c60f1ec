import type { Command } from 'commander';
import { formatCount, printable } from '../../terminal/text.ts';
import { addPage, addQueue, texts, type PageOptions } from '../options.ts';
import { does, print, withEach, type Run, type Surroundings } from '../run.ts';
import { showContent } from '../show/show-content.ts';
import { entryJson, eventJson, serverJson } from '../show/show-json.ts';
import { showTable } from '../show/show-table.ts';
import { showRelative, showTime } from '../show/show-time.ts';
import type { ServerView } from '../target/tasks-target.ts';

/** In a table, in characters. */
const CELL_LENGTH = 60;

/** `escapement tasks server …`. */
export function addServerCommands(part: Command, surroundings: Surroundings): void {
  const group = part.command('server').description('look at servers').enablePositionalOptions();
  does(group.command('list').alias('ls').description('list the servers that run'), surroundings, listServers);
}

/** `escapement tasks cron …`. */
export function addCronCommands(part: Command, surroundings: Surroundings): void {
  const group = part.command('cron').description('look at schedules').enablePositionalOptions();
  const list = group.command('list').alias('ls').description('list the entries of the schedulers that run');
  does(list, surroundings, listEntries);
  const history = group
    .command('history')
    .description('what entries have enqueued, the newest first')
    .argument('<entry...>', 'their ids', texts);
  does(addPage(history), surroundings, listEvents);
}

/** `escapement tasks group …`. */
export function addGroupCommands(part: Command, surroundings: Surroundings): void {
  const group = part.command('group').description('look at groups').enablePositionalOptions();
  const list = group.command('list').alias('ls').description('list the groups of a queue that have tasks');
  does(addQueue(list, true), surroundings, listGroups);
}

async function listServers(run: Run<unknown>): Promise<void> {
  const servers = await run.target.servers();
  const head = ['host', 'pid', 'state', 'active workers', 'queues', 'started'];
  await print(
    run,
    () => ({ servers: servers.map(serverJson) }),
    () => [showTable([head, ...servers.map((server) => serverRow(server, run.now()))], run.terminal.out)],
  );
}

function serverRow(server: ServerView, nowMs: number): string[] {
  const { host, pid, status, concurrency, queues, activeWorkers, startedAt } = server;
  return [
    printable(host),
    String(pid),
    printable(status),
    `${activeWorkers.length}/${concurrency}`,
    Object.entries(queues)
      .map(([queue, priority]) => `${printable(queue)}:${priority}`)
      .join(' '),
    showRelative(startedAt, nowMs),
  ];
}

async function listEntries(run: Run<unknown>): Promise<void> {
  const entries = await run.target.entries();
  const nowMs = run.now();
  await print(
    run,
    () => ({ entries: entries.map(entryJson) }),
    () => [
      showTable(
        [
          ['entry', 'spec', 'type', 'payload', 'options', 'next', 'previous'],
          ...entries.map((entry) => [
            printable(entry.id),
            printable(entry.spec),
            printable(entry.taskType),
            showContent(entry.taskPayload, { maxLength: CELL_LENGTH }),
            printable(entry.options.join(', ')),
            showRelative(entry.nextEnqueueAt, nowMs),
            showRelative(entry.prevEnqueueAt, nowMs),
          ]),
        ],
        run.terminal.out,
      ),
    ],
  );
}

async function listEvents(run: Run<PageOptions>): Promise<void> {
  const { page, size } = run.options;
  const { done, failed } = await withEach(run, run.words, (id) =>
    run.target.events(id, { page, pageSize: size }),
  );
  const { out } = run.terminal;
  await print(
    run,
    () => ({
      ...{ page, size },
      entries: done.map(({ name, value }) => ({ id: name, events: value.map(eventJson) })),
      failed: failed.map(({ name, message }) => ({ id: name, message })),
    }),
    () =>
      done.flatMap(({ name, value }) => [
        out.paint('bold', printable(name)),
        showTable(
          [
            ['task', 'enqueued', ''],
            ...value.map(({ taskId, enqueuedAt }) => [
              printable(taskId),
              showTime(enqueuedAt),
              showRelative(enqueuedAt, run.now()),
            ]),
          ],
          out,
        ),
      ]),
  );
}

async function listGroups(run: Run<{ queue: string }>): Promise<void> {
  const { queue } = run.options;
  const groups = await run.target.groups(queue);
  await print(
    run,
    () => ({ queue, groups: groups.map(({ group, size }) => ({ group, size })) }),
    () => [
      showTable(
        [['group', 'tasks'], ...groups.map(({ group, size }) => [printable(group), formatCount(size)])],
        run.terminal.out,
        ['left', 'right'],
      ),
    ],
  );
}
