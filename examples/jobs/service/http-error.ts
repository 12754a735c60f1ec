import { EscapementError, type EscapementErrorCode } from 'escapement';

/** What a client is told instead of an answer. */
export class HttpError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What the library's errors are to a client. A queue is made by its first task: before that it is not there either. */
const STATUS: Partial<Record<EscapementErrorCode, number>> = {
  ERR_TASK_PAYLOAD: 400,
  ERR_TASK_NOT_FOUND: 404,
  ERR_QUEUE_NOT_FOUND: 404,
  ERR_CLIENT_CLOSED: 503,
  ERR_INSPECTOR_CLOSED: 503,
  ERR_BROKER_CLOSED: 503,
};

/** @returns undefined if it is our fault, and none of the client's business. */
export function httpErrorOf(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  if (!(error instanceof EscapementError)) return undefined;
  const status = STATUS[error.code];
  return status === undefined ? undefined : new HttpError(status, error.message);
}
