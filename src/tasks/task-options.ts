import type { Clock } from '../core/clock.ts';
import { outOfRange, wrongValue } from '../core/errors.ts';
import {
  checkGivenOptions,
  checkOptions,
  integer,
  milliseconds,
  oneOf,
  type Check,
  type OptionTable,
} from '../core/options.ts';
import { LAST_DATE_MS, MINUTE_MS } from '../core/units.ts';
import { requireFiniteNumber, requireRecord, requireString } from '../core/validate.ts';
import {
  requireDuration,
  requireExistingQueueName,
  requireQueueName,
  requireText,
  requireTime,
} from './argument-checks.ts';
import { randomId, uniqueLockOf, type UniqueSource } from './task-identity.ts';
import type { TaskState } from './task-state.ts';

/** How a task is processed. Options of `enqueue` override those of the task, one by one. */
export interface TaskOptions {
  /** Name of the queue, without `{` and `}`. @default 'default' */
  readonly queue?: string | undefined;
  /** Unique in the queue: while a task has this id, in any state, no other task can have it. @default a random UUID */
  readonly taskId?: string | undefined;
  /** Maximum number of retries: a task runs at most once more than that. @default 25 */
  readonly maxRetry?: number | undefined;
  /** Maximum duration of a run, in milliseconds; 0 for no limit. @default 30 minutes, or no limit if there is a deadline */
  readonly timeoutMs?: number | undefined;
  /** When the last run must end: a Date, or milliseconds since the epoch; 0 for no limit. @default none */
  readonly deadline?: Date | number | undefined;
  /**
   * Rejects other tasks of the same type and payload in the queue, until the task is done and for at most this many
   * milliseconds: at least 1. Redis rounds it up to whole seconds.
   *
   * @default off
   */
  readonly uniqueTtlMs?: number | undefined;
  /**
   * With `uniqueTtlMs`: tasks of the queue with the same key are duplicates, whatever their type and payload are. Not empty.
   *
   * @default type and payload
   */
  readonly uniqueKey?: string | undefined;
  /**
   * With `uniqueTtlMs`: what happens to a duplicate. `'reject'`: `ERR_TASK_DUPLICATE`. `'replace'`: the task that waits becomes the new one, with
   * its payload, options and time; it keeps its id and its retries, and its lock ends when it would have ended. `'extend'`: the same, and the lock
   * starts anew. A task that runs is not replaced: `ERR_TASK_DUPLICATE`.
   *
   * @default 'reject'
   */
  readonly onDuplicate?: 'reject' | 'replace' | 'extend' | undefined;
  /** When the task is due: a Date, or milliseconds since the epoch. @default now */
  readonly processAt?: Date | number | undefined;
  /** When the task is due, in milliseconds from now. Excludes `processAt`. */
  readonly processInMs?: number | undefined;
  /** How long the completed task is kept, with its result, in milliseconds. @default 0: it is removed */
  readonly retentionMs?: number | undefined;
  /** The group of the task: its tasks are aggregated into one. @default none */
  readonly group?: string | undefined;
  /**
   * What the task belongs to, such as a tenant or an account. The waiting tasks of a queue are taken round robin over their keys, and `QueueLimits`
   * may limit each key. At most 256 bytes of UTF-8.
   *
   * @default none: the tasks without a key are one key
   */
  readonly key?: string | undefined;
  /**
   * `'next'`: the task goes to the head of its queue, in front of all that wait there; with a key, in front of those with the same key.
   * Only for a task that is due at once and in no group. @default 'normal': at the end
   */
  readonly priority?: 'normal' | 'next' | undefined;
  /** Headers, which the handler receives. Those of `enqueue` are added to those of the task. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export const DEFAULT_QUEUE = 'default';

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** What the value of an option is: decides how asynq prints it, and how the command reads and prints it. */
export type OptionKind = 'count' | 'duration' | 'headers' | 'text' | 'time';

/** How an option is printed. */
export interface OptionNotation {
  readonly kind: OptionKind;
  /** Name of asynq's option in the entry of a schedule. */
  readonly asynq: string;
  /** Label of its line in the output of `escapement tasks task inspect`; without one it has no line. */
  readonly label?: string;
}

/** An option of `escapement tasks task enqueue`. */
export interface OptionFlag {
  readonly flags: string;
  readonly help: string;
  /** Another name of the flag. */
  readonly alias?: string;
}

/** An option of a task that was read: what a person is shown of it. */
export interface TaskOptionValue {
  readonly label: string;
  readonly kind: OptionKind;
  readonly value: unknown;
}

type TaskOptionTable = Readonly<
  Record<
    keyof TaskOptions,
    readonly [check: Check, byDefault: unknown, notation: OptionNotation, flag: OptionFlag]
  >
>;

/** Longest key, in bytes of UTF-8. */
const LONGEST_KEY_BYTES = 256;

function requireKey(argument: string, value: unknown): asserts value is string {
  requireText(argument, value);
  if (Buffer.byteLength(value) > LONGEST_KEY_BYTES)
    throw wrongValue(argument, `at most ${LONGEST_KEY_BYTES} bytes of UTF-8`, value);
}

/** Header that has the key of a task on the wire: asynq's servers keep headers. */
export const KEY_HEADER = 'escapement-key';

function requireHeaders(argument: string, headers: unknown): void {
  requireRecord(argument, "{ name: 'value' }", headers);
  for (const [name, value] of Object.entries(headers as Record<string, unknown>)) {
    if (!name.isWellFormed()) throw wrongValue(`a name of ${argument}`, 'well-formed Unicode', name);
    if (name === KEY_HEADER)
      throw wrongValue(`a name of ${argument}`, 'another one: options.key has its value', name);
    requireString(`${argument}.${name}`, value);
    if (!value.isWellFormed()) throw wrongValue(`${argument}.${name}`, 'well-formed Unicode', value);
  }
}

/** asynq stores an int32. */
export const requireInt32 = integer(0, 2 ** 31 - 1);

/** All task options, in asynq's order. One that brokers store is a field of the message, too: see {@link TaskMessage}. */
export const TASK_OPTIONS = {
  maxRetry: [
    requireInt32,
    25,
    { kind: 'count', asynq: 'MaxRetry' },
    { flags: '--retry <n>', help: 'number of retries [default: 25]' },
  ],
  queue: [
    requireQueueName,
    DEFAULT_QUEUE,
    { kind: 'text', asynq: 'Queue' },
    { flags: '-q, --queue <queue>', help: "queue of the task [default: 'default']" },
  ],
  taskId: [
    requireText,
    undefined,
    { kind: 'text', asynq: 'TaskID' },
    { flags: '--id <id>', help: 'id of the task [default: a UUID]', alias: '--task_id <id>' },
  ],
  timeoutMs: [
    requireDuration,
    30 * MINUTE_MS,
    { kind: 'duration', asynq: 'Timeout', label: 'timeout' },
    { flags: '--timeout <duration>', help: 'how long a run may take' },
  ],
  deadline: [
    requireTime,
    0,
    { kind: 'time', asynq: 'Deadline', label: 'deadline' },
    { flags: '--deadline <time>', help: 'when the last run must be over' },
  ],
  uniqueTtlMs: [
    milliseconds(1, LAST_DATE_MS),
    0,
    { kind: 'duration', asynq: 'Unique' },
    { flags: '--unique <duration>', help: 'how long duplicates are rejected' },
  ],
  uniqueKey: [
    requireText,
    undefined,
    { kind: 'text', asynq: 'UniqueKey' },
    {
      flags: '--unique_key <key>',
      help: 'tasks with the same key are duplicates [default: type and payload]',
    },
  ],
  onDuplicate: [
    oneOf('reject', 'replace', 'extend'),
    'reject' as const,
    { kind: 'text', asynq: 'OnDuplicate' },
    { flags: '--on_duplicate <what>', help: 'reject, replace or extend [default: reject]' },
  ],
  processAt: [
    requireTime,
    undefined,
    { kind: 'time', asynq: 'ProcessAt' },
    { flags: '--process_at <time>', help: 'when to process it [default: now]' },
  ],
  processInMs: [
    requireDuration,
    undefined,
    { kind: 'duration', asynq: 'ProcessIn' },
    { flags: '--process_in <duration>', help: 'when to process it, from now' },
  ],
  retentionMs: [
    requireDuration,
    0,
    { kind: 'duration', asynq: 'Retention', label: 'retention' },
    { flags: '--retention <duration>', help: 'how long it is kept when it is done' },
  ],
  group: [
    requireText,
    '',
    { kind: 'text', asynq: 'Group', label: 'group' },
    { flags: '-g, --group <group>', help: 'group with which it is aggregated' },
  ],
  key: [
    requireKey,
    '',
    { kind: 'text', asynq: 'Key', label: 'key' },
    { flags: '--key <key>', help: 'what the task belongs to: a tenant, an account' },
  ],
  priority: [
    oneOf('normal', 'next'),
    'normal' as const,
    { kind: 'text', asynq: 'Priority' },
    { flags: '--priority <priority>', help: "'next' for the head of its queue [default: normal]" },
  ],
  headers: [
    requireHeaders,
    NO_HEADERS,
    { kind: 'headers', asynq: 'Header', label: 'header' },
    { flags: '--header <header>', help: "header for the handler: 'name=value'; may be repeated" },
  ],
} satisfies TaskOptionTable;

// The message, as which a broker stores a task.

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

/** A task to add. */
export interface NewTask {
  /** The task. */
  readonly message: TaskMessage;
  /** When it is due, in wall-clock milliseconds; 0 or a time in the past is now. */
  readonly processAtMs: number;
  /** How long its unique lock holds at most; 0 for no lock. For a scheduled task, from when it is due. */
  readonly uniqueTtlMs: number;
  /** What happens if a task that waits holds the lock: see `TaskOptions.onDuplicate`. @default 'reject' */
  readonly onDuplicate?: 'reject' | 'replace' | 'extend';
  /** Whether it goes to the head of the tasks with its key, if it is pending. @default false: to the end */
  readonly isNext?: boolean;
}

/** Checks of the fields of a stored task that are the same in JSON. */
export const STORED_FIELDS = {
  id: requireText,
  queue: requireExistingQueueName,
  type: requireString,
  lastError: requireString,
  key: requireString,
  maxRetry: requireInt32,
  retried: requireInt32,
  timeoutMs: requireFiniteNumber,
  retentionMs: requireFiniteNumber,
} satisfies Record<Exclude<keyof StoredTask, 'payload' | 'headers'>, Check>;

// Options that are given, merged and checked.

/** The rows of the table, with the types of all of them. */
export const OPTION_ROWS = Object.entries(TASK_OPTIONS) as readonly (readonly [
  name: keyof TaskOptions,
  row: TaskOptionTable[keyof TaskOptions],
])[];

export const NO_TASK_OPTIONS: TaskOptions = Object.freeze({});

export function requireTaskOptions(
  subject: string,
  options: TaskOptions,
  table: OptionTable<TaskOptions> = TASK_OPTIONS,
): void {
  if (options === NO_TASK_OPTIONS) return;
  if (table === TASK_OPTIONS) checkGivenOptions(subject, options, table);
  else checkOptions(subject, options, table);
  const { processAt, processInMs } = options;
  if (processAt !== undefined && processInMs !== undefined) {
    throw wrongValue('options.processInMs', 'undefined where there is options.processAt', processInMs);
  }
}

/**
 * Returns the options of both: those of `over` replace those of `base`, headers are added by name. The time when a task is due
 * counts as one option. Frozen: callbacks receive it.
 */
export function mergeTaskOptions(base: TaskOptions, over: TaskOptions): TaskOptions {
  const given = Object.entries(merge(base, over)).filter(([, value]) => value !== undefined);
  return Object.freeze(Object.fromEntries(given));
}

/** Returns all options of a task that is enqueued with `over`; some may be undefined. Makes an object only if both have some. */
export function optionsOf({ options }: TaskSource, over: TaskOptions): TaskOptions {
  if (over === NO_TASK_OPTIONS) return options;
  return options === NO_TASK_OPTIONS ? over : merge(options, over);
}

/** Names each option: a loop over the table takes ten times as long. */
function merge(base: TaskOptions, over: TaskOptions): Required<TaskOptions> {
  const due = over.processAt === undefined && over.processInMs === undefined ? base : over;
  const hasHeaders = over.headers !== undefined || base.headers !== undefined;
  return {
    maxRetry: over.maxRetry ?? base.maxRetry,
    queue: over.queue ?? base.queue,
    taskId: over.taskId ?? base.taskId,
    timeoutMs: over.timeoutMs ?? base.timeoutMs,
    deadline: over.deadline ?? base.deadline,
    uniqueTtlMs: over.uniqueTtlMs ?? base.uniqueTtlMs,
    uniqueKey: over.uniqueKey ?? base.uniqueKey,
    onDuplicate: over.onDuplicate ?? base.onDuplicate,
    processAt: due.processAt,
    processInMs: due.processInMs,
    retentionMs: over.retentionMs ?? base.retentionMs,
    group: over.group ?? base.group,
    key: over.key ?? base.key,
    priority: over.priority ?? base.priority,
    headers: hasHeaders ? Object.freeze({ ...base.headers, ...over.headers }) : undefined,
  };
}

/** What is read of a `Task` here. */
interface TaskSource extends UniqueSource {
  readonly options: TaskOptions;
}

type WallClock = Pick<Clock, 'wallNow'>;

/**
 * Returns the task to add to a broker.
 *
 * @param options - all of the task: see `optionsOf`. Each has been checked.
 * @param clock - is read only for a delay and for a priority: that takes as long as finding a task.
 * @throws TypeError or RangeError - as `requireConsistent`.
 */
export function newTaskOf(task: TaskSource, options: TaskOptions, clock: WallClock): NewTask {
  const processAtMs = requireConsistent(options, clock);
  const {
    queue = DEFAULT_QUEUE,
    deadline = TASK_OPTIONS.deadline[1],
    uniqueTtlMs = TASK_OPTIONS.uniqueTtlMs[1],
    headers,
    timeoutMs = Number(deadline) === 0 ? TASK_OPTIONS.timeoutMs[1] : 0,
  } = options;
  return {
    processAtMs,
    uniqueTtlMs,
    onDuplicate: options.onDuplicate ?? TASK_OPTIONS.onDuplicate[1],
    isNext: options.priority === 'next',
    message: {
      id: options.taskId ?? randomId(),
      type: task.type,
      queue,
      payload: task.payload,
      headers: headers === undefined ? NO_HEADERS : Object.freeze({ ...headers }), // handlers receive it, the same object in each run
      key: options.key ?? TASK_OPTIONS.key[1],
      maxRetry: options.maxRetry ?? TASK_OPTIONS.maxRetry[1],
      retried: 0,
      lastError: '',
      lastFailedAtMs: 0,
      timeoutMs,
      deadlineMs: Number(deadline),
      uniqueKey: uniqueTtlMs > 0 ? uniqueLockOf(queue, options.uniqueKey, task) : '',
      retentionMs: options.retentionMs ?? TASK_OPTIONS.retentionMs[1],
      completedAtMs: 0,
      group: options.group ?? TASK_OPTIONS.group[1],
    },
  };
}

function dueTimeOf({ processAt, processInMs }: TaskOptions, clock: WallClock): number {
  if (processInMs !== undefined) {
    const atMs = processInMs > 0 ? clock.wallNow() + processInMs : 0;
    if (atMs > LAST_DATE_MS)
      throw outOfRange('options.processInMs', 'a delay that ends before the year 275760', processInMs);
    return atMs;
  }
  return processAt === undefined ? 0 : Number(processAt);
}

/**
 * Checks all options of a task together.
 *
 * @returns when the task is due; 0 for now.
 * @throws TypeError - one would do nothing, or contradicts another one. RangeError - the task would be due too late for a date.
 */
export function requireConsistent(options: TaskOptions, clock: WallClock): number {
  if (options.uniqueTtlMs === undefined) {
    requireDefault('uniqueKey', options, 'used with options.uniqueTtlMs');
    requireDefault('onDuplicate', options, 'used with options.uniqueTtlMs');
  }
  const dueMs = dueTimeOf(options, clock);
  if (options.priority !== 'next') return dueMs;
  if (options.group !== undefined)
    requireDefault('priority', options, "'normal' where there is options.group");
  if (dueMs > clock.wallNow()) requireDefault('priority', options, "'normal' where the task is due later");
  return dueMs;
}

function requireDefault(
  name: 'uniqueKey' | 'onDuplicate' | 'priority',
  { [name]: value }: TaskOptions,
  requirement: string,
): void {
  if (value !== undefined && value !== TASK_OPTIONS[name][1])
    throw wrongValue(`options.${name}`, requirement, value);
}

/** Checks what a caller of a broker may pass. @throws TypeError or RangeError - the name of the queue, or a time, is not valid. */
export function requireNewTask({ message, processAtMs, uniqueTtlMs }: NewTask): void {
  requireQueueName('task.message.queue', message.queue);
  requireDuration('message.retentionMs', message.retentionMs);
  requireDuration('processAtMs', processAtMs);
  requireDuration('uniqueTtlMs', uniqueTtlMs);
}

/** Returns the options of a task that have a label, as far as the task has them. */
export function optionValuesOf(
  task: Readonly<Partial<Record<keyof TaskOptions, unknown>>>,
): readonly TaskOptionValue[] {
  return OPTION_ROWS.flatMap(([name, [, , { kind, label }]]) =>
    label !== undefined && name in task ? [{ label, kind, value: task[name] }] : [],
  );
}

// What becomes of a message.

/** Returns the message of a task that waits and becomes another one: it keeps its id, its retries and its last error. */
export function replacedBy(waiting: TaskMessage, message: TaskMessage): TaskMessage {
  const { id, retried, lastError, lastFailedAtMs } = waiting;
  return { ...message, id, retried, lastError, lastFailedAtMs };
}

/** Returns the message of a task whose run has failed. @param retries - 1 if it counts as a retry, else 0. */
export function failedWith(message: TaskMessage, error: string, retries: number, nowMs: number): TaskMessage {
  return { ...message, retried: message.retried + retries, lastError: error, lastFailedAtMs: nowMs };
}

/** Advice in errors about a task that no longer exists. */
export const RETENTION_ADVICE = 'A task with retentionMs is kept after it is done';

export function isRetained({ retentionMs }: Pick<StoredTask, 'retentionMs'>): boolean {
  return retentionMs > 0;
}

/** Returns a message of a task that is removed when it is completed. */
export function notRetained(message: TaskMessage): TaskMessage {
  return { ...message, retentionMs: 0 };
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
