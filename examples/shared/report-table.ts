import Table from 'cli-table3';

/** A line of the result table. */
export interface ResultRow {
  readonly label: string;
  readonly value: string;
  readonly note: string;
}

/** The result as a table of text. */
export function reportTable(rows: readonly ResultRow[]): string {
  const table = new Table({
    colAligns: ['left', 'right', 'left'],
    // No colours: the table is often copied, and reads as well without.
    style: { head: [], border: [], compact: true },
  });
  for (const { label, value, note } of rows) table.push([label, value, note]);
  return table.toString();
}
