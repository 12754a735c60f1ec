import { TASK_STATES, type TaskState } from '../../task-state.ts';
import type { TaskMessage } from '../../task-options.ts';
import type { EntryReader, EntryWriter } from './entry-bytes.ts';
import type { TaskRow } from './task-lists.ts';

/*
 * The entries of the journal: what a record of the log of a durable broker consists of.
 *
 *      record   entry entry entry …        everything that was changed together, so that a crash leaves all of it or nothing
 *      entry    kind, length of the rest, the rest
 *
 * An entry states what is true after a change, and not what the change was: applying it twice does no harm, and an entry about
 * a task that is not known any more, or not yet, is left out. So a log can begin anywhere, and compaction may write a task again.
 *
 * Numbers are little-endian; texts are UTF-8 behind their length. Times are wall-clock milliseconds. A task has a number, which
 * no other task of the log has ever had.
 */

/** Type of a record that consists of these entries. */
export const ENTRIES = 16;

export const Kind = {
  task: 1, // a task with everything it has
  change: 2, // its state, and what runs have changed
  remove: 3, // it was removed
  start: 4, // a run has started
  result: 5,
  progress: 6,
  count: 7, // a run of a queue has ended
  queue: 8, // everything of a queue but its tasks, as JSON
  removeQueue: 9, // a queue was removed with everything in it
  tick: 10, // the latest tick of a schedule entry
  event: 11, // an event of a schedule entry
  events: 12, // all events of a schedule entry, as JSON
  serial: 13, // numbers of tasks and epochs of leases were smaller than this one until now
  keyedTask: 14, // as `task`, of one that has a key
  bucket: 15, // when the bucket of a rate is full
} as const;

/** Whether entries of a kind are about a task, and begin with its number: all but those with a whole task. */
export function isOfTask(kind: number): boolean {
  return kind >= Kind.change && kind <= Kind.progress;
}

/** The types of fields, by the methods of `EntryWriter` and `EntryReader` that write and read them. */
interface FieldTypes {
  readonly byte: number;
  readonly number: number;
  readonly text: string;
  readonly blob: Uint8Array;
  readonly json: unknown;
}

type Layout = readonly (keyof FieldTypes)[];

/**
 * The fields of all entries but `task`, `keyedTask` and `change`, whose functions are below. Those of a task are replayed without this table,
 * and `remove` and `start`, of which each run has one, are written without it: that is faster.
 */
const LAYOUTS = {
  [Kind.remove]: ['number'], // its number
  [Kind.start]: ['number', 'number'], // its number, the epoch of the lease
  [Kind.result]: ['number', 'blob'], // the number of the task, the result
  [Kind.progress]: ['number', 'text'], // the number of the task, the progress
  [Kind.count]: ['number', 'byte', 'text'], // when the run has ended, 1 if it has failed, the queue
  [Kind.queue]: ['text', 'json'], // its name, `QueueSettings`
  [Kind.removeQueue]: ['text'], // its name
  [Kind.tick]: ['number', 'text', 'text'], // the tick, the queue, the key of the schedule entry
  [Kind.event]: ['number', 'text', 'text'], // when it was, the id of the schedule entry, the id of the task
  [Kind.events]: ['text', 'json'], // the id of the schedule entry, `EnqueueEvent[]`
  [Kind.serial]: ['number'], // the number
  [Kind.bucket]: ['number', 'text', 'text'], // when it is full, the queue, the name of the rate
} as const satisfies Readonly<Record<number, Layout>>;

/** A kind of entry that is in {@link LAYOUTS}. */
export type LaidOutKind = keyof typeof LAYOUTS;

type Values<L extends Layout> = { readonly [N in keyof L]: FieldTypes[L[N]] };

export type ValuesOf<K extends LaidOutKind> = Values<(typeof LAYOUTS)[K]>;

export function writeValues<K extends LaidOutKind>(writer: EntryWriter, kind: K, values: ValuesOf<K>): void {
  const layout: Layout = LAYOUTS[kind];
  for (let n = 0; n < layout.length; n++) writer[layout[n] as keyof FieldTypes](values[n] as never);
}

export function readValues<K extends LaidOutKind>(reader: EntryReader, kind: K): ValuesOf<K> {
  const layout: Layout = LAYOUTS[kind];
  return layout.map((field) => reader[field]()) as readonly unknown[] as ValuesOf<K>;
}

/** Where a durable broker writes its changes: see journal.ts. */
export interface StoreJournal {
  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - an earlier write has failed, or the folder was opened for reading. */
  requireAvailable(): void;
  /** Called before an operation: all of it is stored, or nothing. */
  begin(): void;
  /** A task was added, or has another payload. @param payload - that of the row, if it is not in memory. */
  task(row: TaskRow, payload?: Uint8Array): void;
  /** A task has moved, and a run may have changed it. */
  change(row: TaskRow): void;
  /** A task was removed, by itself or with its queue. */
  remove(row: TaskRow, isWithQueue: boolean): void;
  start(row: TaskRow): void;
  /** Anything else has changed: the kinds with a layout. @returns the bytes of the entry. */
  write<K extends LaidOutKind>(kind: K, ...values: ValuesOf<K>): number;
  /** Resolves when every entry until now is as durable as the options say. @returns undefined if that is so at once. */
  settled(): Promise<void> | undefined;
}

/** Where a task stands: its state, and when it entered it. */
export interface StoredState {
  readonly state: TaskState;
  readonly isStarted: boolean;
  /** Order in its list; of a started one, the epoch of its lease. */
  readonly serial: number;
  /** When it is due, expires, became pending or joined its group. */
  readonly atMs: number;
}

export type RunFields = Pick<TaskMessage, 'retried' | 'lastFailedAtMs' | 'completedAtMs' | 'lastError'> & {
  readonly recoveries: number;
};

/** What most tasks of a log have in common with others. */
export type TaskNames = Pick<TaskMessage, 'queue' | 'type' | 'key'>;

export interface TaskHead {
  readonly number: number;
  readonly stored: StoredState;
  readonly ran: RunFields;
  /** Where in the record its id begins, which `EntryReader.textAt` reads, and ends. */
  readonly idOffset: number;
  readonly idEnd: number;
  /** Those that were read before, if they are the same: they are in memory once. */
  readonly names: TaskNames;
}

/** What an entry of a task has, when it was read to its end. */
interface WholeEntry {
  readonly message: TaskMessage;
  /** When its lock ends; 0 if it has none. */
  readonly lockEndsMs: number;
  readonly result: Uint8Array | undefined;
  readonly progress: string | undefined;
  /** Where in the record its payload begins. */
  readonly payloadOffset: number;
}

const STARTED = 0x80;

/** What an entry has, besides what every entry of its kind has: most fields are zero or empty. */
const Has = {
  timeout: 1,
  deadline: 2,
  retention: 4,
  lock: 8,
  group: 16,
  headers: 32,
  result: 64,
  progress: 128,
} as const;
const Ran = { retried: 1, recoveries: 2, failedAt: 4, completedAt: 8, error: 16 } as const;

/** @returns where the payload begins. */
export function writeTask(
  writer: EntryWriter,
  number: number,
  stored: StoredState,
  lockEndsMs: number,
  { message, recoveries, result, progress }: Pick<TaskRow, 'message' | 'recoveries' | 'result' | 'progress'>,
  payload: Uint8Array,
): number {
  const { timeoutMs, deadlineMs, retentionMs, group, headers } = message;
  const headersJson = hasAny(headers) ? JSON.stringify(headers) : '';
  writer.number(number);
  writeState(writer, stored);
  writeRunFields(writer, message, recoveries);
  writer.text(message.queue);
  writer.text(message.id);
  writer.text(message.type);
  if (message.key !== '') writer.text(message.key);
  writer.text(message.uniqueKey);
  writer.number(message.maxRetry);
  const payloadStart = writer.blob(payload);
  writer.byte(
    (timeoutMs === 0 ? 0 : Has.timeout) |
      (deadlineMs === 0 ? 0 : Has.deadline) |
      (retentionMs === 0 ? 0 : Has.retention) |
      (lockEndsMs === 0 ? 0 : Has.lock) |
      (group === '' ? 0 : Has.group) |
      (headersJson === '' ? 0 : Has.headers) |
      (result === undefined ? 0 : Has.result) |
      (progress === undefined ? 0 : Has.progress),
  );
  if (timeoutMs !== 0) writer.number(timeoutMs);
  if (deadlineMs !== 0) writer.number(deadlineMs);
  if (retentionMs !== 0) writer.number(retentionMs);
  if (lockEndsMs !== 0) writer.number(lockEndsMs);
  if (group !== '') writer.text(group);
  if (headersJson !== '') writer.text(headersJson);
  if (result !== undefined) writer.blob(result);
  if (progress !== undefined) writer.text(progress);
  return payloadStart;
}

const NO_NAMES: TaskNames = Object.freeze({ queue: '', type: '', key: '' });
const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});
const NOT_RUN: RunFields = Object.freeze({
  ...{ retried: 0, recoveries: 0, lastFailedAtMs: 0, completedAtMs: 0, lastError: '' },
});

/** @param before - the names that were read before. */
export function readHead(reader: EntryReader, kind: number, before = NO_NAMES): TaskHead {
  const number = reader.number();
  const stored = readState(reader);
  const ran = readRunFields(reader);
  const queue = reader.textLike(before.queue);
  const idOffset = reader.offset;
  reader.skipText();
  const idEnd = reader.offset;
  const type = reader.textLike(before.type);
  const key = kind === Kind.keyedTask ? reader.textLike(before.key) : '';
  const isSame = queue === before.queue && type === before.type && key === before.key;
  const names = isSame ? before : { queue, type, key };
  return { number, stored, ran, idOffset, idEnd, names };
}

export function readBody(
  reader: EntryReader,
  id: string,
  { queue, type, key }: TaskNames,
  { retried, lastError, lastFailedAtMs, completedAtMs }: RunFields = NOT_RUN,
): WholeEntry {
  const uniqueKey = reader.textLike('');
  const maxRetry = reader.number();
  const payloadOffset = reader.offset + 4;
  const payload = reader.blob();
  const has = reader.byte();
  const timeoutMs = has & Has.timeout ? reader.number() : 0;
  const deadlineMs = has & Has.deadline ? reader.number() : 0;
  const retentionMs = has & Has.retention ? reader.number() : 0;
  const lockEndsMs = has & Has.lock ? reader.number() : 0;
  const group = has & Has.group ? reader.text() : '';
  const headers = has & Has.headers ? readHeaders(reader) : NO_HEADERS;
  const result = has & Has.result ? reader.blob() : undefined;
  const progress = has & Has.progress ? reader.text() : undefined;
  const message = {
    id,
    type,
    queue,
    payload,
    headers,
    key,
    maxRetry,
    retried,
    lastError,
    lastFailedAtMs,
    timeoutMs,
    deadlineMs,
    uniqueKey,
    retentionMs,
    completedAtMs,
    group,
  };
  return { message, lockEndsMs, result, progress, payloadOffset };
}

/** Frozen, as those of a new task: handlers receive the object, the same one in each run. */
function readHeaders(reader: EntryReader): Readonly<Record<string, string>> {
  return Object.freeze(JSON.parse(reader.text()) as Record<string, string>);
}

export function hasNotRun(ran: RunFields): boolean {
  return ran === NOT_RUN;
}

/** Payloads of at most this size are kept in memory; larger ones are read from the disk. */
export const LARGEST_IN_MEMORY_BYTES = 1_024;

/** Whether the entry of a task has a message and nothing else that must be known at once. Its head was read, its body was not. */
export function isOnlyMessage(reader: EntryReader, { ran }: TaskHead): boolean {
  if (!hasNotRun(ran) || reader.uint32Ahead(0) > 0) return false; // a unique key may have a lock
  const payloadBytes = reader.uint32Ahead(12);
  return (
    payloadBytes <= LARGEST_IN_MEMORY_BYTES &&
    (reader.byteAhead(16 + payloadBytes) & (Has.group | Has.result | Has.progress)) === 0
  );
}

export function writeState(writer: EntryWriter, { state, isStarted, serial, atMs }: StoredState): void {
  writer.byte(TASK_STATES.indexOf(state) | (isStarted ? STARTED : 0));
  writer.number(serial);
  writer.number(atMs);
}

/** @throws Error - the state is unknown. */
export function readState(reader: EntryReader): StoredState {
  const byte = reader.byte();
  const state = TASK_STATES[byte & ~STARTED];
  if (state === undefined) throw new Error('a task is in an unknown state');
  return { state, isStarted: (byte & STARTED) !== 0, serial: reader.number(), atMs: reader.number() };
}

export function writeRunFields(writer: EntryWriter, message: TaskMessage, recoveries: number): void {
  const { retried, lastFailedAtMs, completedAtMs, lastError } = message;
  writer.byte(
    (retried === 0 ? 0 : Ran.retried) |
      (recoveries === 0 ? 0 : Ran.recoveries) |
      (lastFailedAtMs === 0 ? 0 : Ran.failedAt) |
      (completedAtMs === 0 ? 0 : Ran.completedAt) |
      (lastError === '' ? 0 : Ran.error),
  );
  if (retried !== 0) writer.uint32(retried);
  if (recoveries !== 0) writer.uint32(recoveries);
  if (lastFailedAtMs !== 0) writer.number(lastFailedAtMs);
  if (completedAtMs !== 0) writer.number(completedAtMs);
  if (lastError !== '') writer.text(lastError);
}

export function readRunFields(reader: EntryReader): RunFields {
  const ran = reader.byte();
  if (ran === 0) return NOT_RUN;
  return {
    retried: ran & Ran.retried ? reader.uint32() : 0,
    recoveries: ran & Ran.recoveries ? reader.uint32() : 0,
    lastFailedAtMs: ran & Ran.failedAt ? reader.number() : 0,
    completedAtMs: ran & Ran.completedAt ? reader.number() : 0,
    lastError: ran & Ran.error ? reader.text() : '',
  };
}

function hasAny(headers: Readonly<Record<string, string>>): boolean {
  for (const _ in headers) return true;
  return false;
}
