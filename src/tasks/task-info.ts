import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import type { TaskRecord } from './broker/broker.ts';
import { parseJson } from './payload.ts';
import { bytesJson, printBytes, printFilled } from './show-bytes.ts';
import type { TaskState } from './task-state.ts';

/** A task as it was when it was read from the broker. */
export class TaskInfo {
  /** Unique in its queue. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** Selects the handler. */
  readonly type: string;
  /** Its state. */
  readonly state: TaskState;
  /** Bytes, which must not be changed; empty if there is none. */
  readonly payload: Uint8Array;
  /** Number of failures after which it is tried again. */
  readonly maxRetry: number;
  /** Number of failures until now. */
  readonly retried: number;
  /** Message of the last failure; empty if there is none. */
  readonly lastError: string;
  /** When it failed last; undefined if it never did. */
  readonly lastFailedAt: Date | undefined;
  /** When it is processed next; for a pending task, when it was read. Undefined if it is not processed again. */
  readonly nextProcessAt: Date | undefined;
  /** When it was completed; undefined if it was not. */
  readonly completedAt: Date | undefined;
  /** How long a run may take, in milliseconds; 0 for any time. */
  readonly timeoutMs: number;
  /** When the last run must be over; undefined for any time. */
  readonly deadline: Date | undefined;
  /** How long it is kept when it is done, in milliseconds. */
  readonly retentionMs: number;
  /** Its group; undefined if it has none. */
  readonly group: string | undefined;
  /** Whether it is active and its lease is over: its server is lost. */
  readonly isOrphaned: boolean;
  /** The last progress that its handler reported; undefined if there is none. */
  readonly progress: unknown;
  /** Passed on to the handler. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes that its handler wrote; undefined if there are none. */
  readonly result: Uint8Array | undefined;

  /** @internal */
  constructor({ message, state, nextProcessAtMs, result, progress, isOrphaned }: TaskRecord) {
    this.id = message.id;
    this.queue = message.queue;
    this.type = message.type;
    this.state = state;
    this.payload = message.payload;
    this.maxRetry = message.maxRetry;
    this.retried = message.retried;
    this.lastError = message.lastError;
    this.lastFailedAt = dateOf(message.lastFailedAtMs);
    this.nextProcessAt = dateOf(nextProcessAtMs);
    this.completedAt = dateOf(message.completedAtMs);
    this.timeoutMs = message.timeoutMs;
    this.deadline = dateOf(message.deadlineMs);
    this.retentionMs = message.retentionMs;
    this.group = message.group === '' ? undefined : message.group;
    this.isOrphaned = isOrphaned;
    this.progress = progressOf(progress);
    this.headers = message.headers;
    this.result = result;
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

  /** Returns its fields, for `JSON.stringify`. Payload and result are text, or base64 if they are not UTF-8: see `payloadEncoding`. */
  toJSON(): object {
    const { payload, result } = this;
    return Object.assign({}, this, bytesJson('payload', payload), result && bytesJson('result', result));
  }

  /** @internal Returns what a console prints. */
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

/** Another client may have written something that is not JSON: the task and those beside it must still be readable. */
function progressOf(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Returns the date of wall-clock milliseconds, where 0 is none. */
export function dateOf(wallMs: number): Date | undefined {
  return wallMs === 0 ? undefined : new Date(wallMs);
}
