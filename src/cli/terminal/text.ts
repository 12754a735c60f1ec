import Table, { type TableConstructorOptions } from 'cli-table3';
import stringWidth from 'string-width';

const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `12,345`. */
export function formatCount(value: number): string {
  return COUNT.format(value);
}

/** `1 message`, `2 messages`. */
export function counted(value: number, noun: string): string {
  return `${formatCount(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** `84 bytes`, `1.2 KiB`, `100 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = '';
  for (const larger of units) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  if (unit === '') return counted(bytes, 'byte');
  return `${value < 10 ? value.toFixed(1) : formatCount(value)} ${unit}`;
}

/** Columns of a table: the head of each, and the text of an item's cell; numbers are aligned to the right. */
export type Columns<T> = readonly (readonly [head: string, cell: (item: T) => string, align?: 'right'])[];

/** A table with a longer text, in UTF-16 code units, is not drawn: its other rows would be padded to the same length. */
const LONGEST_CELL = 10_000;

/** Returns a table, or its rows one below the other if it is wider than `width` or has a very long text. No colours, because it is often copied. */
export function table<T>(columns: Columns<T>, items: readonly T[], width: number): string {
  const head = columns.map(([name]) => name);
  const cells = cellsOf(columns, items);
  if (cells.flat().every(({ length }) => length <= LONGEST_CELL)) {
    const text = draw(cells, columns, { head, style: { head: [], border: [], compact: true } });
    if (items.length === 0 || text.indexOf('\n') <= width) return text;
  }
  const rows = cells.map((row) => row.map((cell, at): Detail => [head[at] ?? '', cell]));
  return rows.map((row) => detailLines(row).join('\n')).join('\n\n');
}

export type Detail = readonly [name: string, text: string];

/** Returns a line for each detail: its name, padded to the longest one, and its text. */
export function detailLines(details: readonly Detail[], paint = (name: string): string => name): string[] {
  const width = Math.max(...details.map(([name]) => name.length));
  return details.map(([name, text]) => `${paint(name.padEnd(width))}  ${harmless(text)}`.trimEnd());
}

/** Empty borders: columns are separated by spaces. */
const NO_BORDERS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right']
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat('mid', 'mid-mid', 'middle')
    .map((name) => [name, '']),
);

/** Spaces behind each column. */
const GAP = 2;

/** Returns the lines of a table without borders; the first one is the head. Texts are cut until a line is at most `width` columns wide, if that is possible. */
export function plainTable<T>(columns: Columns<T>, items: readonly T[], width = Infinity): readonly string[] {
  const style = { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': GAP };
  const rows = [columns.map(([name]) => name), ...cellsOf(columns, items)];
  return draw(cutToFit(rows, columns, width), columns, { chars: NO_BORDERS, style })
    .split('\n')
    .map((line) => line.trimEnd());
}

/** Least width to which a text is cut, in columns. */
const LEAST_TEXT = 6;

/** Cuts the longest texts, and no numbers: a terminal cuts off the last columns of a line that is still too long. */
function cutToFit<T>(rows: readonly string[][], columns: Columns<T>, width: number): string[][] {
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => stringWidth(row[at] ?? ''))));
  const isText = (at: number): boolean => columns[at]?.[2] !== 'right';
  let excess = widths.reduce((sum, one) => sum + one + GAP, -GAP) - width;
  for (; excess > 0; excess--) {
    const widest = Math.max(...widths.filter((_, at) => isText(at)));
    if (widest <= LEAST_TEXT) break;
    widths[widths.findIndex((one, at) => one === widest && isText(at))] = widest - 1;
  }
  return rows.map((row) => row.map((cell, at) => cutTo(widths[at] ?? 0, cell)));
}

function cutTo(width: number, cell: string): string {
  if (stringWidth(cell) <= width) return cell;
  let cut = '';
  let columns = 0;
  for (const character of cell) {
    columns += stringWidth(character);
    if (columns >= width) break;
    cut += character;
  }
  return `${cut}…`;
}

function cellsOf<T>(columns: Columns<T>, items: readonly T[]): string[][] {
  return items.map((item) => columns.map(([, cell]) => printable(cell(item))));
}

function draw<T>(rows: string[][], columns: Columns<T>, options: TableConstructorOptions): string {
  const drawn = new Table({ ...options, colAligns: columns.map(([, , align]) => align ?? 'left') });
  drawn.push(...rows);
  return drawn.toString();
}

/** Control characters, line separators, marks that change the direction of writing, and halves of surrogate pairs. */
const HARMFUL = /[\p{Cc}\u2028\u2029\p{Bidi_Control}\p{Surrogate}]/gu;

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Returns one line that has no effect on a terminal: harmful characters are written as in a program. A backslash stays, so paths
 * can be copied. Idempotent.
 */
export function harmless(text: string): string {
  return text.replace(HARMFUL, (character) => ESCAPES[character] ?? codeOf(character));
}

/** Returns the same as `harmless`, unambiguously: a backslash is written as two. */
export function printable(text: string): string {
  return harmless(text.replaceAll('\\', '\\\\'));
}

/** Returns the same as `harmless`, with the line breaks and tabs of the text. */
export function harmlessLines(text: string): string {
  return text.replace(HARMFUL, (character) =>
    character === '\n' || character === '\t' ? character : codeOf(character),
  );
}

function codeOf(character: string): string {
  const code = character.charCodeAt(0);
  return code <= 0xff ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns bytes as one line: as text if they are UTF-8; else byte for byte, those beyond ASCII as `\xNN`. */
export function printableBytes(data: Uint8Array): string {
  try {
    return printable(UTF8.decode(data));
  } catch {
    return printable(Buffer.from(data).toString('latin1')).replace(/[\u0080-\u00ff]/g, codeOf);
  }
}

/** Characters that JSON does not escape and that affect a terminal: control characters, line separators, marks of direction. */
const NOT_ESCAPED = /[\u007f-\u009f\u2028\u2029\p{Bidi_Control}]/gu;

/** Returns JSON that has no effect on a terminal. @param indent - 0 for one line. */
export function toJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(
    NOT_ESCAPED,
    (character) => `\\u${hex(character.charCodeAt(0), 4)}`,
  );
}
