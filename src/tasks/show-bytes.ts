import { CONSOLE_VIEW } from '../core/console-view.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Shown in the place of bytes that are no text. */
const NOT_TEXT = 'non-printable bytes';

/** What may stand in a text: letters, marks, numbers, punctuation, symbols, and the white space of JSON. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\t\r\n]*$/u;

/** A character takes four bytes at most. */
const MAX_CHARACTER_BYTES = 4;

/** How much of a payload a console prints, in characters. */
const PRINTED_CHARACTERS = 100;

/** Bytes as text, if they are; at most `maxLength` characters of it, and a mark that there are more. */
export function showBytes(bytes: Uint8Array, maxLength: number): string {
  return textOf(bytes, maxLength) ?? NOT_TEXT;
}

/** What a console prints of bytes: text, if they are, or how many there are; nothing if there are none. */
export function printBytes(bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined || bytes.length === 0) return undefined;
  return textOf(bytes, PRINTED_CHARACTERS) ?? { [CONSOLE_VIEW]: () => `<${bytes.length} bytes>` };
}

/** Bytes as JSON: text if they are UTF-8, else base64, and which of the two. */
export function bytesJson(name: string, bytes: Uint8Array): Record<string, string> {
  try {
    return { [name]: UTF8.decode(bytes), [`${name}Encoding`]: 'utf8' };
  } catch {
    return { [name]: Buffer.from(bytes).toString('base64'), [`${name}Encoding`]: 'base64' };
  }
}

/** What a console prints of a text or an object: nothing if it is empty. */
export function printFilled<T extends object | string>(value: T): T | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

function textOf(bytes: Uint8Array, maxLength: number): string | undefined {
  const seen = bytes.subarray(0, (maxLength + 1) * MAX_CHARACTER_BYTES);
  const text = decode(seen, seen.length < bytes.length);
  return text === undefined || !PRINTABLE.test(text) ? undefined : shorten(text, maxLength);
}

/** The first characters of a text, and a mark if there are more. */
export function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const characters = Array.from(text);
  return characters.length <= maxLength ? text : `${characters.slice(0, maxLength).join('')}…`;
}

/** @param isCut - the last character may be incomplete. */
function decode(bytes: Uint8Array, isCut: boolean): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut });
  } catch {
    return undefined;
  }
}
