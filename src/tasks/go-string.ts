const SHORT_ESCAPES: readonly (readonly [string, string])[] = [
  ['\u0007', 'a'],
  ['\b', 'b'],
  ['\f', 'f'],
  ['\n', 'n'],
  ['\r', 'r'],
  ['\t', 't'],
  ['\v', 'v'],
  ['\\', '\\'],
  ['"', '"'],
];

const ESCAPE_OF = new Map(SHORT_ESCAPES.map(([character, letter]) => [character, `\\${letter}`]));
const CHARACTER_OF = new Map(SHORT_ESCAPES.map(([character, letter]) => [letter, character]));

/** What Go prints as it is: letters, marks, numbers, punctuation, symbols, and the plain space. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3})|([abfnrtv\\"']))/gy;

const PLAIN = /[^\\"\n]+/y;

const REPLACEMENT = '\ufffd';

/** A string as Go's `%q` writes it. */
export function quoteGoString(text: string): string {
  let quoted = '"';
  for (const character of text) quoted += ESCAPE_OF.get(character) ?? escapeUnprintable(character);
  return `${quoted}"`;
}

/** @returns what is quoted, in double quotes; undefined for what Go's `strconv.Unquote` does not take. */
export function unquoteGoString(quoted: string): string | undefined {
  if (quoted.length < 2 || !quoted.startsWith('"') || !quoted.endsWith('"')) return undefined;
  const body = quoted.slice(1, -1);
  let text = '';
  for (let at = 0; at < body.length;) {
    const pattern = body[at] === '\\' ? ESCAPE : PLAIN;
    pattern.lastIndex = at;
    const found = pattern.exec(body);
    if (found === null) return undefined;
    text += pattern === PLAIN ? found[0] : unescape(found);
    at = pattern.lastIndex;
  }
  return text;
}

function escapeUnprintable(character: string): string {
  if (PRINTABLE.test(character)) return character;
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x20 || code === 0x7f) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x1_0000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

function unescape([, x, u, long, octal, letter]: RegExpExecArray): string {
  if (letter !== undefined) return CHARACTER_OF.get(letter) ?? letter;
  const wide = u ?? long;
  if (wide !== undefined) return characterOf(Number.parseInt(wide, 16));
  const byte = x === undefined ? Number.parseInt(octal ?? '', 8) : Number.parseInt(x, 16);
  // A byte of what was no UTF-8: there is no character for it.
  return byte < 0x80 ? String.fromCodePoint(byte) : REPLACEMENT;
}

function characterOf(code: number): string {
  const isCharacter = code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : REPLACEMENT;
}
