import type { Command } from 'commander';
import { utcDay } from '../../../core/units.ts';
import { HISTORY_DAYS } from '../../../tasks/broker/broker-settings.ts';
import type { DailyStats } from '../../../tasks/inspector-info.ts';
import { texts, wholeNumber } from '../../options.ts';
import { formatCount, type Columns } from '../../terminal/text.ts';
import {
  changeEach,
  changes,
  detailsOf,
  does,
  reportList,
  tablesOf,
  withEach,
  type Report,
  type Run,
  type Surroundings,
} from '../run.ts';
import { addLimits } from './limits.ts';
import { dayJson, infoJson, limitDetails, queueColumns, queueDetails, showErrorRate } from '../show.ts';

const DEFAULT_DAYS = 10;

const DAY_COLUMNS: Columns<DailyStats> = [
  ['date', ({ date }) => utcDay(date.getTime())],
  ['processed', ({ processed }) => formatCount(processed), 'right'],
  ['failed', ({ failed }) => formatCount(failed), 'right'],
  ['error rate', showErrorRate, 'right'],
];

export function addQueueCommands(part: Command, surroundings: Surroundings): void {
  const group = part.command('queue').description('inspect and change queues').enablePositionalOptions();
  does(group.command('list').alias('ls').description('list all queues'), surroundings, listQueues);
  const several = (name: string, description: string): Command =>
    group.command(name).description(description).argument('<queue...>', 'names of the queues', texts);
  does(several('inspect', 'show everything about queues'), surroundings, inspectQueues);
  const history = several('history', 'show what queues have processed, day by day');
  history.option('-x, --days <n>', 'number of days, up to today', wholeNumber(1, HISTORY_DAYS), DEFAULT_DAYS);
  does(history, surroundings, showHistory);
  changes(several('pause', 'pause queues: none of their tasks is started'), surroundings, (run) =>
    changeEach(run, 'queue', run.words, 'paused', (queue) => run.target.pauseQueue(queue)),
  );
  changes(several('resume', 'resume queues').alias('unpause'), surroundings, (run) =>
    changeEach(run, 'queue', run.words, 'resumed', (queue) => run.target.unpauseQueue(queue)),
  );
  addLimits(group, surroundings);
  const remove = several('remove', 'remove queues: empty ones, or any with --force')
    .aliases(['rm', 'delete'])
    .option('-f, --force', 'also with tasks, if none is active');
  changes<{ force?: boolean }>(remove, surroundings, (run) =>
    changeEach(run, 'queue', run.words, 'removed', (queue) =>
      run.target.removeQueue(queue, run.options.force === true),
    ),
  );
}

async function listQueues(run: Run<unknown>): Promise<Report> {
  const queues = await run.target.queueInfos();
  return reportList(run, queueColumns(queues), queues, { queues: queues.map(infoJson) });
}

async function inspectQueues(run: Run<unknown>): Promise<Report> {
  const { done, failed } = await withEach(run, 'queue', run.words, async (queue) => ({
    info: await run.target.getQueueInfo(queue),
    limits: await run.target.limits(queue),
  }));
  return {
    json: () => ({
      queues: done.map(({ value: { info, limits } }) => ({ ...infoJson(info), limits: limits ?? null })),
      failed,
    }),
    lines: () =>
      done.flatMap(({ value }, at) => [
        ...(at === 0 ? [] : ['']),
        ...detailsOf(run, [...queueDetails(value.info), ...limitDetails(value.limits)]),
      ]),
  };
}

async function showHistory(run: Run<{ days: number }>): Promise<Report> {
  const { done, failed } = await withEach(run, 'queue', run.words, (queue) =>
    run.target.history(queue, run.options.days),
  );
  return {
    json: () => ({
      queues: done.map(({ name, value }) => ({ queue: name, days: value.map(dayJson) })),
      failed,
    }),
    lines: () => tablesOf(run, DAY_COLUMNS, done),
  };
}
