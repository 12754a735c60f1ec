import type { EnqueueEvent, ScheduleEntry } from '../broker/broker.ts';
import { SchedulerEnqueueEventSchema, SchedulerEntrySchema } from './asynq-messages.gen.ts';
import { decodeMessage, encodeMessage } from './protobuf.ts';
import { momentOf, timestampOf } from './wire-time.ts';

/** @throws EscapementError `ERR_WIRE_MESSAGE` - it cannot be encoded. */
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

/** @throws EscapementError `ERR_WIRE_MESSAGE` - the bytes are not a schedule entry. */
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

/** @throws EscapementError `ERR_WIRE_MESSAGE` - it cannot be encoded. */
export function encodeEnqueueEvent(event: EnqueueEvent): Uint8Array {
  return encodeMessage(SchedulerEnqueueEventSchema, {
    taskId: event.taskId,
    enqueueTime: timestampOf(event.atMs),
  });
}

/** @throws EscapementError `ERR_WIRE_MESSAGE` - the bytes are not an enqueue event. */
export function decodeEnqueueEvent(bytes: Uint8Array): EnqueueEvent {
  const event = decodeMessage(SchedulerEnqueueEventSchema, bytes);
  return { taskId: event.taskId, atMs: momentOf(event.enqueueTime) };
}
