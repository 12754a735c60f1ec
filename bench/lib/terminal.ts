/** The terminal's view: a table for each case, with its targets and notes, a summary of the run, and lines that fit. */
import Table from 'cli-table3';
import { Help } from 'commander';
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

const help = Object.assign(new Help(), { minWidthToWrap: 0 });

/** Breaks lines that are wider than `width`, at spaces. Each line but the first starts with `indent`. */
export function wrap(text: string, indent = '', width = WIDTH): string {
  return help.boxWrap(text, width - indent.length).replaceAll('\n', `\n${indent}`);
}
