import type { Controller } from '../controller/controller.ts';
import { formatCount } from '../../shared/number-format.ts';
import type { Progress } from './progress.ts';

/** Titles above columns of these widths. */
const COLUMNS = [
  ['time', 7],
  ['events', 9],
  ['taken', 8],
  ['depth', 7],
  ['in work', 9],
  ['waiting', 9],
  ['written', 9],
  ['removed', 9],
  ['retries', 9],
  ['given up', 10],
] as const;

export function statusHeader(): string {
  return COLUMNS.map(([title, width]) => title.padStart(width)).join('');
}

/** A controller at a moment, in one line. */
export function statusLine(elapsedMs: number, progress: Progress, load: Controller['load']): string {
  const { events, taken, written, removed, retries, dropped } = progress;
  const { depth, inWork, waiting } = load;
  const counts = [events, taken, depth, inWork, waiting, written, removed, retries, dropped];
  const cells = [seconds(elapsedMs), ...counts.map(formatCount)];
  return cells.map((cell, index) => cell.padStart(COLUMNS[index]?.[1] ?? 0)).join('');
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
