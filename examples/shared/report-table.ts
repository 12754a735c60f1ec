import Table from 'cli-table3';
import { WIDTH } from './wrap.ts';

/** Spaces and borders around the texts of a row. */
const FRAME_WIDTH = 10;

/** A line of the result table. */
export interface ResultRow {
  readonly label: string;
  readonly value: string;
  readonly note: string;
}

/** The result as a table of text, not wider than a terminal: long notes have several lines. */
export function reportTable(rows: readonly ResultRow[]): string {
  const longest = (pick: (row: ResultRow) => string): number =>
    Math.max(...rows.map((row) => pick(row).length));
  const [labels, values] = [longest(({ label }) => label), longest(({ value }) => value)];
  const notes = Math.min(
    longest(({ note }) => note),
    WIDTH - FRAME_WIDTH - labels - values,
  );
  const table = new Table({
    colAligns: ['left', 'right', 'left'],
    colWidths: [labels, values, notes].map((width) => width + 2),
    wordWrap: true,
    // No colours: the table is often copied, and reads as well without.
    style: { head: [], border: [], compact: true },
  });
  for (const { label, value, note } of rows) table.push([label, value, note]);
  return table.toString();
}
