import type { Output } from '../../terminal/output.ts';
import { harmless, table } from '../../terminal/text.ts';
import type { Detail } from './show-task.ts';

/** Rows, the first of which is the head, as a table that fits `out`. @param aligns - of the columns; left if there is none. */
export function showTable(
  [head = [], ...rows]: readonly string[][],
  out: Output,
  aligns: readonly ('left' | 'right')[] = [],
): string {
  return table(
    head,
    head.map((_, at) => aligns[at] ?? 'left'),
    rows,
    out.width,
  );
}

/** One a line, with the names below one another. */
export function showDetails(details: readonly Detail[], out: Output): readonly string[] {
  const width = Math.max(...details.map(([name]) => name.length));
  return details.map(([name, text]) => `${out.paint('bold', name.padEnd(width))}  ${harmless(text)}`);
}
