import { types } from 'node:util';
import { CONSOLE_VIEW } from '../core/console-view.ts';
import { EscapementError, wrongValue } from '../core/errors.ts';
import { isDetached } from '../core/validate.ts';

/* Bytes of users: payloads and results. Encoding, decoding, and how they are shown. */

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Their instances are `{}` in JSON, whatever is in them. */
const LOST_IN_JSON = [ArrayBuffer, Map, Set, Error, RegExp, Promise] as const;

function isLostInJson(payload: unknown): boolean {
  if (typeof payload !== 'object' || payload === null) return false;
  if (Object.getPrototypeOf(payload) === Object.prototype || 'toJSON' in payload) return false;
  return ArrayBuffer.isView(payload) || LOST_IN_JSON.some((kind) => payload instanceof kind);
}

/** Returns a value that is `{}` in the JSON of another one although something is in it: a Map; undefined if there is none. */
function lostWithin(value: unknown): object | undefined {
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return undefined;
  const inner: readonly unknown[] = Object.values(value);
  for (const one of inner) {
    const lost = lostWithin(one);
    if (lost !== undefined) return lost;
  }
  if (inner.length > 0 || !isLostInJson(value)) return undefined;
  return ArrayBuffer.isView(value) && value.byteLength === 0 ? undefined : value;
}

/** Returns undefined for a function or a symbol, which its type in TypeScript lacks. */
const stringify: (value: unknown) => string | undefined = JSON.stringify;

/**
 * Copies bytes, and encodes other values as JSON.
 *
 * @param argument - its name in errors.
 * @throws TypeError `ERR_INVALID_ARG_VALUE` - as `encodeJson`; or bytes that were transferred.
 */
export function encodePayload(payload: unknown, argument = 'payload'): Uint8Array {
  if (types.isUint8Array(payload)) return copyOf(payload, argument); // also if they are of another realm
  return Buffer.from(encodeJson(payload, argument, 'a Uint8Array or a JSON-serializable value'));
}

/**
 * Returns a value as JSON.
 *
 * @param argument - its name in errors.
 * @param allowed - what the caller accepts, for errors.
 * @throws TypeError `ERR_INVALID_ARG_VALUE` - the value is not JSON-serializable, or JSON would lose what is in it: `{}` for a map, in
 * whatever depth.
 */
export function encodeJson(value: unknown, argument: string, allowed = 'a JSON-serializable value'): string {
  const notJson = (reason?: unknown): Error => {
    const why = reason instanceof Error ? ` (${reason.message})` : '';
    return wrongValue(argument, `${allowed}${why}`, value);
  };
  if (types.isUint8Array(value) || isLostInJson(value)) throw notJson();
  let json: string | undefined;
  let lost: object | undefined;
  try {
    json = stringify(value);
    // Only then may a part be lost: a search of the text costs next to nothing.
    if (json?.includes('{}') === true) lost = lostWithin(value);
  } catch (error) {
    throw Object.assign(notJson(error), { cause: error });
  }
  if (json === undefined) throw notJson();
  if (lost !== undefined) {
    throw notJson(new Error(`${Object.prototype.toString.call(lost)} in it would be {}`));
  }
  return json;
}

function copyOf(bytes: Uint8Array, argument: string): Uint8Array {
  if (isDetached(bytes)) throw wrongValue(argument, 'bytes that were not transferred', bytes);
  return Buffer.from(bytes);
}

/** Decodes JSON. @throws EscapementError `ERR_TASK_PAYLOAD` - `what` is not JSON in UTF-8. */
export function parseJson(what: string, bytes: Uint8Array, op: string): unknown {
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch (cause) {
    const why = bytes.length === 0 ? ': it is empty' : '';
    throw new EscapementError('ERR_TASK_PAYLOAD', `${what} is not JSON${why}`, { op, cause });
  }
}

/** Shown instead of bytes that are not text. */
const NOT_TEXT = 'non-printable bytes';

/** Characters of a text: letters, marks, numbers, punctuation, symbols, and the white space of JSON. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\t\r\n]*$/u;

/** A character is at most four bytes of UTF-8. */
const MAX_CHARACTER_BYTES = 4;

/** Longest text of a payload that a console prints, in characters. */
const PRINTED_CHARACTERS = 100;

/** Formats bytes as text, cut to `maxLength` characters; or as a note that they are not text. */
export function showBytes(bytes: Uint8Array, maxLength: number): string {
  return textOf(bytes, maxLength) ?? NOT_TEXT;
}

/** Returns what a console prints for bytes: text, or the number of bytes if they are not text; undefined if there are none. */
export function printBytes(bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined || bytes.length === 0) return undefined;
  return textOf(bytes, PRINTED_CHARACTERS) ?? { [CONSOLE_VIEW]: () => `<${bytes.length} bytes>` };
}

/** Returns the properties of bytes in JSON: text if they are UTF-8, otherwise base64, and the encoding. */
export function bytesJson(name: string, bytes: Uint8Array): Record<string, string> {
  try {
    return { [name]: UTF8.decode(bytes), [`${name}Encoding`]: 'utf8' };
  } catch {
    return { [name]: Buffer.from(bytes).toString('base64'), [`${name}Encoding`]: 'base64' };
  }
}

/**
 * Decodes base64 with its padding. Node decodes anything, and skips what is not base64.
 *
 * @throws TypeError `ERR_INVALID_ARG_VALUE` - the text is not what Node would write for the bytes.
 */
export function bytesOfBase64(argument: string, text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw wrongValue(argument, 'base64 with its padding', text);
  return bytes;
}

/** Returns what a console prints for a text or an object: undefined if it is empty. */
export function printFilled<T extends object | string>(value: T): T | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

function textOf(bytes: Uint8Array, maxLength: number): string | undefined {
  const seen = bytes.subarray(0, (maxLength + 1) * MAX_CHARACTER_BYTES);
  const text = decode(seen, seen.length < bytes.length);
  return text === undefined || !PRINTABLE.test(text) ? undefined : shorten(text, maxLength);
}

/** Cuts a text to `maxLength` characters, and marks the cut. */
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
