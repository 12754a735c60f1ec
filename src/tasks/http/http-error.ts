import { EscapementError } from '../../core/errors.ts';

/** Headers of every response: it must not be cached, sniffed for another type, or embedded in a page of another site. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
};

/** A response with a status other than success, and one line of text. */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * Runs a function of the application.
 *
 * @throws HttpError 500 - it failed; the error is reported, because the client cannot do anything about it.
 */
export async function ofApplication<T>(
  report: (error: unknown) => void,
  run: () => T | Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    report(error);
    throw internalError();
  }
}

/** Values that Node accepts for a header: Latin-1 without control characters. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Returns the error for a result of `authorize` that is a challenge; undefined if it is none. */
export function unauthorized(verdict: unknown): HttpError | undefined {
  const challenge = (verdict as { challenge?: unknown } | null | undefined)?.challenge;
  if (typeof challenge !== 'string' || !HEADER_VALUE.test(challenge)) return undefined;
  return new HttpError(401, 'unauthorized', { 'www-authenticate': challenge });
}

export function internalError(): HttpError {
  return new HttpError(500, 'internal error');
}

/** asynqmon's statuses where it has any: it responds with 500 to nearly every error. */
const STATUS_OF_CODE: ReadonlyMap<string, number> = new Map([
  ['ERR_INVALID_ARG_TYPE', 400],
  ['ERR_INVALID_ARG_VALUE', 400],
  ['ERR_UNKNOWN_OPTION', 400],
  ['ERR_OUT_OF_RANGE', 400],
  ['ERR_QUEUE_NOT_EMPTY', 400],
  ['ERR_QUEUE_NOT_FOUND', 404],
  ['ERR_TASK_NOT_FOUND', 404],
  ['ERR_TASK_STATE', 409],
  ['ERR_QUEUE_STATE', 409],
  ['ERR_BROKER_CLOSED', 503],
  ['ERR_BROKER_UNAVAILABLE', 503],
]);

/** Returns the response to an error of the client; undefined if the error is not the client's. */
export function httpErrorOf(error: unknown): HttpError | undefined {
  try {
    return classify(error);
  } catch {
    return undefined; // a getter of the error threw, or the error is a proxy
  }
}

function classify(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  const { code } = (typeof error === 'object' && error !== null ? error : {}) as { code?: unknown };
  const status = typeof code === 'string' ? STATUS_OF_CODE.get(code) : undefined;
  if (status === undefined || !(error instanceof Error)) return undefined;
  if (!(error instanceof EscapementError) && status !== 400) return undefined;
  return new HttpError(status, error.message);
}
