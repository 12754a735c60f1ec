import { EscapementError, wrongValue } from '../core/errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Of a function or a symbol, undefined: its type does not say so. */
const stringify: (value: unknown) => string | undefined = JSON.stringify;

/** Bytes are copied; anything else becomes JSON. @throws TypeError `ERR_INVALID_ARG_VALUE` - JSON has no word for it. */
export function encodePayload(payload: unknown): Uint8Array {
  if (payload instanceof Uint8Array) return Buffer.from(payload);
  let json: string | undefined;
  try {
    json = stringify(payload);
  } catch (error) {
    throw Object.assign(notJson(payload), { cause: error });
  }
  if (json === undefined) throw notJson(payload);
  return Buffer.from(json);
}

/** As `decodeJson`. @throws EscapementError `ERR_TASK_PAYLOAD` - `what` is not JSON. */
export function parseJson(what: string, bytes: Uint8Array): unknown {
  try {
    return decodeJson(bytes);
  } catch (cause) {
    throw new EscapementError('ERR_TASK_PAYLOAD', `${what} is not JSON`, { cause });
  }
}

/** @throws SyntaxError - it is not JSON. */
export function decodeJson(payload: Uint8Array): unknown {
  return JSON.parse(decoder.decode(payload));
}

function notJson(payload: unknown): Error {
  return wrongValue('payload', 'bytes, or something that JSON can say', payload);
}
