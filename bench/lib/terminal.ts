/** The terminal's view: a table for each case, with its targets and notes, a summary of the run, and lines that fit. */
import { stripVTControlCharacters } from 'node:util';
import Table from 'cli-table3';
import { describeLosses, describeMissedTargets, summarizeTargets, viewCase } from './case-view.ts';
import type { CaseRow, CaseView, TargetView } from './case-view.ts';
import type { BenchResult, CaseResult } from './result.ts';

/** Columns of a terminal that was not made wider. */
const WIDTH = 80;
/** Two spaces and a border. */
const CELL_FRAME = 3;
const MARKS: Record<TargetView['verdict'], string> = {
  met: '  met        ',
  missed: '  MISSED     ',
  'not judged': '  not judged ',
};

export function renderCase(result: CaseResult): string {
  const view = viewCase(result);
  const targets = view.targets.map(({ verdict, text }) => wrap(MARKS[verdict] + text, ' '.repeat(13)));
  const notes = view.notes.map((note) => wrap(`  * ${note}`, '    '));
  return [wrap(view.title), renderTable(view), ...targets, ...notes, ''].join('\n');
}

/** The last lines of a run: targets met and missed, and where ours loses, unless it was a smoke run. */
export function renderSummary(result: BenchResult): string {
  const losses = result.quick ? [] : describeLosses(result);
  return [
    summarizeTargets(result),
    ...describeMissedTargets(result).map((line) => `  MISSED  ${line}`),
    ...(losses.length === 0 ? [] : ['Where we lose (other / ours):', ...losses.map((line) => `  ${line}`)]),
    '',
  ].join('\n');
}

/** A table that would be wider than a terminal becomes several, each with the names. */
function renderTable({ head, rows }: CaseView): string {
  const broken = rows.map((row) => ({ ...row, cells: row.cells.map(breakRange) }));
  const widths = head.map((name, column) =>
    Math.max(widthOf(name), ...broken.map(({ cells }) => widthOf(cells[column] ?? ''))),
  );
  return groupColumns(widths)
    .map((columns) => drawTable(head, broken, columns, widths))
    .join('\n');
}

/** The range over the rounds goes below the median. */
function breakRange(cell: string): string {
  return cell.replace(/ (?=\([^()]+–[^()]+\)$)/, '\n');
}

function widthOf(cell: string): number {
  return Math.max(...cell.split('\n').map(({ length }) => length));
}

/** Returns the columns beside the names, in as few groups as fit. */
function groupColumns([names = 0, ...widths]: readonly number[]): number[][] {
  const groups: number[][] = [];
  let left = 0;
  for (const [index, width] of widths.entries()) {
    const needed = width + CELL_FRAME;
    if (groups.length === 0 || needed > left) {
      groups.push([]);
      left = WIDTH - names - CELL_FRAME - 1;
    }
    groups.at(-1)?.push(index + 1);
    left -= needed;
  }
  return groups;
}

function drawTable(
  head: readonly string[],
  rows: readonly CaseRow[],
  columns: readonly number[],
  widths: readonly number[],
): string {
  const shown = [0, ...columns];
  const table = new Table({
    head: shown.map((column) => head[column] ?? ''),
    style: { head: [], border: [], compact: true },
    colAligns: shown.map((column) => (column === 0 || column === head.length - 1 ? 'left' : 'right')),
  });
  const beside = columns.reduce((sum, column) => sum + (widths[column] ?? 0) + CELL_FRAME, -CELL_FRAME);
  for (const { cells, cannot } of rows) {
    if (cannot === undefined) table.push(shown.map((column) => cells[column] ?? ''));
    else {
      const content = wrap(`not run: ${cannot}`, '', beside);
      table.push([cells[0] ?? '', { content, colSpan: columns.length, hAlign: 'left' }]);
    }
  }
  return table.toString();
}

/** Breaks lines that are wider than `width`, at spaces. Each further line of a broken line starts with `indent`. */
export function wrap(text: string, indent = '', width = WIDTH): string {
  return text
    .split('\n')
    .map((line) => (stripVTControlCharacters(line).length <= width ? line : wrapLine(line, indent, width)))
    .join('\n');
}

function wrapLine(text: string, indent: string, width: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<=\S) /)) {
    const isFull = line.length + word.length + 1 > width && line !== '';
    if (isFull) lines.push(line);
    line = isFull ? indent + word : line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}
