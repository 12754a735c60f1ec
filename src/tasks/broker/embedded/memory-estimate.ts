import { TASK_STATES } from '../../task-state.ts';
import type { QueueState } from './queue-state.ts';
import type { TaskList } from './task-list.ts';
import type { TaskRow } from './task-row.ts';

/**
 * What a task takes beside what it says: its row, its message, its place among the ids and in the timer. Measured: test/leak/broker.leak.slow.test.ts.
 */
const BYTES_PER_TASK = 350;

/** The object around the bytes of a payload, and what it takes them from. */
const BYTES_PER_PAYLOAD = 100;

/** Of an id of Latin letters and so on, which is what V8 keeps in a byte each. */
const BYTES_PER_CHARACTER = 1;

/** A name and a value in an object that others share the shape of. */
const BYTES_PER_HEADER = 64;

/** Rows of a list that stand for the rest, as asynq does it. */
const SAMPLED = 20;

/** About how much of memory a queue takes, from a sample of its tasks: O(groups), however many tasks there are. */
export function memoryBytesOf(queue: QueueState): number {
  let bytes = 0;
  for (const state of TASK_STATES) {
    for (const list of queue.listsOf(state)) bytes += bytesOf(list);
  }
  for (const { list } of queue.sets.values()) bytes += bytesOf(list);
  return Math.round(bytes);
}

function bytesOf(list: TaskList): number {
  let sampled = 0;
  let bytes = 0;
  for (const row of list) {
    bytes += bytesOfRow(row);
    if (++sampled === SAMPLED) break;
  }
  return sampled === 0 ? 0 : (bytes / sampled) * list.size;
}

function bytesOfRow({ message, result, progress }: TaskRow): number {
  const { id, payload, headers, uniqueKey, lastError } = message;
  const characters = id.length + uniqueKey.length + lastError.length + (progress?.length ?? 0);
  let bytes =
    (payload.byteLength > 0 ? BYTES_PER_PAYLOAD : 0) +
    BYTES_PER_TASK +
    payload.byteLength +
    (result?.byteLength ?? 0) +
    characters * BYTES_PER_CHARACTER;
  for (const name in headers) bytes += BYTES_PER_HEADER + (headers[name]?.length ?? 0) * BYTES_PER_CHARACTER;
  return bytes;
}
