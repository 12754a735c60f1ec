import { wireError } from './wire-error.ts';

/**
 * Strings of a message, of its lists and of its maps. The library would write U+FFFD for half a surrogate pair without a
 * word, and two ids could become one.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - one is no Unicode.
 */
export function requireUnicode(message: object, typeName: string): void {
  for (const [name, value] of Object.entries(message) as [string, unknown][]) {
    if (!name.isWellFormed()) throw notUnicode(typeName, name);
    if (typeof value === 'string') {
      if (!value.isWellFormed()) throw notUnicode(typeName, name);
    } else if (isNested(value)) requireUnicode(value, `${typeName}.${name}`);
  }
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
}

function notUnicode(typeName: string, name: string): Error {
  return wireError(`cannot be written as ${typeName}: '${name.toWellFormed()}' is not well-formed Unicode`);
}
