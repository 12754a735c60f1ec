import { EscapementError } from '../../core/errors.ts';

/** What is kept is no message, or something cannot be said as one. */
export function wireError(claim: string, cause?: unknown): EscapementError {
  if (!(cause instanceof Error)) return new EscapementError('ERR_WIRE_MESSAGE', claim);
  return new EscapementError('ERR_WIRE_MESSAGE', `${claim}: ${cause.message}`, { cause });
}
