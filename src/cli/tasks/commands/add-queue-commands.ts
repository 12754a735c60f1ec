import { Option, type Command } from 'commander';
import { formatCount, printable } from '../../terminal/text.ts';
import { addOption, texts, wholeNumber } from '../options.ts';
import { does, print, withEach, type Outcome, type Run, type Surroundings } from '../run.ts';
import { dayJson, queueJson } from '../show/show-json.ts';
import { QUEUE_ALIGNS, queueDetails, queueRows, showErrorRate } from '../show/show-queue.ts';
import { showDetails, showTable } from '../show/show-table.ts';

const DEFAULT_DAYS = 10;

/** Statistics are kept for ninety days. */
const MAX_DAYS = 90;

/** `escapement tasks queue …`. */
export function addQueueCommands(part: Command, surroundings: Surroundings): void {
  const group = part
    .command('queue')
    .description('look at queues, and change them')
    .enablePositionalOptions();
  does(group.command('list').alias('ls').description('list all queues'), surroundings, list);
  const several = (name: string, description: string): Command =>
    group.command(name).description(description).argument('<queue...>', 'their names', texts);
  does(several('inspect', 'all that is known of queues'), surroundings, inspect);
  const history = several('history', 'what queues have done, day by day').addOption(
    new Option('-x, --days <n>', 'days, up to today')
      .argParser(wholeNumber(1, MAX_DAYS))
      .default(DEFAULT_DAYS),
  );
  does(history, surroundings, showHistory);
  does(several('pause', 'hand out no task of queues'), surroundings, (run) =>
    change(run, 'paused', (queue) => run.target.pauseQueue(queue)),
  );
  does(several('resume', 'hand out tasks of queues again').alias('unpause'), surroundings, (run) =>
    change(run, 'resumed', (queue) => run.target.resumeQueue(queue)),
  );
  const remove = several('remove', 'remove queues: empty ones, or any with --force').aliases([
    'rm',
    'delete',
  ]);
  addOption(remove, new Option('-f, --force', 'with all of their tasks, if none is active'));
  does<{ force?: boolean }>(remove, surroundings, (run) =>
    change(run, 'removed', (queue) => run.target.removeQueue(queue, run.options.force === true)),
  );
}

async function list(run: Run<unknown>): Promise<void> {
  const queues = await run.target.queues();
  await print(
    run,
    () => ({ queues: queues.map(queueJson) }),
    () => [showTable(queueRows(queues), run.terminal.out, QUEUE_ALIGNS)],
  );
}

async function inspect(run: Run<unknown>): Promise<void> {
  const { out } = run.terminal;
  const outcome = await withEach(run, run.words, (queue) => run.target.queue(queue));
  await print(
    run,
    () => ({ queues: outcome.done.map(({ value }) => queueJson(value)), ...failedJson(outcome) }),
    () =>
      outcome.done.flatMap(({ value }, at) => [
        ...(at === 0 ? [] : ['']),
        ...showDetails(queueDetails(value), out),
      ]),
  );
}

async function showHistory(run: Run<{ days: number }>): Promise<void> {
  const outcome = await withEach(run, run.words, (queue) => run.target.history(queue, run.options.days));
  await print(
    run,
    () => ({
      queues: outcome.done.map(({ name, value }) => ({ queue: name, days: value.map(dayJson) })),
      ...failedJson(outcome),
    }),
    () =>
      outcome.done.flatMap(({ name, value }) => [
        run.terminal.out.paint('bold', printable(name)),
        showTable(
          [
            ['date', 'processed', 'failed', 'error rate'],
            ...value.map((day) => [
              day.date.toISOString().slice(0, 'yyyy-mm-dd'.length),
              formatCount(day.processed),
              formatCount(day.failed),
              showErrorRate(day),
            ]),
          ],
          run.terminal.out,
          ['left', 'right', 'right', 'right'],
        ),
      ]),
  );
}

async function change(
  run: Run<unknown>,
  done: string,
  work: (queue: string) => Promise<void>,
): Promise<void> {
  const outcome = await withEach(run, run.words, work);
  await print(
    run,
    () => ({ [done]: outcome.done.map(({ name }) => name), ...failedJson(outcome) }),
    () => outcome.done.map(({ name }) => `${printable(name)}: ${done}`),
  );
}

function failedJson({ failed }: Outcome<unknown>): object {
  return { failed: failed.map(({ name, message }) => ({ queue: name, message })) };
}
