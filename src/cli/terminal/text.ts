import Table from 'cli-table3';

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

/** A table of text; or, if that is wider than `width`, its rows one below the other. No colours: it is often copied. */
export function table(
  head: readonly string[],
  aligns: readonly ('left' | 'right')[],
  rows: string[][],
  width: number,
): string {
  const drawn = new Table({
    head: [...head],
    colAligns: [...aligns],
    style: { head: [], border: [], compact: true },
  });
  const cells = rows.map((row) => row.map(harmless));
  drawn.push(...cells);
  const text = drawn.toString();
  return rows.length === 0 || text.indexOf('\n') <= width ? text : blocks(head, cells);
}

/** Each cell is a line, after the name of its column. */
function blocks(head: readonly string[], rows: readonly string[][]): string {
  const longest = Math.max(...head.map(({ length }) => length));
  const names = head.map((name) => name.padEnd(longest));
  return rows
    .map((row) => row.map((cell, at) => `${names[at] ?? ''}  ${cell}`.trimEnd()).join('\n'))
    .join('\n\n');
}

/** No borders: what separates columns is room. */
const NO_BORDERS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right']
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat('mid', 'mid-mid', 'middle')
    .map((name) => [name, '']),
);

/** The same, without borders: its lines. */
export function plainTable(rows: string[][], aligns: readonly ('left' | 'right')[]): readonly string[] {
  const style = { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 2 };
  const drawn = new Table({ chars: NO_BORDERS, colAligns: [...aligns], style });
  drawn.push(...rows.map((row) => row.map(harmless)));
  return drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd());
}

/** Control characters, line separators, marks that turn the direction of writing, and halves of surrogate pairs. */
const HARMFUL = /[\p{Cc}\u2028\u2029\p{Bidi_Control}\p{Surrogate}]/gu;

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * One line that does nothing to a terminal: harmful characters are written as in a program. A backslash stays, so paths
 * can be copied, and doing it twice is the same as once.
 */
export function harmless(text: string): string {
  return text.replace(HARMFUL, (character) => ESCAPES[character] ?? codeOf(character));
}

/** As `harmless`, and it can be read in one way only: a backslash is written as two. */
export function printable(text: string): string {
  return harmless(text.replaceAll('\\', '\\\\'));
}

/** As `harmless`, with the line breaks and tabs of the text. */
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

/** Bytes as one line: as UTF-8 if that is what they are, or else byte for byte, those beyond ASCII as `\xNN`. */
export function printableBytes(data: Uint8Array): string {
  try {
    return printable(UTF8.decode(data));
  } catch {
    return printable(Buffer.from(data).toString('latin1')).replace(/[\u0080-\u00ff]/g, codeOf);
  }
}
