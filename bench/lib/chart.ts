/** Charts of a result as SVG text, which need no script. */
import { scaleLinear, scaleLog } from 'd3-scale';
import { ratiosOf } from './case-view.ts';
import { samplesOf, type CaseResult, type ContestantResult } from './result.ts';
import { formatNumber, summarize } from './statistics.ts';

const WIDTH = 900;
const ROW_HEIGHT = 36;
const BAR_HEIGHT = 20;
const TARGET_HEIGHT = 27;
/** Above the first row, and below the last row, with the labels and the name of the axis. */
const TOP = 8;
const AXIS_HEIGHT = 48;
/** A column at the right for numbers, which no bar, whisker or target crosses. */
const NUMBER_WIDTH = 90;
const TICKS = 6;
const LABEL_SIZE = 11;
const LABEL_LINE_HEIGHT = 14;
/** Estimated mean width of a character of a label: the font is unknown here. */
const CHARACTER_WIDTH = 5.7;

const COLORS: Record<ContestantResult['role'], string> = {
  baseline: '#8a8f98',
  rival: '#c58a2b',
  ours: '#2f7de1',
};
const TARGET_COLOR = '#d1453b';
const LOST_OPACITY = 0.45;

interface Bar {
  readonly label: string;
  readonly role: ContestantResult['role'];
  readonly samples: readonly number[];
  /** The target, if there is one. */
  readonly floor?: number;
}

interface Frame {
  readonly axisName: string;
  /** Width of the labels at the left. */
  readonly labelWidth: number;
  /** A ratio has a logarithmic axis, with a line at 1. */
  readonly isRatio: boolean;
}

interface Axis {
  readonly x: (value: number) => number;
  readonly ticks: readonly number[];
  /** Where bars start. */
  readonly origin: number;
}

/** The primary metric of every contestant: a bar to the median, a whisker over the rounds. */
export function chartOfCase(result: CaseResult): string {
  const bars = result.contestants
    .map(({ name, role }) => ({ label: name, role, samples: samplesOf(result, name, result.primaryMetric) }))
    .filter(({ samples }) => samples.length > 0);
  const unit = result.contestants[0]?.metrics[0]?.unit ?? '';
  const axisName = [result.primaryMetric, unit].filter((word) => word !== '').join(', ');
  return drawBars(bars, { axisName, labelWidth: 150, isRatio: false });
}

/** Baseline / ours for every case, with its target. Left of 1 ours loses. */
export function chartOfRatios(results: readonly CaseResult[]): string {
  const bars = results.flatMap((result) =>
    result.contestants
      .filter(({ role }) => role === 'ours')
      .map((ours) => ratioBar(result, ours))
      .filter(({ samples }) => samples.length > 0),
  );
  if (bars.length === 0) return '';
  return drawBars(bars, { axisName: 'baseline / ours', labelWidth: 400, isRatio: true });
}

function ratioBar(result: CaseResult, ours: ContestantResult): Bar {
  const target = result.targets
    .map((judged) => judged.target)
    .filter((each) => each.kind === 'ratio')
    .find(({ contestant, against }) => contestant === ours.name && against === undefined);
  return {
    label: `${result.name}\n${ours.name} against ${result.baseline}`,
    role: ours.role,
    samples: ratiosOf(result, ours).filter((ratio) => Number.isFinite(ratio) && ratio > 0),
    ...(target === undefined ? {} : { floor: target.atLeast }),
  };
}

function drawBars(bars: readonly Bar[], frame: Frame): string {
  const bottom = TOP + bars.length * ROW_HEIGHT;
  const axis = axisOf(bars, frame);
  const rows = bars.map((bar, row) => drawBar(bar, TOP + (row + 0.5) * ROW_HEIGHT, axis, frame));
  return [
    `<svg viewBox="0 0 ${WIDTH} ${bottom + AXIS_HEIGHT}" role="img" aria-label="${escapeMarkup(frame.axisName)}"`,
    ' font-family="system-ui, sans-serif" font-size="12" fill="currentColor">',
    ...drawAxis(axis, frame, bottom),
    ...rows,
    frame.isRatio ? rule(axis.x(1), TOP, axis.x(1), bottom, 'stroke-dasharray="4 4"') : '',
    '</svg>',
  ].join('');
}

/** An axis between two round numbers. */
function axisOf(bars: readonly Bar[], { labelWidth, isRatio }: Frame): Axis {
  const values = bars.flatMap(({ samples, floor = 1 }) => (isRatio ? [...samples, floor] : samples));
  const range = [labelWidth, WIDTH - NUMBER_WIDTH];
  if (isRatio) {
    const x = scaleLog([Math.min(1, ...values), Math.max(1, ...values)], range).nice();
    return { x, ticks: x.ticks().filter(isPowerOfTen), origin: x(1) };
  }
  const x = scaleLinear([0, Math.max(...values)], range).nice(TICKS);
  return { x, ticks: x.ticks(TICKS), origin: labelWidth };
}

function isPowerOfTen(value: number): boolean {
  return Number.isInteger(Number(Math.log10(value).toFixed(6)));
}

function drawAxis({ x, ticks }: Axis, { axisName, labelWidth }: Frame, bottom: number): string[] {
  const middle = (labelWidth + WIDTH - NUMBER_WIDTH) / 2;
  return [
    ...ticks.map((tick) => rule(x(tick), TOP, x(tick), bottom, 'opacity="0.2"')),
    ...ticks.map((tick) => text(x(tick), bottom + 14, 'middle', formatNumber(tick))),
    text(middle, bottom + 34, 'middle', axisName),
  ];
}

/** The bar to the median, the range over the rounds, the target, and the median as a number at the right. */
function drawBar({ label, role, samples, floor }: Bar, y: number, axis: Axis, frame: Frame): string {
  const { x, origin } = axis;
  const { median: value, min, max } = summarize(samples);
  const end = x(value);
  const opacity = frame.isRatio && value < 1 ? ` opacity="${LOST_OPACITY}"` : '';
  return [
    ...drawLabel(label, y, frame.labelWidth),
    `<rect ${box(Math.min(origin, end), y, Math.abs(end - origin), BAR_HEIGHT)} fill="${COLORS[role]}"${opacity}/>`,
    rule(x(min), y, x(max), y, 'stroke-width="2" opacity="0.7"'),
    floor === undefined ? '' : `<rect ${box(x(floor) - 1.5, y, 3, TARGET_HEIGHT)} fill="${TARGET_COLOR}"/>`,
    text(WIDTH - NUMBER_WIDTH + 12, y, 'start', formatNumber(value)),
  ].join('');
}

function drawLabel(label: string, y: number, width: number): string[] {
  const lines = label.split('\n');
  const size = ` font-size="${LABEL_SIZE}"`;
  const first = y - ((lines.length - 1) * LABEL_LINE_HEIGHT) / 2;
  return lines.map((line, index) =>
    text(width - 8, first + index * LABEL_LINE_HEIGHT, 'end', shorten(line, width - 8), size),
  );
}

function shorten(label: string, width: number): string {
  const longest = Math.floor(width / CHARACTER_WIDTH);
  return label.length <= longest ? label : `${label.slice(0, longest - 1)}…`;
}

function rule(x1: number, y1: number, x2: number, y2: number, style: string): string {
  const [a, b, c, d] = [x1, y1, x2, y2].map((value) => value.toFixed(1));
  return `<path d="M${a} ${b}L${c} ${d}" stroke="currentColor" ${style}/>`;
}

function box(left: number, middle: number, width: number, height: number): string {
  return `x="${left.toFixed(1)}" y="${(middle - height / 2).toFixed(1)}" width="${width.toFixed(1)}" height="${height}"`;
}

function text(x: number, y: number, anchor: 'start' | 'middle' | 'end', content: string, style = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" dominant-baseline="central"${style}>${escapeMarkup(content)}</text>`;
}

export function escapeMarkup(content: string): string {
  return content
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
