import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { NANOS_PER_MS, SECOND_MS } from '../../core/units.ts';
import type { EnqueueEvent, ScheduleEntry, ServerHead, ServerState, WorkerState } from '../broker/broker.ts';
import {
  SchedulerEnqueueEventSchema,
  SchedulerEntrySchema,
  ServerInfoSchema,
  WorkerInfoSchema,
} from './asynq-messages.gen.ts';
import { decodeMessage, encodeMessage, finite, MAX_INT32, wireError, withinDates } from './message-codec.ts';

/* What servers and schedulers announce. Each function throws the errors of `encodeMessage` or `decodeMessage`. */

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

/** The workers have their own key. */
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
    startedAtMs: msOfTimestamp(info.startTime),
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
    startedAtMs: msOfTimestamp(info.startTime),
    deadlineMs: msOfTimestamp(info.deadline),
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
    nextEnqueueAtMs: msOfTimestamp(entry.nextEnqueueTime),
    prevEnqueueAtMs: msOfTimestamp(entry.prevEnqueueTime),
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
  return { taskId: event.taskId, atMs: msOfTimestamp(event.enqueueTime) };
}

/* Times as protobuf's Timestamp. */

/** January 1 of year 1, Go's zero time. If the field were missing, Go would read, and show, January 1 of 1970. */
const GO_ZERO_SECONDS = -62_135_596_800n;

/** Converts a time; 0, which means never, to Go's zero time. */
export function timestampOf(ms: number): Pick<Timestamp, 'seconds' | 'nanos'> {
  if (ms === 0) return { seconds: GO_ZERO_SECONDS, nanos: 0 };
  const wholeMs = Math.ceil(finite(ms));
  const seconds = Math.floor(wholeMs / SECOND_MS);
  return { seconds: BigInt(seconds), nanos: (wholeMs - seconds * SECOND_MS) * NANOS_PER_MS };
}

/** The inverse of {@link timestampOf}. Returns 0 for a missing field, too. */
export function msOfTimestamp(timestamp: Timestamp | undefined): number {
  if (timestamp === undefined || timestamp.seconds <= GO_ZERO_SECONDS) return 0;
  return withinDates(Number(timestamp.seconds) * SECOND_MS + Math.ceil(timestamp.nanos / NANOS_PER_MS));
}
