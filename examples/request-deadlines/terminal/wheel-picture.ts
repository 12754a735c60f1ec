import type { LevelSnapshot, TimerSnapshot } from 'escapement';
import { formatCount, formatSpan } from '../../shared/number-format.ts';

/** Columns of blocks, a bucket each, drawn two rows high: sixteen heights. */
const BLOCKS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;
const STEPS_PER_ROW = 8;
const ROWS = 2;
/** Cold to hot, in the 256-colour palette; each is legible on a dark and on a light background. */
const HEAT = [33, 37, 71, 178, 208, 196] as const;

/** How a picture is painted. */
export interface PictureStyle {
  readonly colours: boolean;
}

/**
 * The wheels as lines of text, the finest first. The place of a bucket in its wheel is its place in the line, and
 * the arrow is the wheel's clock: what stands right of it comes next, and after the right end the line goes on at
 * the left.
 */
export function wheelPicture(snapshot: TimerSnapshot, style: PictureStyle): string[] {
  return snapshot.levels.flatMap((level, index) => levelPicture(level, index + 1, style));
}

function levelPicture(level: LevelSnapshot, number: number, style: PictureStyle): string[] {
  if (level.buckets.length === 0) return [`${levelName(level, number)}, empty`];
  const sizes = sizesByIndex(level);
  const fullest = Math.max(...sizes, 1);
  const rows = Array.from({ length: ROWS }, (_, row) => {
    const cells = sizes.map((size) => paint(blockFor(size / fullest, ROWS - 1 - row), size / fullest, style));
    return `  ▕${cells.join('')}▏`;
  });
  return [caption(level, number), ...rows, `   ${' '.repeat(clockIndex(level))}▲`];
}

function caption(level: LevelSnapshot, number: number): string {
  const timers = level.buckets.reduce((sum, bucket) => sum + bucket.size, 0);
  const fullest = Math.max(...level.buckets.map((bucket) => bucket.size));
  const name = levelName(level, number);
  const load = `${formatCount(timers)} timers, fullest bucket ${formatCount(fullest)}`;
  return name + load.padStart(level.wheelSize + 4 - name.length);
}

function levelName({ wheelSize, tickMs }: LevelSnapshot, number: number): string {
  return `  level ${number}: ${wheelSize} × ${formatSpan(tickMs)}`;
}

/** How many timers each bucket of the ring holds. */
export function sizesByIndex(level: LevelSnapshot): number[] {
  const sizes = new Array<number>(level.wheelSize).fill(0);
  for (const bucket of level.buckets) sizes[bucket.index] = bucket.size;
  return sizes;
}

/** The bucket that the wheel's clock points at. */
export function clockIndex(level: LevelSnapshot): number {
  return (level.currentTimeMs / level.tickMs) % level.wheelSize;
}

/** The part of a column of this height (0 … 1) that falls into a row, counted from the bottom. */
function blockFor(height: number, row: number): string {
  if (height === 0) return row === 0 ? '·' : ' ';
  const steps = Math.max(1, Math.round(height * STEPS_PER_ROW * ROWS));
  return BLOCKS[Math.min(Math.max(steps - row * STEPS_PER_ROW, 0), STEPS_PER_ROW)] ?? ' ';
}

function paint(block: string, heat: number, style: PictureStyle): string {
  if (!style.colours || block === ' ') return block;
  if (heat === 0) return `\u001b[2m${block}\u001b[22m`;
  const colour = HEAT[Math.min(Math.floor(heat * HEAT.length), HEAT.length - 1)] ?? HEAT[0];
  return `\u001b[38;5;${colour}m${block}\u001b[39m`;
}
