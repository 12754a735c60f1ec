import type { TaskState } from './task-state.ts';

/** Fields that a stored task and the information about it share; a `TaskInfo` copies them from the message. */
export class StoredTask {
  /** Unique in its queue. */
  readonly id: string;
  /** Name of the queue. */
  readonly queue: string;
  /** Type, by which a server finds the handler. */
  readonly type: string;
  /** Payload, which must not be changed; empty if there is none. */
  readonly payload: Uint8Array;
  /** Maximum number of retries: the task runs at most once more than that. */
  readonly maxRetry: number;
  /** Number of retries so far. */
  readonly retried: number;
  /** Error message of the last failure; empty if there is none. */
  readonly lastError: string;
  /** Maximum duration of a run, in milliseconds; 0 for no limit. */
  readonly timeoutMs: number;
  /** How long the completed task is kept, in milliseconds; 0 if it is removed. */
  readonly retentionMs: number;
  /** Headers, which the handler receives. */
  readonly headers: Readonly<Record<string, string>>;
  /** Customer or tenant of the task; empty without a key. */
  readonly key: string;

  /** @internal By name, which is faster than a loop over names. */
  constructor(stored: Readonly<StoredTask>) {
    this.id = stored.id;
    this.queue = stored.queue;
    this.type = stored.type;
    this.payload = stored.payload;
    this.maxRetry = stored.maxRetry;
    this.retried = stored.retried;
    this.lastError = stored.lastError;
    this.timeoutMs = stored.timeoutMs;
    this.retentionMs = stored.retentionMs;
    this.headers = stored.headers;
    this.key = stored.key;
  }
}

/**
 * A task as a broker stores it. Immutable: a change is written as another message.
 *
 * Times are wall-clock milliseconds since the epoch; 0 means never, none or not yet. A broker that stores whole seconds
 * rounds up: a time, so that no task is due early, and a duration, so that none becomes 0.
 */
export interface TaskMessage extends Readonly<StoredTask> {
  /** When it last failed. */
  readonly lastFailedAtMs: number;
  /** When the last run must end. */
  readonly deadlineMs: number;
  /** Name of the unique lock, which no two tasks hold at once; empty if there is none. */
  readonly uniqueKey: string;
  /** When it was completed. */
  readonly completedAtMs: number;
  /** Name of the group; empty if there is none. */
  readonly group: string;
}

type FieldType = 'string' | 'number';

/** Types of the fields of a stored task that are the same in JSON. */
export const STORED_FIELDS = {
  ...({ id: 'string', queue: 'string', type: 'string', lastError: 'string', key: 'string' } as const),
  ...({ maxRetry: 'number', retried: 'number', timeoutMs: 'number', retentionMs: 'number' } as const),
} satisfies Record<Exclude<keyof StoredTask, 'payload' | 'headers'>, FieldType>;

/** Returns fields of JSON, with the types of a table. @param fail - returns the error for a field that has another type, or is missing. */
export function fieldsIn<const Types extends Readonly<Record<string, FieldType>>>(
  types: Types,
  json: Readonly<Partial<Record<keyof Types, unknown>>>,
  fail: (name: string, type: FieldType) => Error,
): { readonly [Name in keyof Types]: Types[Name] extends 'string' ? string : number } {
  const fields = Object.entries(types).map(([name, type]) => {
    const value = json[name];
    if (typeof value !== type || (type === 'number' && !Number.isFinite(value))) throw fail(name, type);
    return [name, value] as const;
  });
  return Object.fromEntries(fields) as ReturnType<typeof fieldsIn<Types>>;
}

/** Ours. The header that has the key of a task on the wire: asynq's servers keep headers. */
export const KEY_HEADER = 'escapement-key';

/** Returns the message of a task that is removed when it is completed. */
export function withoutRetention(message: TaskMessage): TaskMessage {
  return { ...message, retentionMs: 0 };
}

/** Returns the message of a task that waits and becomes another one: it keeps its id, its retries and its last error. */
export function replacedBy(waiting: TaskMessage, message: TaskMessage): TaskMessage {
  const { id, retried, lastError, lastFailedAtMs } = waiting;
  return { ...message, id, retried, lastError, lastFailedAtMs };
}

/** Returns the message of a task whose run has failed. @param retries - 1 if it counts as a retry, else 0. */
export function failedWith(message: TaskMessage, error: string, retries: number, nowMs: number): TaskMessage {
  return { ...message, retried: message.retried + retries, lastError: error, lastFailedAtMs: nowMs };
}

export function isRetained({ retentionMs }: Pick<StoredTask, 'retentionMs'>): boolean {
  return retentionMs > 0;
}

/** Returns when a completed task is removed, in wall-clock milliseconds; undefined if it is not completed, or its retention is not known. */
export function expiryMsOf(task: {
  readonly state: TaskState;
  readonly completedAt?: Date | undefined;
  readonly retentionMs?: number | undefined;
}): number | undefined {
  const { state, completedAt, retentionMs } = task;
  if (state !== 'completed' || completedAt === undefined || retentionMs === undefined) return undefined;
  return retainedUntilMs({ retentionMs }, completedAt.getTime());
}

/** Returns when a task is removed that is completed now, in wall-clock milliseconds. */
export function retainedUntilMs({ retentionMs }: Pick<StoredTask, 'retentionMs'>, nowMs: number): number {
  return nowMs + retentionMs;
}
