/** The HTML report: one file without scripts or requests, light or dark as the browser is set. */
import { summarizeTargets, viewCase, type CaseRow, type CaseView } from './case-view.ts';
import { CHART_STYLE, chartOfCase, chartOfRatios, escapeMarkup } from './chart.ts';
import { problemsOf, type BenchResult, type CaseResult, type PartResult } from './result.ts';

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
`;

export function renderReport(result: BenchResult): string {
  const { machine, date, quick } = result;
  const where = `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.platform} ${machine.arch}`;
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>escapement: benchmarks</title><style>${STYLE}${CHART_STYLE}</style></head><body>`,
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
