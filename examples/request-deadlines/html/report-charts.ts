import { scaleLinear, type ScaleLinear } from 'd3-scale';
import { area, curveLinear, curveStepAfter, line } from 'd3-shape';
import { quantile } from '../quantile.ts';
import type { LoadSample } from '../server/load-sampler.ts';

type Point = readonly [x: number, y: number];
type Scale = ScaleLinear<number, number>;

const WIDTH = 600;
const HEIGHT = 300;
/** The edges of the plot. */
const LEFT = 64;
const RIGHT = WIDTH - 64;
const TOP = 40;
const BOTTOM = HEIGHT - 48;
const TICKS = 6;
const TICK_LENGTH = 5;
/** From a tick to its label, and from the plot to the names of its axes. */
const LABEL_GAP = 9;
const NAME_GAP = 14;
const BINS = 40;
/** The axis of lateness ends here: a few stragglers would squeeze the rest into one column. */
const SHOWN_SHARE = 0.995;

/** Colours by name: the page defines them once for light and once for dark. */
const INK = 'var(--ink)';
const FAINT = 'var(--faint)';
const FIRST = 'var(--first)';
const SECOND = 'var(--second)';

interface Curve {
  readonly name: string;
  readonly colour: string;
  readonly points: readonly Point[];
  readonly y: Scale;
  /** A histogram: steps, filled. */
  readonly isFilled?: boolean;
}

/** A histogram of how late the timeouts were, and the share that was at most so late. */
export function latenessChart(latenessMs: Float64Array): string {
  const x = horizontal(Math.max(quantile(latenessMs, SHOWN_SHARE) || 0, 1));
  const counts = binned(latenessMs, endOf(x));
  const y = vertical(Math.max(...counts));
  const percent = vertical(100);
  const edges = Array.from({ length: BINS + 1 }, (_, index) => (index * endOf(x)) / BINS);
  const columns = edges.map((edge, index): Point => [edge, counts[index] ?? counts[BINS - 1] ?? 0]);
  const shares = edges.map((edge): Point => [edge, shareUpTo(latenessMs, edge) * 100]);
  return chart('How late the timeouts were', [
    ...[xAxis(x, 'ms after the deadline'), yAxis(y, 'timeouts'), rightAxis(percent, '%')],
    ...curves(x, [
      { name: 'timeouts', colour: FIRST, points: columns, y, isFilled: true },
      { name: 'at most so late', colour: SECOND, points: shares, y: percent },
    ]),
  ]);
}

/** Pending requests and timers over time. */
export function pendingChart(samples: readonly LoadSample[]): string {
  const x = horizontal((samples.at(-1)?.atMs ?? 1_000) / 1_000);
  const y = vertical(Math.max(1, ...samples.map(({ timers, requests }) => Math.max(timers, requests))));
  const points = (pick: (sample: LoadSample) => number): Point[] =>
    samples.map((sample) => [sample.atMs / 1_000, pick(sample)]);
  return chart('Pending over time', [
    ...[xAxis(x, 'seconds since the first request'), yAxis(y, 'waiting')],
    ...curves(x, [
      { name: 'timers in the wheels', colour: FIRST, points: points(({ timers }) => timers), y },
      { name: 'requests', colour: SECOND, points: points(({ requests }) => requests), y },
    ]),
  ]);
}

/** From 0 to a round number not below `end`. */
function horizontal(end: number): Scale {
  return scaleLinear([0, end], [LEFT, RIGHT]).nice(TICKS);
}

function vertical(end: number): Scale {
  return scaleLinear([0, end], [BOTTOM, TOP]).nice(TICKS);
}

function endOf(scale: Scale): number {
  return scale.domain()[1] ?? 0;
}

function binned(latenessMs: Float64Array, endMs: number): number[] {
  const counts = new Array<number>(BINS).fill(0);
  for (const lateness of latenessMs) {
    const bin = Math.max(Math.floor((lateness * BINS) / endMs), 0);
    if (bin < BINS) counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return counts;
}

function shareUpTo(sorted: Float64Array, limit: number): number {
  return sorted.length === 0 ? 0 : sorted.filter((value) => value <= limit).length / sorted.length;
}

function chart(label: string, parts: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}" font-family="system-ui, sans-serif" font-size="13" fill="${INK}">${parts.join('')}</svg>`;
}

function xAxis(x: Scale, name: string): string {
  const ticks = labelled(x).map(([value, label]) => {
    const tick = rule(x(value), BOTTOM, x(value), BOTTOM + TICK_LENGTH);
    return tick + text(x(value), BOTTOM + TICK_LENGTH + LABEL_GAP, 'middle', label);
  });
  const title = text((LEFT + RIGHT) / 2, HEIGHT - NAME_GAP, 'middle', name);
  return rule(LEFT, BOTTOM, RIGHT, BOTTOM) + ticks.join('') + title;
}

/** With a line across the plot at each tick. */
function yAxis(y: Scale, name: string): string {
  const ticks = labelled(y).map(([value, label]) => {
    const tick = rule(LEFT - TICK_LENGTH, y(value), LEFT, y(value));
    const grid = rule(LEFT, y(value), RIGHT, y(value), 0.5);
    return grid + tick + text(LEFT - LABEL_GAP, y(value), 'end', label);
  });
  return ticks.join('') + rule(LEFT, TOP, LEFT, BOTTOM) + text(LEFT, TOP - NAME_GAP, 'middle', name);
}

function rightAxis(y: Scale, name: string): string {
  const ticks = labelled(y).map(([value, label]) => {
    const tick = rule(RIGHT, y(value), RIGHT + TICK_LENGTH, y(value));
    return tick + text(RIGHT + LABEL_GAP, y(value), 'start', label);
  });
  return ticks.join('') + rule(RIGHT, TOP, RIGHT, BOTTOM) + text(RIGHT, TOP - NAME_GAP, 'middle', name);
}

function labelled(scale: Scale): [value: number, label: string][] {
  const format = scale.tickFormat(TICKS, ',f');
  return scale.ticks(TICKS).map((value) => [value, format(value)]);
}

/** Each curve, and its name above the plot. */
function curves(x: Scale, shown: readonly Curve[]): string[] {
  return shown.map((curve, index) => path(x, curve) + legend(curve, LEFT + 90 + index * 190));
}

function path(x: Scale, { colour, points, y, isFilled = false }: Curve): string {
  const shape = isFilled ? curveStepAfter : curveLinear;
  const atX = ([at]: Point): number => x(at);
  const atY = ([, value]: Point): number => y(value);
  const outline = line(atX, atY).curve(shape).digits(1)([...points]) ?? '';
  const stroke = `<path d="${outline}" fill="none" stroke="${colour}" stroke-width="${isFilled ? 1 : 2}"/>`;
  if (!isFilled) return stroke;
  const surface = area(atX, BOTTOM, atY).curve(shape).digits(1)([...points]) ?? '';
  return `<path d="${surface}" fill="${colour}" fill-opacity="0.35"/>${stroke}`;
}

function legend({ name, colour }: Curve, left: number): string {
  const mark = `<rect x="${left}" y="8" width="18" height="4" rx="2" fill="${colour}"/>`;
  return mark + text(left + 24, 10, 'start', name);
}

function rule(x1: number, y1: number, x2: number, y2: number, opacity = 1): string {
  const [a, b, c, d] = [x1, y1, x2, y2].map((value) => value.toFixed(1));
  return `<path d="M${a} ${b}L${c} ${d}" stroke="${FAINT}" stroke-opacity="${opacity}"/>`;
}

function text(x: number, y: number, anchor: 'start' | 'middle' | 'end', content: string): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" dominant-baseline="central">${content}</text>`;
}
