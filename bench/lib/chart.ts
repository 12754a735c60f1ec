/** Charts of a result as HTML, which needs no script: a row for each bar, placed by percentages of its axis. */
import { scaleLinear, scaleLog } from 'd3-scale';
import { ratiosOf } from './case-view.ts';
import { samplesOf, type CaseResult, type ContestantResult } from './result.ts';
import { formatNumber, summarize } from './statistics.ts';

const TICKS = 6;
const PERCENT = [0, 100];

export const CHART_STYLE = `
.chart { display: grid; grid-template-columns: minmax(9rem, max-content) minmax(12rem, 1fr) max-content;
  gap: .5rem 1.6rem; align-items: center; font-size: 12px; }
.chart > :nth-child(3n + 1) { text-align: right; white-space: pre-line; }
.chart div { position: relative; height: 20px; }
.chart i { position: absolute; height: 20px; font-style: normal; }
.chart .baseline { background: #8a8f98; } .chart .rival { background: #c58a2b; } .chart .ours { background: #2f7de1; }
.chart .lost { opacity: .45; }
.chart .range { top: 9px; height: 2px; background: currentColor; opacity: .7; }
.chart .target { top: -3px; height: 26px; border-left: 3px solid #d1453b; }
.chart .even { top: -8px; height: 36px; border-left: 1px dashed; }
.chart .tick { transform: translateX(-50%); }
`;

interface Bar {
  readonly label: string;
  readonly role: ContestantResult['role'];
  readonly samples: readonly number[];
  /** The target, if there is one. */
  readonly floor?: number | undefined;
}

/** The primary metric of every contestant: a bar to the median, a whisker over the rounds. */
export function chartOfCase(result: CaseResult): string {
  const bars = result.contestants.map(({ name, role }) => ({
    ...{ label: name, role },
    samples: samplesOf(result, name, result.primaryMetric),
  }));
  const unit = result.contestants[0]?.metrics[0]?.unit ?? '';
  return drawBars(bars, [result.primaryMetric, unit].filter((word) => word !== '').join(', '), false);
}

/** Baseline / ours for every case, with its target. Left of 1 ours loses. */
export function chartOfRatios(results: readonly CaseResult[]): string {
  const bars = results.flatMap((result) =>
    result.contestants.filter(({ role }) => role === 'ours').map((ours) => ratioBar(result, ours)),
  );
  return drawBars(bars, 'baseline / ours', true);
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
    floor: target?.atLeast,
  };
}

/** @param isRatio - whether the axis is logarithmic, with a line at 1, where bars start. */
function drawBars(all: readonly Bar[], axisName: string, isRatio: boolean): string {
  const bars = all.filter(({ samples }) => samples.length > 0);
  if (bars.length === 0) return '';
  const { x, ticks } = isRatio ? ratioAxis(bars) : linearAxis(bars);
  const rows = bars.map(({ label, role, samples, floor }) => {
    const { median, min, max } = summarize(samples);
    const [origin, end] = [isRatio ? x(1) : 0, x(median)];
    const marks = [
      mark(isRatio && median < 1 ? `${role} lost` : role, Math.min(origin, end), Math.max(origin, end)),
      mark('range', x(min), x(max)),
      floor === undefined ? '' : mark('target', x(floor)),
      isRatio ? mark('even', origin) : '',
    ];
    return rowOf(label, marks, formatNumber(median));
  });
  const labels = ticks.map((tick) => mark('tick', x(tick), undefined, formatNumber(tick)));
  return `<div class="chart">${rows.join('')}${rowOf('', labels, axisName)}</div>`;
}

/** An axis between two round numbers. */
interface Axis {
  readonly x: (value: number) => number;
  readonly ticks: readonly number[];
}

function linearAxis(bars: readonly Bar[]): Axis {
  const x = scaleLinear([0, Math.max(...bars.flatMap(({ samples }) => samples))], PERCENT).nice(TICKS);
  return { x, ticks: x.ticks(TICKS) };
}

/** With ticks at the powers of ten. */
function ratioAxis(bars: readonly Bar[]): Axis {
  const values = [1, ...bars.flatMap(({ samples, floor = 1 }) => [...samples, floor])];
  const x = scaleLog([Math.min(...values), Math.max(...values)], PERCENT).nice();
  return { x, ticks: x.ticks().filter((tick) => Number.isInteger(Number(Math.log10(tick).toFixed(6)))) };
}

function rowOf(label: string, marks: readonly string[], value: string): string {
  return `<span>${escapeMarkup(label)}</span><div>${marks.join('')}</div><span>${escapeMarkup(value)}</span>`;
}

/** Something between two percentages of the axis, or at one. */
function mark(kind: string, from: number, to?: number, text = ''): string {
  const width = to === undefined ? '' : `;width:${(to - from).toFixed(1)}%`;
  return `<i class="${kind}" style="left:${from.toFixed(1)}%${width}">${text}</i>`;
}

export function escapeMarkup(content: string): string {
  return content
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
