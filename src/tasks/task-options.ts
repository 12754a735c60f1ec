import { outOfRange, wrongType, wrongValue } from '../core/errors.ts';
import {
  checkGivenOptions,
  checkOptions,
  integer,
  milliseconds,
  type Check,
  type OptionTable,
} from '../core/options.ts';
import { LAST_DATE_MS, MINUTE_MS } from '../core/units.ts';
import { requireFiniteNumber, requireObject, requireString } from '../core/validate.ts';
import { formatGoDuration, formatUnixDate, quoteGoString } from './go-text.ts';
import { requireQueueName, requireText } from './require-text.ts';

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
  /** When the last run must end: a Date, or milliseconds since the epoch. @default none */
  readonly deadline?: Date | number | undefined;
  /**
   * Rejects other tasks of the same type and payload in the queue, until the task is done and for at most this many
   * milliseconds, at least 1000.
   *
   * @default off
   */
  readonly uniqueTtlMs?: number | undefined;
  /** When the task is due: a Date, or milliseconds since the epoch. @default now */
  readonly processAt?: Date | number | undefined;
  /** When the task is due, in milliseconds from now. Excludes `processAt`. */
  readonly processInMs?: number | undefined;
  /** How long the completed task is kept, with its result, in milliseconds. @default 0: it is removed */
  readonly retentionMs?: number | undefined;
  /** The group of the task: its tasks are aggregated into one. @default none */
  readonly group?: string | undefined;
  /** Headers, which the handler receives. Those of `enqueue` are added to those of the task. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export const DEFAULT_QUEUE = 'default';

/** asynq's reader of options cuts an argument at the first `)`, so a name has it escaped, in a way that Go can read. */
const quoted = (text: string): string => quoteGoString(text).replaceAll(')', '\\x29');
const date = (at: Date | number): string => formatUnixDate(Number(at));
const pairs = (headers: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(headers).map((pair) => JSON.stringify(pair).replaceAll(')', '\\u0029'));

export const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

type TaskOptionTable = OptionTable<TaskOptions> & {
  readonly [Name in keyof TaskOptions]-?: readonly [
    check: Check,
    byDefault: unknown,
    asynqName: string,
    format: (value: NonNullable<TaskOptions[Name]>) => string | readonly string[],
  ];
};

/**
 * All task options, in asynq's order: check, default, and how asynq prints them in the entry of a schedule. For an option that
 * brokers store, see `newTaskOf` too.
 */
export const TASK_OPTIONS = {
  maxRetry: [integer(0, 2 ** 31 - 1), 25, 'MaxRetry', String], // asynq stores an int32
  queue: [requireQueueName, DEFAULT_QUEUE, 'Queue', quoted],
  taskId: [requireText, undefined, 'TaskID', quoted],
  timeoutMs: [requireDuration, 30 * MINUTE_MS, 'Timeout', formatGoDuration],
  deadline: [requireTime, 0, 'Deadline', date],
  uniqueTtlMs: [milliseconds(1_000), 0, 'Unique', formatGoDuration], // Redis stores whole seconds
  processAt: [requireTime, undefined, 'ProcessAt', date],
  processInMs: [requireDuration, undefined, 'ProcessIn', formatGoDuration],
  retentionMs: [requireDuration, 0, 'Retention', formatGoDuration],
  group: [requireText, '', 'Group', quoted],
  headers: [requireHeaders, NO_HEADERS, 'Header', pairs],
} satisfies TaskOptionTable;

export const NO_TASK_OPTIONS: TaskOptions = Object.freeze({});

/** @throws TypeError or RangeError - an option is not valid. */
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
  const merged: { -readonly [Name in keyof TaskOptions]: unknown } = { ...base };
  if (hasDueTime(over)) {
    delete merged.processAt;
    delete merged.processInMs;
  }
  for (const name in over) {
    const value = over[name as keyof TaskOptions];
    if (value !== undefined) merged[name as keyof TaskOptions] = value;
  }
  if (merged.headers !== undefined) merged.headers = mergeHeaders(base, over);
  return Object.freeze(merged) as TaskOptions;
}

/** Frozen: handlers receive it, the same object in each run. */
export function mergeHeaders(base: TaskOptions, over: TaskOptions): Readonly<Record<string, string>> {
  if (base.headers === undefined && over.headers === undefined) return NO_HEADERS;
  return Object.freeze({ ...base.headers, ...over.headers });
}

/** Options that exclude each other: one of them replaces both. */
export function hasDueTime({ processAt, processInMs }: TaskOptions): boolean {
  return processAt !== undefined || processInMs !== undefined;
}

/** Formats options as asynq does: `MaxRetry(5)`, `Queue("low")`, `Timeout(30m0s)`. Times have whole seconds. */
export function formatTaskOptions(options: TaskOptions): string[] {
  const rows: [string, TaskOptionTable[keyof TaskOptions]][] = Object.entries(TASK_OPTIONS);
  return rows.flatMap(([name, [, , asynqName, format]]) => {
    const value = options[name as keyof TaskOptions];
    if (value === undefined) return [];
    const written = format(value as never);
    return (typeof written === 'string' ? [written] : written).map((argument) => `${asynqName}(${argument})`);
  });
}

/** A duration in milliseconds, or a time in wall-clock milliseconds. */
export function requireDuration(argument: string, value: unknown): asserts value is number {
  requireFiniteNumber(argument, value);
  if (value < 0 || value > LAST_DATE_MS) {
    throw outOfRange(argument, `from 0 to ${LAST_DATE_MS} milliseconds`, value);
  }
}

function requireTime(argument: string, value: unknown): void {
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms !== 'number') throw wrongType(argument, 'a Date or a number of milliseconds', value);
  if (!(ms >= 0 && ms <= LAST_DATE_MS)) throw outOfRange(argument, 'a time since the epoch', ms);
}

function requireHeaders(argument: string, headers: unknown): void {
  requireObject(argument, headers);
  for (const [name, value] of Object.entries(headers as Record<string, unknown>)) {
    if (!name.isWellFormed()) throw wrongValue(`a name of ${argument}`, 'well-formed Unicode', name);
    requireString(`${argument}.${name}`, value);
    if (!value.isWellFormed()) throw wrongValue(`${argument}.${name}`, 'well-formed Unicode', value);
  }
}
