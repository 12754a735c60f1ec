import type { QueueView } from '../../../tasks/http/asynqmon-json.ts';
import { countsOf } from '../../../tasks/info.ts';
import { TASK_STATES } from '../../../tasks/task-state.ts';
import { formatCount, type Columns } from '../../terminal/text.ts';
import { tableOf, type Report, type Run, type TasksCommand } from '../run.ts';
import { showDuration, showErrorRate } from '../show.ts';

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

/** The same as in asynq's command. */
const REDIS_COLUMNS: Columns<RedisReport> = [
  ['version', ({ redis_version: version = '?' }) => version],
  ['uptime', ({ uptime_in_days: days = '?' }) => `${days} d`],
  ['connections', ({ connected_clients: clients = '?' }) => clients],
  ['memory', ({ used_memory_human: memory = '?' }) => `${memory}B`],
  ['peak memory', ({ used_memory_peak_human: memory = '?' }) => `${memory}B`],
];

export function addStats(part: TasksCommand): void {
  part.command('stats').description('show counts of all queues and their tasks').reads(showStats);
}

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
