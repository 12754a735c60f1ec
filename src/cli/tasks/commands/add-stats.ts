import type { Command } from 'commander';
import { TASK_STATES } from '../../../tasks/task-state.ts';
import type { Output } from '../../terminal/output.ts';
import { formatCount, printable } from '../../terminal/text.ts';
import { does, print, type Surroundings } from '../run.ts';
import { countsJson, queueJson } from '../show/show-json.ts';
import { showErrorRate } from '../show/show-queue.ts';
import { showTable } from '../show/show-table.ts';
import { showDuration } from '../show/show-time.ts';
import type { QueueView } from '../target/tasks-target.ts';

type Counts = Pick<QueueView, (typeof SUMMED)[number]>;

const SUMMED = [
  ...TASK_STATES,
  'size',
  'groups',
  'processed',
  'failed',
  'memoryUsageBytes',
  'latencyMs',
] as const;

/** `escapement tasks stats`: everything at a glance. */
export function addStats(part: Command, surroundings: Surroundings): void {
  const command = part.command('stats').description('all queues and their tasks, in numbers');
  does(command, surroundings, async (run) => {
    const queues = await run.target.queues();
    const total = totalOf(queues);
    const redis = await run.target.redisInfo();
    await print(
      run,
      () => ({
        aggregate: aggregateJson(total, run.now()),
        queues: queues.map(queueJson),
        redis: redis ?? null,
      }),
      () => [...render(queues, total, run.terminal.out), ...renderRedis(redis, run.terminal.out)],
    );
  });
}

function totalOf(queues: readonly QueueView[]): Counts {
  const sums = SUMMED.map((name) => [name, queues.reduce((sum, view) => sum + view[name], 0)] as const);
  const longest = Math.max(0, ...queues.map(({ latencyMs }) => latencyMs));
  return { ...(Object.fromEntries(sums) as Counts), latencyMs: longest };
}

function aggregateJson(total: Counts, nowMs: number): object {
  const { size, processed, failed } = total;
  return { size, ...countsJson(total), processed, failed, timestamp: new Date(nowMs) };
}

function render(queues: readonly QueueView[], total: Counts, out: Output): readonly string[] {
  const states = showTable([[...TASK_STATES], TASK_STATES.map((state) => formatCount(total[state]))], out);
  const byQueue = showTable(
    [
      ['queue', 'size', ...TASK_STATES, 'latency'],
      ...queues.map((view) => [
        printable(view.queue) + (view.paused ? ' (paused)' : ''),
        formatCount(view.size),
        ...TASK_STATES.map((state) => formatCount(view[state])),
        showDuration(view.latencyMs),
      ]),
    ],
    out,
    ['left', 'right', ...TASK_STATES.map(() => 'right' as const), 'right'],
  );
  const today = showTable(
    [
      ['processed', 'failed', 'error rate'],
      [formatCount(total.processed), formatCount(total.failed), showErrorRate(total)],
    ],
    out,
  );
  return ['Tasks by state', states, 'Tasks by queue', byQueue, 'Today, by UTC', today];
}

/** As asynq's command has it. */
function renderRedis(info: Readonly<Record<string, string>> | undefined, out: Output): readonly string[] {
  if (info === undefined) return [];
  const said = (name: string): string => printable(info[name] ?? '?');
  return [
    'Redis',
    showTable(
      [
        ['version', 'uptime', 'connections', 'memory', 'peak memory'],
        [
          said('redis_version'),
          `${said('uptime_in_days')} d`,
          said('connected_clients'),
          `${said('used_memory_human')}B`,
          `${said('used_memory_peak_human')}B`,
        ],
      ],
      out,
    ),
  ];
}
