import { formatCount, formatMs } from '../../shared/number-format.ts';
import type { ResultRow } from '../../shared/report-table.ts';
import type { DemoResult } from '../demo/demo-result.ts';
import type { Outcome } from '../demo/journal.ts';
import type { Scrape } from '../demo/scrape.ts';

/** The result as the terminal shows it. */
export function resultRows(result: DemoResult): ResultRow[] {
  return [...queueRows(result), ...outcomeRows(result), ...endRows(result)];
}

function queueRows({ changes, events, afterwards, mostInWork, overlaps }: DemoResult): ResultRow[] {
  const adds = afterwards.get('workqueue_adds_total') ?? NaN;
  return [
    row('changes on disk', changes, 'writes, saves, renames, removals'),
    row('events', events, 'of the file system'),
    row('adds to the queue', adds, `the ${formatCount(events)} events, resyncs and retries, put together`),
    row('time in the queue', formatMs(meanMs(afterwards, 'queue')), 'on average'),
    row('time of the work', formatMs(meanMs(afterwards, 'work')), 'on average'),
    row('in work at once', mostInWork, 'at most'),
    row('with two workers', overlaps.length, 'a file at the same time'),
  ];
}

function outcomeRows({ attempts }: DemoResult): ResultRow[] {
  const count = (outcome: Outcome): number =>
    attempts.filter((attempt) => attempt.outcome === outcome).length;
  const retries = attempts.filter((attempt) => attempt.retries > 0).length;
  return [
    row(
      'outputs written',
      count('written'),
      `${formatCount(count('unchanged'))} times they were right already`,
    ),
    row('outputs removed', count('removed'), 'their sources had gone'),
    row('failures', count('failed') + count('dropped'), `${formatCount(retries)} retries`),
    row('given up', count('dropped'), 'until the file changed, or the next resync'),
    row('directories listed', count('listed'), 'new ones, moved ones, and all at each resync'),
  ];
}

function endRows({ trees }: DemoResult): ResultRow[] {
  return [row('files compared', trees.files, `at the end; ${trees.differences.length} differ`)];
}

function meanMs(scrape: Scrape, what: 'queue' | 'work'): number {
  const value = (part: string): number => scrape.get(`workqueue_${what}_duration_seconds_${part}`) ?? NaN;
  return (value('sum') / value('count')) * 1_000;
}

function row(label: string, value: number | string, note: string): ResultRow {
  return { label, value: typeof value === 'number' ? formatCount(value) : value, note };
}
