/** The HTML report: one file without scripts or requests, light or dark as the browser is set. Its charts are rows of bars, placed by percentages. */
import { scaleLinear, scaleLog } from 'd3-scale';
import { ratiosOf, summarizeTargets, viewCase, type CaseRow, type CaseView } from './case-view.ts';
import { problemsOf, samplesOf } from './result.ts';
import type { BenchResult, CaseResult, ContestantResult, PartResult } from './result.ts';
import { formatNumber, summarize } from './statistics.ts';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  background: Canvas; color: CanvasText; }
h2 { margin-top: 3rem; } h3 { margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent);
  text-align: right; vertical-align: top; white-space: pre-line; }
th:first-child, td:first-child, td:last-child, td[colspan] { text-align: left; }
tr.ours td:first-child { font-weight: 700; }
.met::before { content: '✓ met: '; } .missed::before { content: '✗ MISSED: '; font-weight: 700; }
.not-judged::before { content: '– not judged: '; }
.missed, .failed { color: #d1453b; }
ul { padding-left: 1.2rem; } .note { opacity: .8; font-size: 13px; }
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

export function renderReport(result: BenchResult): string {
  const { machine, date, quick } = result;
  const where = `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.platform} ${machine.arch}`;
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>escapement: benchmarks</title><style>${STYLE}</style></head><body>`,
    '<h1>escapement: benchmarks</h1>',
    paragraph(`${date} · Node ${machine.node} (V8 ${machine.v8}) · ${where}`),
    quick ? paragraph('A smoke run: smaller and shorter than a full run. Its targets are not judged.') : '',
    paragraph(summarizeTargets(result)),
    ...problemsOf(result).map(
      (problem) => `<p class="failed">self-check failed: ${escapeMarkup(problem)}</p>`,
    ),
    ...result.parts.map(renderPart),
    '</body></html>\n',
  ].join('\n');
}

function renderPart({ title, remarks, cases }: PartResult): string {
  return [
    `<h2>${escapeMarkup(title)}</h2>`,
    ...remarks.map(paragraph),
    '<h3>Overview: speed as a multiple of the baseline</h3>',
    paragraph(
      'Logarithmic. Left of the dashed line the baseline is faster. Whiskers: the range over the rounds. Red: the target.',
    ),
    `<div class="wide">${chartOfRatios(cases)}</div>`,
    ...cases.map(renderCase),
  ].join('\n');
}

function renderCase(result: CaseResult): string {
  const view = viewCase(result);
  return [
    `<section><h3>${escapeMarkup(view.title)}</h3>`,
    `<div class="wide">${chartOfCase(result)}</div>`,
    `<div class="wide">${renderTable(view)}</div>`,
    '<ul>',
    ...view.targets.map(
      ({ verdict, text }) => `<li class="${verdict.replace(' ', '-')}">${escapeMarkup(text)}</li>`,
    ),
    ...view.notes.map((note) => `<li class="note">${escapeMarkup(note)}</li>`),
    '</ul></section>',
  ].join('\n');
}

function renderTable({ head, rows }: CaseView): string {
  const cells = head.map((cell) => `<th>${escapeMarkup(cell)}</th>`).join('');
  return `<table><thead><tr>${cells}</tr></thead><tbody>${rows.map((row) => renderRow(row, head.length)).join('')}</tbody></table>`;
}

function renderRow({ role, cells, cannot }: CaseRow, columns: number): string {
  const own = cells.map((cell) => `<td>${escapeMarkup(cell)}</td>`).join('');
  const rest =
    cannot === undefined ? '' : `<td colspan="${columns - 1}">not run: ${escapeMarkup(cannot)}</td>`;
  return `<tr class="${role}">${own}${rest}</tr>`;
}

function paragraph(text: string): string {
  return `<p>${escapeMarkup(text)}</p>`;
}

function escapeMarkup(content: string): string {
  return content
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

const TICKS = 6;
const PERCENT = [0, 100];

interface Bar {
  readonly label: string;
  readonly role: ContestantResult['role'];
  readonly samples: readonly number[];
  /** The target, if there is one. */
  readonly floor?: number | undefined;
}

/** The primary metric of every contestant: a bar to the median, a whisker over the rounds. */
function chartOfCase(result: CaseResult): string {
  const bars = result.contestants.map(({ name, role }) => ({
    ...{ label: name, role },
    samples: samplesOf(result, name, result.primaryMetric),
  }));
  const unit = result.contestants[0]?.metrics[0]?.unit ?? '';
  return drawBars(bars, [result.primaryMetric, unit].filter((word) => word !== '').join(', '), false);
}

/** Baseline / ours for every case, with its target. Left of 1 ours loses. */
function chartOfRatios(results: readonly CaseResult[]): string {
  const bars = results.flatMap((result) =>
    result.contestants.filter(({ role }) => role === 'ours').map((ours) => ratioBar(result, ours)),
  );
  return drawBars(bars, 'baseline / ours', true);
}

function ratioBar(result: CaseResult, ours: ContestantResult): Bar {
  const target = result.targets
    .map((judged) => judged.target)
    .find((each) => each.kind === 'ratio' && each.contestant === ours.name && each.against === undefined);
  return {
    label: `${result.name}\n${ours.name} against ${result.baseline}`,
    role: ours.role,
    samples: ratiosOf(result, ours).filter((ratio) => Number.isFinite(ratio) && ratio > 0),
    floor: target?.bound,
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
