import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { DAY_MS, LAST_DATE_MS, SECOND_MS } from '../../core/units.ts';
import type { TaskMessage } from '../task-message.ts';
import { wireError } from './wire-error.ts';

/*
 * Our milliseconds, asynq's whole seconds, and protobuf's Timestamp. Everything is rounded up: a time, so that nothing
 * comes early; a duration, so that none becomes 0, which is "none" on both sides.
 */

const NANOS_PER_MS = 1_000_000;

/** January 1 of year 1, which Go prints as nothing. Without the field Go would read 1970, and print that. */
const GO_ZERO_SECONDS = -62_135_596_800n;

/**
 * A timeout that says "any time", as Go has no word for it: a message with neither timeout nor deadline is an error in its
 * eyes, and may run for half an hour. A hundred years.
 */
export const ANY_TIME_MS = 36_525 * DAY_MS;

/** The timeout that is written, in milliseconds. */
export function wireTimeoutOf({ timeoutMs, deadlineMs }: TaskMessage): number {
  return timeoutMs === 0 && deadlineMs === 0 ? ANY_TIME_MS : Math.min(timeoutMs, ANY_TIME_MS);
}

/** A moment or a duration, in whole seconds. */
export function secondsOf(ms: number): bigint {
  return BigInt(Math.ceil(finite(ms) / SECOND_MS));
}

/** The other way round. */
export function msOf(seconds: bigint): number {
  return withinDates(Number(seconds) * SECOND_MS);
}

/** A moment; 0, which is never, as Go's zero time. */
export function timestampOf(ms: number): Pick<Timestamp, 'seconds' | 'nanos'> {
  if (ms === 0) return { seconds: GO_ZERO_SECONDS, nanos: 0 };
  const wholeMs = Math.ceil(finite(ms));
  const seconds = Math.floor(wholeMs / SECOND_MS);
  return { seconds: BigInt(seconds), nanos: (wholeMs - seconds * SECOND_MS) * NANOS_PER_MS };
}

/** The other way round; 0 also for what is not there. */
export function momentOf(timestamp: Timestamp | undefined): number {
  if (timestamp === undefined || timestamp.seconds <= GO_ZERO_SECONDS) return 0;
  return withinDates(Number(timestamp.seconds) * SECOND_MS + Math.ceil(timestamp.nanos / NANOS_PER_MS));
}

function finite(ms: number): number {
  if (!Number.isFinite(ms)) throw wireError(`${ms} ms cannot be written: that is no time`);
  return ms;
}

/** A later time is Go's way to mean "never". */
function withinDates(ms: number): number {
  return Math.max(-LAST_DATE_MS, Math.min(ms, LAST_DATE_MS));
}
