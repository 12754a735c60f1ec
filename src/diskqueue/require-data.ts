import { types } from 'node:util';
import { wrongType } from '../core/errors.ts';

/** A message is bytes; also those of another realm, where `instanceof` would not know them. */
export function requireData(data: unknown): asserts data is Uint8Array {
  if (!types.isUint8Array(data)) throw wrongType('data', 'a Uint8Array', data);
}
