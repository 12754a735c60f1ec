import { EscapementError, withCode, wrongValue, type EscapementErrorCode } from '../../core/errors.ts';
import { checkOptions, oneOf, type OptionTable } from '../../core/options.ts';
import { requireBoolean, requireObject, requireString } from '../../core/validate.ts';
import { fieldsIn, requireText } from '../argument-checks.ts';
import type { TaskRecord } from '../broker/broker.ts';
import { bytesJson, bytesOfBase64 } from '../payload.ts';
import type { TaskInfo } from '../info.ts';
import {
  NO_TASK_OPTIONS,
  STORED_FIELDS,
  type StoredTask,
  TASK_OPTIONS,
  type TaskOptions,
} from '../task-options.ts';
import { isTaskState } from '../task-state.ts';
import { Task, type EnqueueRequest } from '../task.ts';

/*
 * The JSON of `POST /api/tasks`, which asynqmon does not have. A client with a URL sends it, and `tasksHandler` answers it:
 *
 *     { "tasks": [{ "type": "email:welcome", "payload": "{\"userId\":42}", "options": { "taskId": "…", "queue": "low" } }] }
 *     { "outcomes": [{ "task": { "id": "…", "queue": "low", "state": "pending", … } }] }
 *
 * An outcome is a task or an error, `{ "error": { "code", "message" } }`, in the order of the tasks. Options are those of `TaskOptions`,
 * with times in milliseconds since the epoch.
 */

/** Path of the API, below `/api`. */
export const ENQUEUE_PATH = '/tasks';

/** What became of one task. */
export type OutcomeJson = { readonly task: InfoJson } | { readonly error: ErrorJson };

interface ErrorJson {
  readonly code: string;
  readonly message: string;
}

// Tasks.

interface NewTaskJson {
  readonly type: string;
  /** Text, or base64 if the encoding is that; absent if the task has no payload. */
  readonly payload?: string | undefined;
  readonly payloadEncoding?: 'utf8' | 'base64' | undefined;
  readonly options?: TaskOptions | undefined;
}

const TASK_FIELDS = {
  type: [requireText],
  payload: [requireString, undefined],
  payloadEncoding: [oneOf('utf8', 'base64'), 'utf8'],
  options: [requireObject, NO_TASK_OPTIONS],
} satisfies OptionTable<NewTaskJson>;

export function newTaskToJson({ task, options }: EnqueueRequest): NewTaskJson {
  const json: Record<string, unknown> = {};
  for (const [name, [, , { kind }]] of Object.entries(TASK_OPTIONS)) {
    const value = options[name as keyof TaskOptions];
    if (value !== undefined) json[name] = kind === 'time' ? Number(value) : value;
  }
  return { type: task.type, ...(task.hasPayload ? bytesJson('payload', task.payload) : {}), options: json };
}

export function newTaskFromJson(json: unknown): Task {
  checkOptions('POST /api/tasks', json, TASK_FIELDS, 'task');
  const { type, payload, payloadEncoding = 'utf8', options } = json as NewTaskJson;
  return new Task(type, payload === undefined ? undefined : bytesOf(payload, payloadEncoding), options);
}

function bytesOf(text: string, encoding: 'utf8' | 'base64'): Uint8Array {
  if (!text.isWellFormed()) throw wrongValue('task.payload', 'well-formed Unicode', text);
  return encoding === 'base64' ? bytesOfBase64('task.payload', text) : Buffer.from(text);
}

// Infos.

/** A `TaskInfo` without payload, result and progress: the client has the payload, and the task has just been enqueued. */
type InfoJson = Omit<StoredTask, 'payload'> &
  Pick<TaskInfo, 'state' | 'group' | 'isOrphaned'> &
  Readonly<Record<'lastFailedAt' | 'nextProcessAt' | 'completedAt' | 'deadline', unknown>> &
  Readonly<Partial<Record<'payload' | 'result' | 'progress', undefined>>>;

export function infoToJson(info: TaskInfo): InfoJson {
  return Object.assign({}, info, { payload: undefined, result: undefined, progress: undefined });
}

export function recordFromJson(json: unknown, payload: Uint8Array): TaskRecord {
  requireObject('task', json);
  const info = json as InfoJson;
  const stored = fieldsIn<Omit<StoredTask, 'payload' | 'headers'>>(STORED_FIELDS, { ...info }, 'task.');
  if (!isTaskState(info.state)) throw wrongValue('task.state', 'a state', info.state);
  requireObject('task.headers', info.headers);
  requireBoolean('task.isOrphaned', info.isOrphaned);
  const { headers, state, isOrphaned } = info;
  return {
    message: {
      ...{ ...stored, payload, headers },
      lastFailedAtMs: timeOf(info.lastFailedAt),
      deadlineMs: timeOf(info.deadline),
      completedAtMs: timeOf(info.completedAt),
      uniqueKey: '',
      group: typeof info.group === 'string' ? info.group : '',
    },
    ...{ state, nextProcessAtMs: timeOf(info.nextProcessAt), isOrphaned },
    ...{ result: undefined, progress: undefined },
  };
}

function timeOf(text: unknown): number {
  return typeof text === 'string' ? Date.parse(text) || 0 : 0;
}

// Errors.

/**
 * The errors whose message is sent: it has nothing that the client has not sent itself. Others are a fault of the server, or name parts
 * of it, such as the address of its Redis.
 */
const SENT = {
  ERR_INVALID_ARG_TYPE: TypeError,
  ERR_INVALID_ARG_VALUE: TypeError,
  ERR_UNKNOWN_OPTION: TypeError,
  ERR_OUT_OF_RANGE: RangeError,
  ERR_TASK_DUPLICATE: EscapementError,
  ERR_TASK_ID_CONFLICT: EscapementError,
} satisfies Partial<Record<EscapementErrorCode, unknown>>;

/** Returns whether the answer contains an error for the client. */
export function isSent(error: unknown): error is Error & { readonly code: string } {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return error instanceof Error && typeof code === 'string' && Object.hasOwn(SENT, code);
}

/** Returns the error of a task, with the method that the caller has called. */
export function errorFromJson(json: unknown, op: string): Error {
  requireObject('error', json);
  const { code, message } = json as Partial<Record<keyof ErrorJson, unknown>>;
  requireString('error.code', code);
  requireString('error.message', message);
  const type = Object.hasOwn(SENT, code) ? SENT[code as keyof typeof SENT] : undefined;
  if (type === TypeError || type === RangeError) {
    return withCode(new type(message), code as EscapementErrorCode);
  }
  return new EscapementError(
    type === undefined ? 'ERR_BROKER_UNAVAILABLE' : (code as EscapementErrorCode),
    message,
    { op },
  );
}
