import Table, { type TableConstructorOptions } from 'cli-table3';

const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `12,345`. */
export function formatCount(value: number): string {
  return COUNT.format(value);
}

/** `1 message`, `2 messages`. */
export function count(value: number, noun: string): string {
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
  if (unit === '') return count(bytes, 'byte');
  return `${value < 10 ? value.toFixed(1) : formatCount(value)} ${unit}`;
}

/** Columns of a table: the head of each, and the text of an item's cell; numbers are aligned to the right. */
export type Columns<T> = readonly (readonly [head: string, cell: (item: T) => string, align?: 'right'])[];

/** Returns a table, or its rows one below the other if it is wider than `width`. No colours, because it is often copied. */
export function table<T>(columns: Columns<T>, items: readonly T[], width: number): string {
  const head = columns.map(([name]) => name);
  const cells = cellsOf(columns, items);
  const text = draw(cells, columns, { head, style: { head: [], border: [], compact: true } });
  return items.length === 0 || text.indexOf('\n') <= width ? text : blocks(head, cells);
}

/** Returns the rows of a table one below the other: each cell is a line, after the name of its column. */
function blocks(head: readonly string[], rows: readonly string[][]): string {
  const longest = Math.max(...head.map(({ length }) => length));
  const names = head.map((name) => name.padEnd(longest));
  return rows
    .map((row) => row.map((cell, at) => `${names[at] ?? ''}  ${cell}`.trimEnd()).join('\n'))
    .join('\n\n');
}

/** Columns are separated by spaces. */
const NO_BORDERS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right']
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat('mid', 'mid-mid', 'middle')
    .map((name) => [name, '']),
);

/** Returns the lines of a table without borders; the first one is the head. */
export function plainTable<T>(columns: Columns<T>, items: readonly T[]): readonly string[] {
  const style = { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 2 };
  const rows = [columns.map(([name]) => name), ...cellsOf(columns, items)];
  return draw(rows, columns, { chars: NO_BORDERS, style })
    .split('\n')
    .map((line) => line.trimEnd());
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
