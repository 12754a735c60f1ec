import { formatCount } from '../../shared/number-format.ts';
import type { Status } from '../shipper/progress.ts';

/** Titles above columns of these widths. */
const COLUMNS = [
  ['time', 7],
  ['in', 9],
  ['in the spool', 14],
  ['KiB', 7],
  ['forwarded', 11],
  ['retries', 9],
] as const;

export function statusHeader(): string {
  return COLUMNS.map(([title, width]) => title.padStart(width)).join('');
}

/** The shipper at a moment, in one line. */
export function statusLine(elapsedMs: number, { taken, depth, bytes, forwarded, retries }: Status): string {
  const counts = [taken, depth, bytes / 1024, forwarded, retries];
  const cells = [seconds(elapsedMs), ...counts.map(formatCount)];
  return cells.map((cell, index) => cell.padStart(COLUMNS[index]?.[1] ?? 0)).join('');
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
