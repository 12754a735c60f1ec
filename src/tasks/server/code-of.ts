import { EscapementError, type EscapementErrorCode } from '../../core/errors.ts';

/** The code of one of our errors. */
export function codeOf(error: unknown): EscapementErrorCode | undefined {
  return error instanceof EscapementError ? error.code : undefined;
}
