/** Shown in the place of bytes that are no text. */
const NOT_TEXT = 'non-printable bytes';

/** What may stand in a text: letters, marks, numbers, punctuation, symbols, and the white space of JSON. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\t\r\n]*$/u;

/** A character takes four bytes at most. */
const MAX_CHARACTER_BYTES = 4;

/** Bytes as text, if they are; at most `maxLength` characters of it, and a mark that there are more. */
export function showBytes(bytes: Uint8Array, maxLength: number): string {
  const seen = bytes.subarray(0, (maxLength + 1) * MAX_CHARACTER_BYTES);
  const text = decode(seen, seen.length < bytes.length);
  return text === undefined || !PRINTABLE.test(text) ? NOT_TEXT : shorten(text, maxLength);
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
