import { outOfRange, wrongType, wrongValue } from '../core/errors.ts';
import {
  requireFiniteNumber,
  requireIntegerAtLeast,
  requireObject,
  requireOptions,
  type OptionNames,
} from '../core/validate.ts';
import { requireQueueName, requireText } from './require-text.ts';

/** How a task is to be processed. Given with the task, with `enqueue`, or with both: then the latter wins, one by one. */
export interface TaskOptions {
  /** Without `{` and `}`. @default 'default' */
  readonly queue?: string | undefined;
  /** Unique in its queue: while there is a task of that id, in whatever state, no other is taken. @default a random UUID */
  readonly taskId?: string | undefined;
  /** Failures that are tried again; the task runs once more than that, at most. @default 25 */
  readonly maxRetry?: number | undefined;
  /** How long a run may take, in milliseconds; 0 for any time. @default 30 minutes, if there is no deadline */
  readonly timeoutMs?: number | undefined;
  /** When the last run must be over: a Date, or milliseconds since the epoch. @default none */
  readonly deadline?: Date | number | undefined;
  /**
   * Keeps out others of its type and payload, in its queue, for so many milliseconds, 1000 at least, or until it is done.
   * @default off
   */
  readonly uniqueTtlMs?: number | undefined;
  /** When it is to be processed: a Date, or milliseconds since the epoch. @default now */
  readonly processAt?: Date | number | undefined;
  /** When it is to be processed, in milliseconds from now; instead of `processAt`. */
  readonly processInMs?: number | undefined;
  /** How long it is kept when it is done, with its result, in milliseconds. @default 0: it is gone */
  readonly retentionMs?: number | undefined;
  /** It waits for others of that group, and is aggregated with them. @default none */
  readonly group?: string | undefined;
  /** Passed on to the handler; those of `enqueue` are laid over those of the task. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export const TASK_OPTIONS: OptionNames<TaskOptions> = {
  ...{ queue: true, taskId: true, maxRetry: true, timeoutMs: true, deadline: true, uniqueTtlMs: true },
  ...{ processAt: true, processInMs: true, retentionMs: true, group: true, headers: true },
};

/** All of them, made definite; times in wall-clock milliseconds. */
export interface ResolvedTaskOptions {
  readonly queue: string;
  /** Undefined: the client makes one. */
  readonly taskId: string | undefined;
  readonly maxRetry: number;
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly uniqueTtlMs: number;
  readonly processAtMs: number;
  readonly retentionMs: number;
  readonly group: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** asynq's. */
const DEFAULT_MAX_RETRY = 25;
const DEFAULT_TIMEOUT_MS = 30 * 60_000;
export const DEFAULT_QUEUE = 'default';

/** Locks are kept for whole seconds in Redis. */
const MIN_UNIQUE_TTL_MS = 1_000;

/** What a 32-bit number on the wire holds. */
const MAX_RETRIES = 2 ** 31 - 1;

/** The last moment a Date can have. */
const MAX_WALL_MS = 8.64e15;

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** @throws TypeError or RangeError - an option is wrong. */
export function requireTaskOptions(
  subject: string,
  options: TaskOptions,
  names: OptionNames<TaskOptions> = TASK_OPTIONS,
): void {
  requireOptions(subject, options, names);
  const { queue, taskId, maxRetry, timeoutMs, deadline, uniqueTtlMs, retentionMs, group, headers } = options;
  if (queue !== undefined) requireQueueName('options.queue', queue);
  if (taskId !== undefined) requireText('options.taskId', taskId);
  if (maxRetry !== undefined) requireMaxRetry(maxRetry);
  if (timeoutMs !== undefined) requireDuration('options.timeoutMs', timeoutMs);
  if (deadline !== undefined) requireTime('options.deadline', deadline);
  if (uniqueTtlMs !== undefined) requireUniqueTtl(uniqueTtlMs);
  if (retentionMs !== undefined) requireDuration('options.retentionMs', retentionMs);
  if (group !== undefined) requireText('options.group', group);
  if (headers !== undefined) requireHeaders(headers);
  requireProcessTime(options);
}

/** Lays options over one another. Both were required to be right. */
export function resolveTaskOptions(
  base: TaskOptions,
  over: TaskOptions,
  wallNowMs: number,
): ResolvedTaskOptions {
  const deadline = over.deadline ?? base.deadline;
  const when = hasProcessTime(over) ? over : base;
  return {
    queue: over.queue ?? base.queue ?? DEFAULT_QUEUE,
    taskId: over.taskId ?? base.taskId,
    maxRetry: over.maxRetry ?? base.maxRetry ?? DEFAULT_MAX_RETRY,
    timeoutMs: over.timeoutMs ?? base.timeoutMs ?? (deadline === undefined ? DEFAULT_TIMEOUT_MS : 0),
    deadlineMs: deadline === undefined ? 0 : Number(deadline),
    uniqueTtlMs: over.uniqueTtlMs ?? base.uniqueTtlMs ?? 0,
    processAtMs: processAtMs(when, wallNowMs),
    retentionMs: over.retentionMs ?? base.retentionMs ?? 0,
    group: over.group ?? base.group ?? '',
    headers: mergeHeaders(base.headers, over.headers),
  };
}

/** One over the other, as options for a task. Both were required to be right. */
export function layTaskOptions(base: TaskOptions, over: TaskOptions): TaskOptions {
  const when = hasProcessTime(over) ? over : base;
  return {
    queue: over.queue ?? base.queue,
    taskId: over.taskId ?? base.taskId,
    maxRetry: over.maxRetry ?? base.maxRetry,
    timeoutMs: over.timeoutMs ?? base.timeoutMs,
    deadline: over.deadline ?? base.deadline,
    uniqueTtlMs: over.uniqueTtlMs ?? base.uniqueTtlMs,
    processAt: when.processAt,
    processInMs: when.processInMs,
    retentionMs: over.retentionMs ?? base.retentionMs,
    group: over.group ?? base.group,
    headers: mergeHeaders(base.headers, over.headers),
  };
}

/** Frozen: the handler is given the same ones at each attempt. */
function mergeHeaders(
  base: TaskOptions['headers'],
  over: TaskOptions['headers'],
): Readonly<Record<string, string>> {
  if (base === undefined && over === undefined) return NO_HEADERS;
  return Object.freeze({ ...base, ...over });
}

function hasProcessTime({ processAt, processInMs }: TaskOptions): boolean {
  return processAt !== undefined || processInMs !== undefined;
}

function processAtMs({ processAt, processInMs }: TaskOptions, wallNowMs: number): number {
  if (processInMs !== undefined) return processInMs > 0 ? wallNowMs + processInMs : 0;
  return processAt === undefined ? 0 : Number(processAt);
}

function requireMaxRetry(value: unknown): void {
  requireIntegerAtLeast('options.maxRetry', 0, value);
  if (value > MAX_RETRIES) throw outOfRange('options.maxRetry', `at most ${MAX_RETRIES}`, value);
}

function requireUniqueTtl(value: unknown): void {
  requireFiniteNumber('options.uniqueTtlMs', value);
  if (value < MIN_UNIQUE_TTL_MS) {
    throw outOfRange('options.uniqueTtlMs', `at least ${MIN_UNIQUE_TTL_MS} ms`, value);
  }
}

function requireProcessTime({ processAt, processInMs }: TaskOptions): void {
  if (processAt !== undefined) requireTime('options.processAt', processAt);
  if (processInMs === undefined) return;
  requireDuration('options.processInMs', processInMs);
  if (processAt !== undefined) {
    throw wrongValue('options.processInMs', 'undefined where there is options.processAt', processInMs);
  }
}

export function requireDuration(argument: string, value: unknown): asserts value is number {
  requireFiniteNumber(argument, value);
  if (value < 0 || value > MAX_WALL_MS) {
    throw outOfRange(argument, `from 0 to ${MAX_WALL_MS} milliseconds`, value);
  }
}

function requireTime(argument: string, value: unknown): void {
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms !== 'number') throw wrongType(argument, 'a Date or a number of milliseconds', value);
  if (!(ms >= 0 && ms <= MAX_WALL_MS)) throw outOfRange(argument, 'a time since the epoch', ms);
}

function requireHeaders(headers: unknown): void {
  requireObject('options.headers', headers);
  for (const [name, value] of Object.entries(headers as object)) {
    if (!name.isWellFormed()) throw wrongValue('a name of options.headers', 'well-formed Unicode', name);
    if (typeof value !== 'string') throw wrongType(`options.headers.${name}`, 'a string', value);
    if (!value.isWellFormed()) throw wrongValue(`options.headers.${name}`, 'well-formed Unicode', value);
  }
}
