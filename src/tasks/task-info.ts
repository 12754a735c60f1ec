import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import type { TaskRecord } from './broker/broker.ts';
import { bytesJson, parseJson, printBytes, printFilled } from './payload.ts';
import { StoredTask } from './task-options.ts';
import type { TaskState } from './task-state.ts';

/** A task as it was when it was read from the broker. */
export class TaskInfo extends StoredTask {
  /** State of the task. */
  readonly state: TaskState;
  /** When it last failed; undefined if it never did. */
  readonly lastFailedAt: Date | undefined;
  /** When it is processed next; for a pending task, when it was read. Undefined if it is not processed again. */
  readonly nextProcessAt: Date | undefined;
  /** When it was completed; undefined if it was not. */
  readonly completedAt: Date | undefined;
  /** When the last run must end; undefined for no limit. */
  readonly deadline: Date | undefined;
  /** Name of the group; undefined if there is none. */
  readonly group: string | undefined;
  /** Whether the task is active and its lease has ended: its server is lost. */
  readonly isOrphaned: boolean;
  /** The last progress that the handler reported; undefined if there is none. */
  readonly progress: unknown;
  /** Bytes that the handler wrote; undefined if there are none. */
  readonly result: Uint8Array | undefined;

  /** @internal */
  constructor({ message, state, nextProcessAtMs, result, progress, isOrphaned }: TaskRecord) {
    super(message);
    this.state = state;
    this.lastFailedAt = dateOf(message.lastFailedAtMs);
    this.nextProcessAt = dateOf(nextProcessAtMs);
    this.completedAt = dateOf(message.completedAtMs);
    this.deadline = dateOf(message.deadlineMs);
    this.group = message.group === '' ? undefined : message.group;
    this.isOrphaned = isOrphaned;
    this.progress = progressOf(progress);
    this.result = result;
  }

  /** Parses the payload as JSON. @throws EscapementError `ERR_TASK_PAYLOAD` - the payload is not JSON, or there is none. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller declares what it expects
  json<T = unknown>(): T {
    return parseJson(`payload of ${nameOf(this)}`, this.payload, 'TaskInfo.json') as T;
  }

  /**
   * Parses the result as JSON. Returns undefined if the handler has written none.
   *
   * @throws EscapementError `ERR_TASK_PAYLOAD` - the result is not JSON.
   */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- as above
  resultJson<T = unknown>(): T | undefined {
    const { result } = this;
    return result && (parseJson(`result of ${nameOf(this)}`, result, 'TaskInfo.resultJson') as T);
  }

  /** Returns its fields, for `JSON.stringify`. Payload and result are text, or base64 if they are not UTF-8: see `payloadEncoding`. */
  toJSON(): object {
    const { payload, result } = this;
    return Object.assign({}, this, bytesJson('payload', payload), result && bytesJson('result', result));
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...Object.fromEntries(
        Object.entries(this)
          .filter(isUnset)
          .map(([name]) => [name, undefined]),
      ),
      payload: printBytes(this.payload),
      headers: printFilled(this.headers),
      key: printFilled(this.key),
      lastError: printFilled(this.lastError),
      result: printBytes(this.result),
    }));
  }
}

function isUnset([name, value]: [string, unknown]): boolean {
  return value === false || (value === 0 && name.endsWith('Ms'));
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
