import { EscapementError, wrongValue } from '../core/errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns undefined for a function or a symbol, which its type in TypeScript lacks. */
const stringify: (value: unknown) => string | undefined = JSON.stringify;

/** Copies bytes, and encodes other values as JSON. @throws TypeError `ERR_INVALID_ARG_VALUE` - the value is not JSON-serializable. */
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

/** Decodes JSON as `decodeJson` does. @throws EscapementError `ERR_TASK_PAYLOAD` - `what` is not JSON. */
export function parseJson(what: string, bytes: Uint8Array): unknown {
  try {
    return decodeJson(bytes);
  } catch (cause) {
    throw new EscapementError('ERR_TASK_PAYLOAD', `${what} is not JSON`, { cause });
  }
}

/** Decodes JSON. @throws SyntaxError or TypeError - the bytes are not JSON in UTF-8. */
export function decodeJson(payload: Uint8Array): unknown {
  return JSON.parse(decoder.decode(payload));
}

function notJson(payload: unknown): Error {
  return wrongValue('payload', 'a Uint8Array or a JSON-serializable value', payload);
}
