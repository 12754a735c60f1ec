import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { EscapementError } from '../../core/errors.ts';

/** @throws EscapementError `ERR_WIRE_MESSAGE` - a string is not well-formed Unicode, or a number does not fit its field. */
export function encodeMessage<D extends DescMessage>(schema: D, message: MessageInitShape<D>): Uint8Array {
  requireUnicode(message, schema.typeName);
  try {
    return toBinary(schema, create(schema, message));
  } catch (cause) {
    throw wireError(`cannot be encoded as ${schema.typeName}`, cause);
  }
}

/**
 * Drops fields that asynq does not define, as Go does when it writes a message again.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - the bytes are not such a message, or are cut off.
 */
export function decodeMessage<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw wireError(`cannot decode ${bytes.length} bytes as ${schema.typeName}`, cause);
  }
}

/**
 * Checks the strings of a message, of its lists and of its maps. The library writes U+FFFD for half a surrogate pair without an
 * error, and two ids could become one.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - a string is not well-formed Unicode.
 */
function requireUnicode(message: object, typeName: string): void {
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
  return wireError(`cannot be encoded as ${typeName}: '${name.toWellFormed()}' is not well-formed Unicode`);
}

/** The error for bytes that cannot be decoded, or a value that cannot be encoded. */
export function wireError(claim: string, cause?: unknown): EscapementError {
  if (!(cause instanceof Error)) return new EscapementError('ERR_WIRE_MESSAGE', claim);
  return new EscapementError('ERR_WIRE_MESSAGE', `${claim}: ${cause.message}`, { cause });
}
