import { visible } from './format.ts';

/*
 * JSON is shown as its tokens, not as its values: `12345678901234567890` and `1.0` stay what they are, and a key that is there twice
 * is shown twice.
 */

/** JSON of more tokens is shown as it is: indented, a megabyte of brackets takes 80 MB. */
const MAX_TOKENS = 100_000;

type TokenKind = 'key' | 'string' | 'number' | 'word' | 'plain';

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const TOKEN = /\s+|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/gy;

/** The tokens of a text, indented; undefined if it is not JSON, or has too many. */
export function prettyTokens(text: string): Token[] | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  const tokens: string[] = [];
  for (const [token] of text.matchAll(TOKEN)) {
    if (tokens.length === MAX_TOKENS) return undefined;
    if (!/^\s/.test(token)) tokens.push(token);
  }
  return indented(tokens);
}

function indented(tokens: readonly string[]): Token[] {
  const out: Token[] = [];
  const plain = (text: string): number => out.push({ kind: 'plain', text });
  let depth = 0;
  const line = (): string => `\n${'  '.repeat(Math.min(depth, 40))}`;
  tokens.forEach((token, index) => {
    const next = tokens[index + 1] ?? '';
    const before = tokens[index - 1] ?? '';
    if (token === '{' || token === '[') {
      const isEmpty = next === '}' || next === ']';
      if (!isEmpty) depth++;
      plain(isEmpty ? token : token + line());
    } else if (token === '}' || token === ']') {
      const isEmpty = before === '{' || before === '[';
      if (!isEmpty) depth--;
      plain(isEmpty ? token : line() + token);
    } else if (token === ',') plain(token + line());
    else if (token === ':') plain(': ');
    else out.push({ kind: kindOf(token, next), text: visible(token) });
  });
  return out;
}

function kindOf(token: string, next: string): TokenKind {
  if (token.startsWith('"')) return next === ':' ? 'key' : 'string';
  return /^[-\d]/.test(token) ? 'number' : 'word';
}

/** Rows of 16 bytes: offset, hexadecimal, and what is ASCII. */
export function hexRows(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let offset = 0; offset < bytes.length; offset += 16) {
    const row = [...bytes.subarray(offset, offset + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const ascii = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '·')).join('');
    rows.push(`${offset.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${ascii}`);
  }
  return rows.join('\n');
}

export function bytesOfBase64(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
