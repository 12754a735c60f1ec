import { DAY_MS, utcDay } from '../../../core/units.ts';
import { TASK_STATES, type TaskState } from '../../task-state.ts';
import type { Operations } from '../broker-base.ts';
import { MEMORY_SAMPLE } from '../broker-settings.ts';
import type { KeyStats, TaskRecord } from '../broker.ts';
import { PayloadOnDisk } from './journaled-row.ts';
import { listOf, type QueueState } from './queue-state.ts';
import type { TaskList, TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/** Returns a copy of a row for callers outside the broker. @param wallNowMs - the wall clock's time, if the caller has read it. */
export function recordOf({ clock }: TaskStore, row: TaskRow, wallNowMs?: number): TaskRecord {
  const { message, atMs, result, progress } = row;
  const { state } = listOf(row);
  const isWaiting = state === 'scheduled' || state === 'retry';
  return {
    message,
    state,
    nextProcessAtMs: state === 'pending' ? (wallNowMs ?? clock.wallNow()) : isWaiting ? atMs : 0,
    result,
    progress,
    isOrphaned: state === 'active' && atMs <= clock.now(),
  };
}

/** Bytes of payloads that a piece of a scan reads from the disk, except for the last one. */
const MAX_SCANNED_BYTES = 1_048_576;

export const INSPECTION = {
  queues: (store) => [...store.queues.keys()].sort(),

  queueStats(store, name) {
    const queue = store.queue(name);
    const wallNowMs = store.clock.wallNow();
    const { pending } = queue;
    const { first, oldestRunnableMs = wallNowMs } = pending;
    const today = queue.days.of(wallNowMs, 0);
    return {
      queue: name,
      counts: countsOf(queue),
      groups: queue.groups.size,
      latencyMs: first === undefined ? 0 : Math.max(wallNowMs - first.atMs, 0),
      runnableMs: Math.max(wallNowMs - oldestRunnableMs, 0),
      held: pending.held(),
      memoryBytes: memoryBytesOf(queue),
      processed: today.processed,
      failed: today.failed,
      processedTotal: queue.days.processedTotal,
      failedTotal: queue.days.failedTotal,
      isPaused: queue.isPaused,
      atMs: wallNowMs,
    };
  },

  history(store, name, days) {
    const queue = store.queue(name);
    const wallNowMs = store.clock.wallNow();
    return Array.from({ length: days }, (_, daysAgo) => {
      const { processed, failed } = queue.days.of(wallNowMs, daysAgo);
      return { queue: name, date: utcDay(wallNowMs - daysAgo * DAY_MS), processed, failed };
    });
  },

  /** O(keys before the page). */
  keys(store, name, page) {
    const { pending } = store.queue(name);
    const keys: KeyStats[] = [];
    let skip = (page.page - 1) * page.size;
    for (const tasks of pending.keys()) {
      const { key, size, active } = tasks;
      if (size + active === 0 || skip-- > 0) continue;
      const [heldBy, againInMs] = [pending.keyHeldBy(tasks), pending.keyAgainInMs(tasks)];
      keys.push({ key, pending: size, active, heldBy, againInMs });
      if (keys.length === page.size) break;
    }
    return keys;
  },

  task: (store, queue, id) => recordOf(store, store.row(queue, id)),

  /** O(rows before the page), less for scheduled and retry tasks: see `RowsByTime`. */
  tasks(store, name, state, page, group) {
    const queue = store.queue(name);
    const skip = (page.page - 1) * page.size;
    const isByTime = state === 'scheduled' || state === 'retry';
    const rows = isByTime
      ? queue.lists[state].byTime.slice(skip, page.size)
      : slice(queue.listsWithSets(state, group), skip, page.size);
    return rows.map((row) => recordOf(store, row));
  },

  /** The position is an iterator over the index of the queue, which goes on when rows are added and removed. */
  scan(store, name, states, limit, from) {
    const rows = (from ?? store.queue(name).rows.values()) as Iterator<TaskRow, void>;
    const wanted = new Set(states);
    const wallNowMs = store.clock.wallNow();
    const tasks: TaskRecord[] = [];
    let bytesOnDisk = 0;
    for (let looked = 0; looked < limit && bytesOnDisk < MAX_SCANNED_BYTES; looked++) {
      const { value: row, done } = rows.next();
      if (done === true) return { tasks, next: undefined };
      if (row.list === undefined || !wanted.has(row.list.state)) continue;
      const { payload } = row.message;
      if (payload instanceof PayloadOnDisk) bytesOnDisk += payload.where.length;
      tasks.push(recordOf(store, row, wallNowMs));
    }
    return { tasks, next: rows };
  },
} satisfies Partial<Operations<TaskStore>>;

function slice(lists: Iterable<TaskList>, skip: number, count: number): TaskRow[] {
  const rows: TaskRow[] = [];
  let left = skip;
  for (const list of lists) {
    if (left >= list.size) {
      left -= list.size;
      continue;
    }
    for (const row of list) {
      if (left > 0) left--;
      else if (rows.push(row) === count) return rows;
    }
  }
  return rows;
}

function countsOf(queue: QueueState): Record<TaskState, number> {
  const counts = {} as Record<TaskState, number>;
  for (const state of TASK_STATES) counts[state] = queue.count(state);
  return counts;
}

/**
 * Memory of a task without its content: its row, its message, its entries among the ids and in the timer. Measured in
 * test/leak/broker.leak.slow.test.ts.
 */
const BYTES_PER_TASK = 350;

/** The object around the bytes of a payload, and the buffer behind it. */
const BYTES_PER_PAYLOAD = 100;

/** A name and a value in an object whose shape others share. */
const BYTES_PER_HEADER = 64;

/** Estimates the memory of a queue, and what its payloads take on the disk, from a sample of its tasks. O(groups), however many tasks there are. */
function memoryBytesOf(queue: QueueState): number {
  let bytes = 0;
  for (const state of TASK_STATES) {
    for (const list of queue.listsWithSets(state)) bytes += bytesOf(list);
  }
  return Math.round(bytes);
}

function bytesOf(list: TaskList): number {
  let sampled = 0;
  let bytes = 0;
  for (const row of list) {
    bytes += bytesOfRow(row);
    if (++sampled === MEMORY_SAMPLE) break;
  }
  return sampled === 0 ? 0 : (bytes / sampled) * list.size;
}

function bytesOfRow({ message, result, progress }: TaskRow): number {
  const { id, payload, headers, uniqueKey, lastError } = message;
  const payloadBytes = payload instanceof PayloadOnDisk ? payload.where.length : payload.byteLength;
  // V8 keeps a string of Latin characters, such as an id, in a byte each.
  const characters = id.length + uniqueKey.length + lastError.length + (progress?.length ?? 0);
  let bytes = BYTES_PER_TASK + payloadBytes + (result?.byteLength ?? 0) + characters;
  if (payloadBytes > 0) bytes += BYTES_PER_PAYLOAD;
  for (const name in headers) bytes += BYTES_PER_HEADER + (headers[name]?.length ?? 0);
  return bytes;
}
