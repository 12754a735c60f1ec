import { KEY_HEADER } from '../argument-checks.ts';
import type { EnqueueEvent, ScheduleEntry, ServerState, WorkerState } from '../broker/broker.ts';
import type { TaskMessage } from '../task-options.ts';
import {
  SchedulerEnqueueEventSchema,
  SchedulerEntrySchema,
  ServerInfoSchema,
  TaskMessageSchema,
  WorkerInfoSchema,
} from './asynq-messages.gen.ts';
import {
  ANY_TIME_MS,
  decodeMessage,
  encodeMessage,
  momentOf,
  msOf,
  secondsOf,
  timestampOf,
  wireError,
  wireTimeoutOf,
} from './protobuf.ts';

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

const MAX_INT32 = 2 ** 31 - 1;
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

function greatestSizeOf({
  type,
  payload,
  id,
  queue,
  lastError,
  uniqueKey,
  group,
  headers,
  key,
}: TaskMessage): number {
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
  scratch[at++] = (field << 3) | type; // one byte for fields up to 15
}

function varint(value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) scratch[at++] = (rest % 128) | 128;
  scratch[at++] = rest;
}

function sizeOfVarint(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : 3;
}

/* What servers and schedulers announce. Each function throws the errors of `encodeMessage` or `decodeMessage`. */

/** A server without its workers, which have their own key. */
export type ServerHead = Omit<ServerState, 'workers'>;

export function encodeServer(server: ServerState): Uint8Array {
  return encodeMessage(ServerInfoSchema, {
    host: server.host,
    pid: server.pid,
    serverId: server.id,
    concurrency: int32(server.concurrency),
    queues: Object.fromEntries(
      Object.entries(server.queues).map(([name, priority]) => [name, int32(priority)]),
    ),
    strictPriority: server.strictPriority,
    status: server.status,
    startTime: timestampOf(server.startedAtMs),
    activeWorkerCount: server.workers.length,
  });
}

export function decodeServer(bytes: Uint8Array): ServerHead {
  const info = decodeMessage(ServerInfoSchema, bytes);
  return {
    id: info.serverId,
    host: info.host,
    pid: info.pid,
    concurrency: info.concurrency,
    queues: info.queues,
    strictPriority: info.strictPriority,
    status: statusOf(info.status),
    startedAtMs: momentOf(info.startTime),
  };
}

/** @param server - the server of the worker. */
export function encodeWorker(server: ServerHead, worker: WorkerState): Uint8Array {
  return encodeMessage(WorkerInfoSchema, {
    host: server.host,
    pid: server.pid,
    serverId: server.id,
    taskId: worker.taskId,
    taskType: worker.taskType,
    taskPayload: worker.payload,
    queue: worker.queue,
    startTime: timestampOf(worker.startedAtMs),
    deadline: timestampOf(worker.deadlineMs),
  });
}

export function decodeWorker(bytes: Uint8Array): WorkerState {
  const info = decodeMessage(WorkerInfoSchema, bytes);
  return {
    taskId: info.taskId,
    taskType: info.taskType,
    payload: info.taskPayload,
    queue: info.queue,
    startedAtMs: momentOf(info.startTime),
    deadlineMs: momentOf(info.deadline),
  };
}

/** The concurrency of a server may be `Infinity`. */
function int32(count: number): number {
  return Math.min(count, MAX_INT32);
}

/** A Go server that has not started yet has the status `new`: it takes no tasks. */
function statusOf(status: string): ServerState['status'] {
  if (status === 'active' || status === 'stopped' || status === 'closed') return status;
  if (status === 'new') return 'stopped';
  throw wireError(`asynq.ServerInfo has the unknown status '${status}'`);
}

export function encodeScheduleEntry(entry: ScheduleEntry): Uint8Array {
  return encodeMessage(SchedulerEntrySchema, {
    id: entry.id,
    spec: entry.spec,
    taskType: entry.taskType,
    taskPayload: entry.payload,
    enqueueOptions: [...entry.options],
    nextEnqueueTime: timestampOf(entry.nextEnqueueAtMs),
    prevEnqueueTime: timestampOf(entry.prevEnqueueAtMs),
  });
}

export function decodeScheduleEntry(bytes: Uint8Array): ScheduleEntry {
  const entry = decodeMessage(SchedulerEntrySchema, bytes);
  return {
    id: entry.id,
    spec: entry.spec,
    taskType: entry.taskType,
    payload: entry.taskPayload,
    options: entry.enqueueOptions,
    nextEnqueueAtMs: momentOf(entry.nextEnqueueTime),
    prevEnqueueAtMs: momentOf(entry.prevEnqueueTime),
  };
}

export function encodeEnqueueEvent(event: EnqueueEvent): Uint8Array {
  return encodeMessage(SchedulerEnqueueEventSchema, {
    taskId: event.taskId,
    enqueueTime: timestampOf(event.atMs),
  });
}

export function decodeEnqueueEvent(bytes: Uint8Array): EnqueueEvent {
  const event = decodeMessage(SchedulerEnqueueEventSchema, bytes);
  return { taskId: event.taskId, atMs: momentOf(event.enqueueTime) };
}
