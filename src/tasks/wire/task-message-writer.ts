import type { TaskMessage } from '../task-message.ts';
import { wireTimeoutOf } from './wire-time.ts';

/*
 * Protobuf for the one message that is written for every task: a third of the time that the library takes for it. Whatever is
 * not as it nearly always is - long, negative, no Unicode - is left to the library, which also knows what to say of it.
 */

/** Where a message is put together. */
const scratch = Buffer.allocUnsafeSlow(16_384);

/** A character of UTF-16 is three bytes of UTF-8 at most; tags, lengths and numbers of a message take less than that. */
const BYTES_PER_CHARACTER = 3;
const OTHER_BYTES = 256;

/** A string up to that length is copied faster by us than by a call of the host. */
const SHORT = 64;

const MAX_INT32 = 2 ** 31 - 1;
const VARINT = 0;
const LENGTH_DELIMITED = 2;

let at = 0;
let isUnusual = false;

/** @returns what the library would write, in bytes of its own; undefined if that is for the library to do. */
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
  return isAsUsual() ? Buffer.from(scratch.subarray(0, at)) : undefined;
}

function greatestSizeOf({
  type,
  payload,
  id,
  queue,
  lastError,
  uniqueKey,
  group,
  headers,
}: TaskMessage): number {
  let characters =
    type.length + id.length + queue.length + lastError.length + uniqueKey.length + group.length;
  let others = OTHER_BYTES;
  for (const name of Object.keys(headers)) {
    characters += name.length + (headers[name]?.length ?? 0);
    others += OTHER_BYTES;
  }
  return payload.length + others + characters * BYTES_PER_CHARACTER;
}

/** A call, because the compiler does not see that it may have changed. */
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
    scratch[at++] = length; // less than 128: a byte
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

/** An entry of a map: a message of its own, whose length comes first. */
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

/** Up, as wire-time.ts has it. */
function seconds(field: number, ms: number): void {
  integer(field, Math.ceil(ms / 1_000), Number.MAX_SAFE_INTEGER);
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
  scratch[at++] = (field << 3) | type; // fields up to 15: a byte
}

function varint(value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) scratch[at++] = (rest % 128) | 128;
  scratch[at++] = rest;
}

function sizeOfVarint(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : 3;
}
