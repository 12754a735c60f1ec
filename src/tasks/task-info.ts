import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import type { TaskRecord } from './broker/broker.ts';
import { parseJson } from './payload.ts';
import { bytesJson, printBytes, printFilled } from './show-bytes.ts';
import type { TaskState } from './task-state.ts';

/** A task as it was when it was read from the broker. */
export class TaskInfo {
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

  /** @internal */
  constructor(record: TaskRecord) {
    const { message, state, nextProcessAtMs, result, progress, isOrphaned } = record;
    this.id = message.id;
    this.queue = message.queue;
    this.type = message.type;
    this.payload = message.payload;
    this.headers = message.headers;
    this.state = state;
    this.maxRetry = message.maxRetry;
    this.retried = message.retried;
    this.lastError = message.lastError;
    this.lastFailedAt = dateOf(message.lastFailedAtMs);
    this.timeoutMs = message.timeoutMs;
    this.deadline = dateOf(message.deadlineMs);
    this.group = message.group === '' ? undefined : message.group;
    this.nextProcessAt = dateOf(nextProcessAtMs);
    this.isOrphaned = isOrphaned;
    this.retentionMs = message.retentionMs;
    this.completedAt = dateOf(message.completedAtMs);
    this.result = result;
    this.progress = progressOf(progress);
  }

  /**
   * Parses the payload as JSON.
   *
   * @throws EscapementError `ERR_TASK_PAYLOAD` - the payload is not JSON, or there is none.
   */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller declares what it expects
  json<T = unknown>(): T {
    return parseJson(`payload of ${nameOf(this)}`, this.payload) as T;
  }

  /**
   * Parses the result as JSON. Returns undefined if the handler has written none.
   *
   * @throws EscapementError `ERR_TASK_PAYLOAD` - the result is not JSON.
   */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- as above
  resultJson<T = unknown>(): T | undefined {
    return this.result === undefined ? undefined : (parseJson(`result of ${nameOf(this)}`, this.result) as T);
  }

  /** Its fields, for `JSON.stringify`. The payload and the result are text, or base64 if they are not UTF-8: see `payloadEncoding`. */
  toJSON(): object {
    const { payload, result } = this;
    return Object.assign({}, this, bytesJson('payload', payload), result && bytesJson('result', result));
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      payload: printBytes(this.payload),
      headers: printFilled(this.headers),
      lastError: printFilled(this.lastError),
      timeoutMs: this.timeoutMs === 0 ? undefined : this.timeoutMs,
      isOrphaned: this.isOrphaned ? true : undefined,
      retentionMs: this.retentionMs === 0 ? undefined : this.retentionMs,
      result: printBytes(this.result),
    }));
  }
}

function nameOf({ id, queue }: TaskInfo): string {
  return `task '${id}' of queue '${queue}'`;
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
