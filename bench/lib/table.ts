/** The terminal's view of a case: ratios first, then what they are made of, then the targets. */
import Table from 'cli-table3';
import { viewCase, type CaseView, type TargetView } from './case-view.ts';
import type { CaseResult } from './result.ts';

const MARKS: Record<TargetView['verdict'], string> = {
  met: '  met        ',
  missed: '  MISSED     ',
  'not judged': '  not judged ',
};

/** Notes wrap at this many characters, a common width of a terminal. */
const NOTE_WIDTH = 110;

export function renderCase(result: CaseResult): string {
  const view = viewCase(result);
  const targets = view.targets.map(({ verdict, text }) => MARKS[verdict] + text);
  const notes = view.notes.map((note) => wrap(`  * ${note}`, '    '));
  return [view.title, renderTable(view), ...targets, ...notes, ''].join('\n');
}

function renderTable({ head, rows }: CaseView): string {
  const table = new Table({
    head: [...head],
    style: { head: [], border: [], compact: true },
    colAligns: head.map((_, column) => (column === 0 || column === head.length - 1 ? 'left' : 'right')),
  });
  for (const { cells, cannot } of rows) {
    table.push(
      cannot === undefined
        ? [...cells]
        : [
            ...cells,
            { content: wrap(`not run: ${cannot}`, ''), colSpan: head.length - 1, hAlign: 'left' as const },
          ],
    );
  }
  return table.toString();
}

export function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<=\S) /)) {
    const isFull = line.length + word.length + 1 > NOTE_WIDTH && line !== '';
    if (isFull) lines.push(line);
    line = isFull ? indent + word : line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}
