import { stripVTControlCharacters } from 'node:util';

/** Columns of a terminal that was not made wider. */
export const WIDTH = 80;

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
