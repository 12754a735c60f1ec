import type { TaskRecord } from './broker/broker.ts';
import type { TaskState } from './task-state.ts';

/** A task as it was when somebody looked. */
export interface TaskInfo {
  /** Unique in its queue. */
  readonly id: string;
  /** Where it is. */
  readonly queue: string;
  /** Which handler it is for. */
  readonly type: string;
  /** Bytes, which must not be changed; empty if there is none. */
  readonly payload: Uint8Array;
  /** Passed on to the handler. */
  readonly headers: Readonly<Record<string, string>>;
  /** Where it is in its life. */
  readonly state: TaskState;
  /** Failures that are tried again. */
  readonly maxRetry: number;
  /** Failures until now. */
  readonly retried: number;
  /** Of the last failure; empty if there is none. */
  readonly lastError: string;
  /** Undefined if it never has. */
  readonly lastFailedAt: Date | undefined;
  /** Milliseconds a run may take; 0 for any time. */
  readonly timeoutMs: number;
  /** When the last run must be over; undefined for any time. */
  readonly deadline: Date | undefined;
  /** Undefined if it has none. */
  readonly group: string | undefined;
  /** When it is processed next; of pending ones, the moment it was looked at. Undefined if it is not. */
  readonly nextProcessAt: Date | undefined;
  /** Active, and whoever ran it is gone. */
  readonly isOrphaned: boolean;
  /** How long it is kept when it is done, in milliseconds. */
  readonly retentionMs: number;
  /** Undefined if it is not. */
  readonly completedAt: Date | undefined;
  /** What its handler has written; undefined if nothing. */
  readonly result: Uint8Array | undefined;
  /** What the handler has last said of its progress. */
  readonly progress: unknown;
}

export function taskInfoOf(record: TaskRecord): TaskInfo {
  const { message, state, nextProcessAtMs, result, progress, isOrphaned } = record;
  const { id, queue, type, payload, headers, maxRetry, retried, lastError, timeoutMs, retentionMs } = message;
  return {
    id,
    queue,
    type,
    payload,
    headers,
    state,
    maxRetry,
    retried,
    lastError,
    lastFailedAt: dateOf(message.lastFailedAtMs),
    timeoutMs,
    deadline: dateOf(message.deadlineMs),
    group: message.group === '' ? undefined : message.group,
    nextProcessAt: dateOf(nextProcessAtMs),
    isOrphaned,
    retentionMs,
    completedAt: dateOf(message.completedAtMs),
    result,
    progress: progressOf(progress),
  };
}

/** Another client may have written what is no JSON: that must not hide the task, nor those beside it. */
function progressOf(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Of wall-clock milliseconds, where 0 is none. */
export function dateOf(wallMs: number): Date | undefined {
  return wallMs === 0 ? undefined : new Date(wallMs);
}
