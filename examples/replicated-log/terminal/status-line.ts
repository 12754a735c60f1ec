import { formatCount } from '../../shared/number-format.ts';
import type { LeaderStatus, PurgatoryStatus } from '../wire.ts';

/** Titles above columns of these widths. */
const COLUMNS = [
  ['time', 7],
  ['in sync', 8],
  ['readable', 9],
  ['waiting', 8],
  ['watched', 8],
  ['done', 8],
  ['expired', 8],
  ['waiting', 8],
  ['done', 8],
  ['expired', 8],
] as const;
const GROUPS = [
  ['', 24],
  ['produces', 32],
  ['fetches', 24],
] as const;

/** What the columns of a status line mean. */
export function statusHeader(): string {
  const groups = GROUPS.map(([title, width]) =>
    title === '' ? ' '.repeat(width) : `  ┌ ${title} `.padEnd(width, '─'),
  );
  const titles = COLUMNS.map(([title, width]) => title.padStart(width));
  return `${groups.join('')}\n${titles.join('')}`;
}

/** The leader at a moment, in one line. */
export function statusLine(elapsedMs: number, { partitions, purgatories }: LeaderStatus): string {
  const { produce, fetch } = purgatories;
  const inSync = Math.min(...partitions.map((partition) => partition.inSync.length));
  const readable = partitions.reduce((sum, { highWatermark }) => sum + highWatermark, 0);
  const cells = [
    seconds(elapsedMs),
    ...[inSync, readable, produce.numDelayed, produce.watched, ...ends(produce)].map(formatCount),
    ...[fetch.numDelayed, ...ends(fetch)].map(formatCount),
  ];
  return cells.map((cell, index) => cell.padStart(COLUMNS[index]?.[1] ?? 0)).join('');
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function ends({ completed }: PurgatoryStatus): number[] {
  return [completed.tried, completed.expired];
}
