import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { requireUnicode } from './require-unicode.ts';
import { wireError } from './wire-error.ts';

/** @throws EscapementError `ERR_WIRE_MESSAGE` - a string is no Unicode, or a number does not fit its field. */
export function encodeMessage<D extends DescMessage>(schema: D, message: MessageInitShape<D>): Uint8Array {
  requireUnicode(message, schema.typeName);
  try {
    return toBinary(schema, create(schema, message));
  } catch (cause) {
    throw wireError(`cannot be written as ${schema.typeName}`, cause);
  }
}

/**
 * Fields that asynq does not know are dropped, as Go drops them when it rewrites a message: what nobody may rely on is
 * not carried along.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - the bytes are something else, or are cut off.
 */
export function decodeMessage<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw wireError(`${bytes.length} bytes are no ${schema.typeName}`, cause);
  }
}
