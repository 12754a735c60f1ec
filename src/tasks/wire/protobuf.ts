import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { EscapementError } from '../../core/errors.ts';
import { DAY_MS, LAST_DATE_MS, NANOS_PER_MS, SECOND_MS } from '../../core/units.ts';
import type { TaskMessage } from '../task-options.ts';

/** @throws EscapementError `ERR_WIRE_MESSAGE` - a string is not well-formed Unicode, or a number does not fit its field. */
export function encodeMessage<D extends DescMessage>(schema: D, message: MessageInitShape<D>): Uint8Array {
  requireUnicode(message, schema.typeName);
  try {
    return toBinary(schema, create(schema, message));
  } catch (cause) {
    throw wireError(`cannot be encoded as ${schema.typeName}`, cause);
  }
}

/**
 * Drops fields that asynq does not define, as Go does when it writes a message again.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - the bytes are not such a message, or are cut off.
 */
export function decodeMessage<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw wireError(`cannot decode ${bytes.length} bytes as ${schema.typeName}`, cause);
  }
}

/**
 * Checks the strings of a message, of its lists and of its maps. The library writes U+FFFD for half a surrogate pair without an
 * error, and two ids could become one.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - a string is not well-formed Unicode.
 */
function requireUnicode(message: object, typeName: string): void {
  for (const [name, value] of Object.entries(message) as [string, unknown][]) {
    if (!name.isWellFormed()) throw notUnicode(typeName, name);
    if (typeof value === 'string') {
      if (!value.isWellFormed()) throw notUnicode(typeName, name);
    } else if (isNested(value)) requireUnicode(value, `${typeName}.${name}`);
  }
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
}

function notUnicode(typeName: string, name: string): Error {
  return wireError(`cannot be encoded as ${typeName}: '${name.toWellFormed()}' is not well-formed Unicode`);
}

/** The error for bytes that cannot be decoded, or a value that cannot be encoded. */
export function wireError(claim: string, cause?: unknown): EscapementError {
  if (!(cause instanceof Error)) return new EscapementError('ERR_WIRE_MESSAGE', claim);
  return new EscapementError('ERR_WIRE_MESSAGE', `${claim}: ${cause.message}`, { cause });
}

/*
 * Conversion between milliseconds, asynq's whole seconds and protobuf's Timestamp. Rounds up: a time, so that no task is due early;
 * a duration, so that none becomes 0, which means "none" on both sides.
 */

/** January 1 of year 1, Go's zero time. If the field were missing, Go would read, and show, January 1 of 1970. */
const GO_ZERO_SECONDS = -62_135_596_800n;

/**
 * The timeout that is written for "no limit": a hundred years. asynq logs an error for a message with neither timeout nor deadline,
 * and limits its run to half an hour.
 */
export const ANY_TIME_MS = 36_525 * DAY_MS;

/** Returns the timeout that is written, in milliseconds. */
export function wireTimeoutOf({ timeoutMs, deadlineMs }: TaskMessage): number {
  return timeoutMs === 0 && deadlineMs === 0 ? ANY_TIME_MS : Math.min(timeoutMs, ANY_TIME_MS);
}

/** Converts a time or a duration to whole seconds. */
export function secondsOf(ms: number): bigint {
  return BigInt(Math.ceil(finite(ms) / SECOND_MS));
}

/** The inverse of {@link secondsOf}. */
export function msOf(seconds: bigint): number {
  return withinDates(Number(seconds) * SECOND_MS);
}

/** Converts a time; 0, which means never, to Go's zero time. */
export function timestampOf(ms: number): Pick<Timestamp, 'seconds' | 'nanos'> {
  if (ms === 0) return { seconds: GO_ZERO_SECONDS, nanos: 0 };
  const wholeMs = Math.ceil(finite(ms));
  const seconds = Math.floor(wholeMs / SECOND_MS);
  return { seconds: BigInt(seconds), nanos: (wholeMs - seconds * SECOND_MS) * NANOS_PER_MS };
}

/** The inverse of {@link timestampOf}. Returns 0 for a missing field, too. */
export function momentOf(timestamp: Timestamp | undefined): number {
  if (timestamp === undefined || timestamp.seconds <= GO_ZERO_SECONDS) return 0;
  return withinDates(Number(timestamp.seconds) * SECOND_MS + Math.ceil(timestamp.nanos / NANOS_PER_MS));
}

function finite(ms: number): number {
  if (!Number.isFinite(ms)) throw wireError(`${ms} ms cannot be encoded: it is not a finite number`);
  return ms;
}

/** Go programs write later times for "never". */
function withinDates(ms: number): number {
  return Math.max(-LAST_DATE_MS, Math.min(ms, LAST_DATE_MS));
}
