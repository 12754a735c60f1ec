import { formatCount, formatMs } from '../../shared/number-format.ts';
import type { ResultRow } from '../../shared/report-table.ts';
import type { ExampleResult } from '../example-result.ts';
import type { PurgatoryStatus } from '../wire.ts';

/** The result as the terminal shows it. */
export function resultRows(result: ExampleResult): ResultRow[] {
  return [...produceRows(result), ...readRows(result), ...outageRows(result), ...purgatoryRows(result)];
}

function produceRows({ counts, acks, latenciesMs, namedBehind, options }: ExampleResult): ResultRow[] {
  const { sent, sentAll, acknowledged, timedOut, refused } = counts;
  const records = acks.reduce((sum, { values }) => sum + values.length, 0);
  const at = (share: number): string =>
    formatMs(latenciesMs[Math.ceil(share * latenciesMs.length) - 1] ?? NaN);
  const named = [...namedBehind].map(([member, times]) => `${member} was missing in ${formatCount(times)}`);
  return [
    row('produces', sent, `${formatCount(sentAll)} with acks=all, to ${options.partitions} partitions`),
    row('acknowledged', acknowledged, `${formatCount(records)} records`),
    row('expired', timedOut, ['answered 504', ...named].join('; ')),
    row('refused', refused, 'answered 503: too few in-sync replicas'),
    row('produce latency p50', at(0.5), `p95 ${at(0.95)}, max ${at(1)}: through the outage`),
  ];
}

function readRows({ logs, consumers }: ExampleResult): ResultRow[] {
  const sum = (pick: (consumer: ExampleResult['consumers'][number]) => number): number =>
    consumers.reduce((total, consumer) => total + pick(consumer), 0);
  const short = formatCount(sum(({ shortPolls }) => shortPolls));
  return [
    row('readable records', logs.flat().length, 'with those that were not acknowledged in time'),
    row(
      'records consumed',
      sum(({ values }) => values.length),
      `by ${consumers.length} consumers`,
    ),
    row(
      'long polls of theirs',
      sum(({ polls }) => polls),
      `${short} ended by maxWaitMs, below minBytes`,
    ),
  ];
}

function outageRows({ outage }: ExampleResult): ResultRow[] {
  const { member, droppedAfterMs, rejoinedAfterMs } = outage;
  return [
    row(`${member} dropped`, formatMs(droppedAfterMs), 'after its SIGKILL, by its session'),
    row('in sync again', formatMs(rejoinedAfterMs), 'after its restart, the start of the process included'),
  ];
}

function purgatoryRows({ afterwards, mostWatched }: ExampleResult): ResultRow[] {
  const { produce, fetch, sessions, inSync } = afterwards.purgatories;
  const all = [produce, fetch, sessions, inSync];
  return [
    row(
      'watched at peak',
      mostWatched.produce,
      `by produces; ${formatCount(mostWatched.fetch)} by fetches; as sampled`,
    ),
    completedRow('produces', produce),
    completedRow('fetches', fetch),
    completedRow('heartbeats', sessions),
    row(
      'triggers missed',
      all.reduce((sum, { missedTriggers }) => sum + missedTriggers, 0),
      'expired although the condition held',
    ),
    row(
      'watched at the end',
      all.reduce((sum, { watched }) => sum + watched, 0),
      'in all four purgatories',
    ),
  ];
}

function completedRow(what: string, { completed }: PurgatoryStatus): ResultRow {
  const { tried, forced, expired, closed } = completed;
  const others = [
    forced > 0 && `${formatCount(forced)} forced: hung up`,
    closed > 0 && `${formatCount(closed)} closed`,
  ];
  const note = [`${formatCount(expired)} expired`, ...others.filter((text) => text !== false)];
  return row(`${what} completed`, tried, note.join(', '));
}

function row(label: string, value: number | string, note: string): ResultRow {
  return { label, value: typeof value === 'number' ? formatCount(value) : value, note };
}
