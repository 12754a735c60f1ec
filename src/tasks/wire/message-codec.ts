import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { EscapementError } from '../../core/errors.ts';
import { DAY_MS, LAST_DATE_MS, SECOND_MS } from '../../core/units.ts';
import { KEY_HEADER, type TaskMessage } from '../task-options.ts';
import { TaskMessageSchema } from './asynq-messages.gen.ts';

/*
 * The field `msg` of a task in Redis. It is encoded for every task that is enqueued, so there is an encoder of our own, which takes
 * a third of the time of the library. Messages that are long, or have negative numbers or strings that are not well-formed Unicode,
 * are left to the library, which also makes the errors.
 */

/** @throws EscapementError `ERR_WIRE_MESSAGE` - the message cannot be encoded. */
export function encodeTaskMessage(message: TaskMessage): Buffer {
  return writeTaskMessage(message) ?? Buffer.from(encodeAnyTaskMessage(message));
}

/** Encodes any message, with the library. */
export function encodeAnyTaskMessage(message: TaskMessage): Uint8Array {
  return encodeMessage(TaskMessageSchema, {
    type: message.type,
    payload: message.payload,
    id: message.id,
    queue: message.queue,
    retry: message.maxRetry,
    retried: message.retried,
    // A handler may throw any string. If the failure could not be encoded, the task would keep its lease.
    errorMsg: message.lastError.toWellFormed(),
    timeout: secondsOf(wireTimeoutOf(message)),
    deadline: secondsOf(message.deadlineMs),
    uniqueKey: message.uniqueKey,
    lastFailedAt: secondsOf(message.lastFailedAtMs),
    retention: secondsOf(message.retentionMs),
    completedAt: secondsOf(message.completedAtMs),
    groupKey: message.group,
    headers: message.key === '' ? message.headers : { ...message.headers, [KEY_HEADER]: message.key },
  });
}

/** The payload is a view of the bytes. @throws EscapementError `ERR_WIRE_MESSAGE` - the bytes are not a task message. */
export function decodeTaskMessage(bytes: Uint8Array): TaskMessage {
  const message = decodeMessage(TaskMessageSchema, bytes);
  const timeoutMs = msOf(message.timeout);
  const key = message.headers[KEY_HEADER] ?? '';
  return {
    id: message.id,
    type: message.type,
    queue: message.queue,
    payload: message.payload,
    headers: Object.freeze(key === '' ? message.headers : withoutKey(message.headers)), // handlers receive it
    key,
    maxRetry: message.retry,
    retried: message.retried,
    lastError: message.errorMsg,
    lastFailedAtMs: msOf(message.lastFailedAt),
    timeoutMs: timeoutMs < ANY_TIME_MS ? timeoutMs : 0,
    deadlineMs: msOf(message.deadline),
    uniqueKey: message.uniqueKey,
    retentionMs: msOf(message.retention),
    completedAtMs: msOf(message.completedAt),
    group: message.groupKey,
  };
}

function withoutKey({ [KEY_HEADER]: _key, ...headers }: Record<string, string>): Record<string, string> {
  return headers;
}

const scratch = Buffer.allocUnsafeSlow(16_384);

/** A UTF-16 code unit is at most three bytes of UTF-8; tags, lengths and numbers of a message take less than `OTHER_BYTES`. */
const BYTES_PER_CHARACTER = 3;
const OTHER_BYTES = 256;

/** A loop copies a string up to this length faster than a call of the host does. */
const SHORT = 64;

export const MAX_INT32 = 2 ** 31 - 1;
const VARINT = 0;
const LENGTH_DELIMITED = 2;

let at = 0;
let isUnusual = false;

/** Returns the bytes that the library would write; undefined if the message must be left to the library. */
export function writeTaskMessage(message: TaskMessage): Buffer | undefined {
  if (greatestSizeOf(message) > scratch.length) return undefined;
  at = 0;
  isUnusual = false;
  text(1, message.type);
  bytes(2, message.payload);
  text(3, message.id);
  text(4, message.queue);
  integer(5, message.maxRetry, MAX_INT32);
  integer(6, message.retried, MAX_INT32);
  text(7, message.lastError);
  seconds(8, wireTimeoutOf(message));
  seconds(9, message.deadlineMs);
  text(10, message.uniqueKey);
  seconds(11, message.lastFailedAtMs);
  seconds(12, message.retentionMs);
  seconds(13, message.completedAtMs);
  text(14, message.group);
  for (const name of Object.keys(message.headers)) header(15, name, message.headers[name]);
  if (message.key !== '') header(15, KEY_HEADER, message.key);
  return isAsUsual() ? Buffer.from(scratch.subarray(0, at)) : undefined;
}

function greatestSizeOf(message: TaskMessage): number {
  const { type, payload, id, queue, lastError, uniqueKey, group, headers, key } = message;
  let characters =
    type.length + id.length + queue.length + lastError.length + uniqueKey.length + group.length + key.length;
  let others = OTHER_BYTES;
  for (const name of Object.keys(headers)) {
    characters += name.length + (headers[name]?.length ?? 0);
    others += OTHER_BYTES;
  }
  return payload.length + others + characters * BYTES_PER_CHARACTER;
}

/** A function, so that TypeScript does not narrow the variable. */
function isAsUsual(): boolean {
  return !isUnusual;
}

function text(field: number, value: string): void {
  if (value !== '') string(field, value);
}

function string(field: number, value: string): void {
  tag(field, LENGTH_DELIMITED);
  const { length } = value;
  if (length <= SHORT) {
    scratch[at++] = length; // one byte below 128
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code >= 128) {
        at -= i + 1;
        longString(value);
        return;
      }
      scratch[at++] = code;
    }
  } else longString(value);
}

function longString(value: string): void {
  if (!value.isWellFormed()) isUnusual = true;
  varint(Buffer.byteLength(value));
  at += scratch.write(value, at);
}

function bytes(field: number, value: Uint8Array): void {
  if (value.length === 0) return;
  tag(field, LENGTH_DELIMITED);
  varint(value.length);
  scratch.set(value, at);
  at += value.length;
}

/** An entry of a map is a message inside the message: its length comes first. */
function header(field: number, name: string, value: unknown): void {
  if (typeof value !== 'string') {
    isUnusual = true;
    return;
  }
  tag(field, LENGTH_DELIMITED);
  const [nameBytes, valueBytes] = [Buffer.byteLength(name), Buffer.byteLength(value)];
  varint(2 + sizeOfVarint(nameBytes) + sizeOfVarint(valueBytes) + nameBytes + valueBytes);
  string(1, name);
  string(2, value);
}

/** Rounds up, as `secondsOf` does. */
function seconds(field: number, ms: number): void {
  integer(field, Math.ceil(ms / SECOND_MS), Number.MAX_SAFE_INTEGER);
}

function integer(field: number, value: number, max: number): void {
  if (value === 0) return;
  if (!(Number.isInteger(value) && value > 0 && value <= max)) {
    isUnusual = true;
    return;
  }
  tag(field, VARINT);
  varint(value);
}

function tag(field: number, type: number): void {
  scratch[at++] = (field << 3) | type; // one byte for fields up to 15
}

function varint(value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) scratch[at++] = (rest % 128) | 128;
  scratch[at++] = rest;
}

/** @param value - less than the scratch memory has bytes. */
function sizeOfVarint(value: number): number {
  return value < 128 ? 1 : 2;
}

/* Any message of protobuf. */

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
 * asynq's whole seconds. Rounds up: a time, so that no task is due early; a duration, so that none becomes 0, which means "none" on
 * both sides.
 */

/**
 * The timeout that is written for "no limit": a hundred years. asynq logs an error for a message with neither timeout nor deadline,
 * and limits its run to half an hour.
 */
const ANY_TIME_MS = 36_525 * DAY_MS;

/** Returns the timeout that is written, in milliseconds. */
function wireTimeoutOf({ timeoutMs, deadlineMs }: TaskMessage): number {
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

/** Returns the same number. @throws EscapementError `ERR_WIRE_MESSAGE` - it is not finite. */
export function finite(ms: number): number {
  if (!Number.isFinite(ms)) throw wireError(`${ms} ms cannot be encoded: it is not a finite number`);
  return ms;
}

/** Go programs write later times for "never". */
export function withinDates(ms: number): number {
  return Math.max(-LAST_DATE_MS, Math.min(ms, LAST_DATE_MS));
}
