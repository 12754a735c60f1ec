import { EscapementError } from '../../core/errors.ts';

/** Whether the way to the broker has failed: it may work the next time. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof EscapementError && error.code === 'ERR_BROKER_UNAVAILABLE';
}
