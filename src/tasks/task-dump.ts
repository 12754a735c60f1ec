import { createReadStream } from 'node:fs';
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { EscapementError, wrongType, wrongValue } from '../core/errors.ts';
import { integer, type Check } from '../core/options.ts';
import { utcDay } from '../core/units.ts';
import { requireFiniteNumber, requireString } from '../core/validate.ts';
import { fieldsIn, requireExistingQueueName } from './argument-checks.ts';
import type { QueueLimits } from './broker/broker.ts';
import { requireLimits } from './broker/broker-settings.ts';
import { bytesOfBase64 } from './payload.ts';
import { LOCK_PREFIX, queuePrefixOf } from './task-identity.ts';
import { requireInt32, STORED_FIELDS, type TaskMessage } from './task-options.ts';
import { hostUnavailable } from './broker/broker-errors.ts';
import { TASKS_PER_PIECE, type Piece, type WholeQueue, type WholeTask } from './broker/transfer.ts';

/*
 * A dump: everything of a broker in a file of JSON lines, which other programs can read too.
 *
 *      {"format":"escapement-tasks","version":1,"tasks":2}           the first line: how many tasks follow
 *      {"queue":{"name":"default","isPaused":false,…}}               a queue, then its tasks in order
 *      {"task":{"id":"…","queue":"default","state":"pending",…}}     payload and result in base64, times in milliseconds
 *      {"entry":"…","events":[["ID OF A TASK",1795262400000]]}       what a schedule entry has enqueued, the oldest first
 *      {"end":true,"tasks":2}                                        the last line: without it the dump is not complete
 *
 * The fields of a queue are those of `WholeQueue`, those of a task are those of its message and of `WholeTask`. A reader refuses an
 * unknown version; it ignores unknown fields and lines.
 */

const FORMAT = 'escapement-tasks';
const VERSION = 1;

type Json = Readonly<Record<string, unknown>>;

/** Characters that are written at once, besides the last line: a string can have no more than 512 million. */
const CHARACTERS_PER_WRITE = 1_048_576;

/** Writes a dump beside its place, and moves it there when it is complete. */
export class DumpWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  /** Lines that are not in the file yet. */
  #text: string;
  #tasks = 0;

  private constructor(path: string, file: FileHandle, tasks: number) {
    this.#path = path;
    this.#file = file;
    this.#text = lineOf({ format: FORMAT, version: VERSION, tasks });
  }

  /** @throws EscapementError `ERR_QUEUE_NOT_EMPTY` - the file exists. */
  static async create(path: string, tasks: number): Promise<DumpWriter> {
    if (await ofHost(path, isThere(path))) {
      throw new EscapementError('ERR_QUEUE_NOT_EMPTY', `the dump ${path} exists already`);
    }
    await ofHost(path, rm(partOf(path), { force: true })); // of a copy that was killed; one that runs fails at its end
    return new DumpWriter(path, await ofHost(path, open(partOf(path), 'wx', 0o600)), tasks);
  }

  /** @returns the number of tasks of the piece. */
  async write(piece: Piece): Promise<number> {
    for (const line of jsonOf(piece)) {
      this.#text += lineOf(line);
      if (this.#text.length >= CHARACTERS_PER_WRITE) await this.#flush();
    }
    const tasks = piece.kind === 'tasks' ? piece.tasks.length : 0;
    this.#tasks += tasks;
    return tasks;
  }

  async finish(): Promise<void> {
    this.#text += lineOf({ end: true, tasks: this.#tasks });
    await this.#flush();
    await ofHost(this.#path, this.#file.sync());
    if (!(await this.#isPart())) {
      const message = `the dump ${this.#path} cannot be written: another copy to it has begun`;
      throw new EscapementError('ERR_BROKER_UNAVAILABLE', message);
    }
    await ofHost(this.#path, rename(partOf(this.#path), this.#path));
  }

  async close(): Promise<void> {
    const isLeft = await this.#isPart();
    await this.#file.close();
    if (isLeft) await rm(partOf(this.#path), { force: true });
  }

  /** Whether the part is the file of this writer: not after it was moved, or replaced by another copy. */
  async #isPart(): Promise<boolean> {
    const [own, part] = await Promise.all([
      this.#file.stat(),
      stat(partOf(this.#path)).catch(() => undefined),
    ]);
    return own.ino === part?.ino;
  }

  async #flush(): Promise<void> {
    const text = this.#text;
    this.#text = '';
    await ofHost(this.#path, this.#file.appendFile(text));
  }
}

function* jsonOf(piece: Piece): Generator<Json> {
  if (piece.kind === 'queue') yield { queue: piece.queue };
  else if (piece.kind === 'events') yield eventsToJson(piece);
  else for (const task of piece.tasks) yield { task: wholeTaskToJson(task) };
}

function lineOf(json: Json): string {
  return `${JSON.stringify(json)}\n`;
}

/** Waits for a call of the file system. @throws EscapementError `ERR_BROKER_UNAVAILABLE` - it has failed. */
async function ofHost<R>(path: string, call: Promise<R>): Promise<R> {
  try {
    return await call;
  } catch (error) {
    throw hostUnavailable(error, `the dump ${path} cannot be written`);
  }
}

/** Where a dump is until it is complete: a copy that was killed leaves it there, and the next one writes it anew. */
function partOf(path: string): string {
  return `${path}.part`;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/**
 * Reads a dump. Every method may reject with `ERR_WIRE_MESSAGE`: the dump is not valid or not complete; or with
 * `ERR_BROKER_UNAVAILABLE`: its file cannot be read.
 */
export class DumpReader {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async count(): Promise<number> {
    const parse = (line: Json): number => fieldsIn<{ tasks: number }>({ tasks: requireCount }, line).tasks;
    for await (const tasks of this.#read(parse)) return tasks;
    return 0;
  }

  async *read(): AsyncGenerator<Piece> {
    let read = 0;
    let tasks: WholeTask[] = [];
    const parse = (line: Json): Piece | WholeTask | undefined => {
      const { task, queue, entry, end } = line;
      if (end !== undefined && line['tasks'] !== read) {
        throw new Error(`${read} of ${String(line['tasks'])} tasks are there`);
      }
      if (task !== undefined) {
        read++;
        return wholeTaskFromJson(objectOf(task));
      }
      if (queue !== undefined) return { kind: 'queue', queue: wholeQueueFromJson(objectOf(queue)) };
      return entry === undefined ? undefined : eventsFromJson(line);
    };
    for await (const next of this.#read(parse)) {
      const [first] = tasks;
      const queue = first?.message.queue ?? '';
      const goesOn = next !== undefined && 'message' in next && next.message.queue === queue;
      if (tasks.length > 0 && (!goesOn || tasks.length === TASKS_PER_PIECE)) {
        yield { kind: 'tasks', queue, tasks };
        tasks = [];
      }
      if (next === undefined) continue;
      if ('message' in next) tasks.push(next);
      else yield next;
    }
  }

  /** Yields its lines as they are parsed. The first is that of the format, and the last is the end. */
  async *#read<R>(parse: (line: Json) => R): AsyncGenerator<R> {
    let number = 0;
    let last: Json = {};
    try {
      for await (const text of linesOf(this.#path)) {
        number++;
        last = objectOf(JSON.parse(text));
        if (number === 1) requireFormat(last);
        yield parse(last);
      }
      if (last['end'] !== true) throw new Error('the end is missing');
    } catch (error) {
      const unavailable = hostUnavailable(error, `the dump ${this.#path} cannot be read`);
      if (unavailable !== error) throw unavailable;
      const message = `${this.#path}, line ${number}: ${(error as Error).message}`;
      throw new EscapementError('ERR_WIRE_MESSAGE', message, { cause: error });
    }
  }
}

/** Not with `readline`, for which U+2028 ends a line, too. A line may have many chunks: each is searched once. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let line = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const [end = '', ...others] = String(chunk).split('\n');
    line += end;
    for (const next of others) {
      yield line;
      line = next;
    }
  }
  if (line !== '') yield line;
}

function requireFormat({ format, version }: Json): void {
  if (format !== FORMAT) throw new Error('it is not a dump of tasks');
  if (version !== VERSION) throw new Error(`version ${String(version)} is not known`);
}

function wholeTaskToJson({ message, result, ...others }: WholeTask): Json {
  return {
    ...message,
    payload: Buffer.from(message.payload).toString('base64'),
    ...others,
    result: result && Buffer.from(result).toString('base64'),
  };
}

const STATES = ['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const;

const requireCount = integer(0);

/* Checks of fields: values that every broker can hold, and names that `Inspector` accepts. */

const MESSAGE = {
  ...STORED_FIELDS,
  uniqueKey: requireString,
  group: requireString,
  lastFailedAtMs: requireFiniteNumber,
  deadlineMs: requireFiniteNumber,
  completedAtMs: requireFiniteNumber,
};
const TASK = { atMs: requireFiniteNumber, recoveries: requireInt32, lockEndsMs: requireFiniteNumber };
const QUEUE = {
  name: requireExistingQueueName,
  epoch: requireCount,
  ticks: rowsOf(requireString, requireFiniteNumber),
  days: rowsOf(requireDay, requireFiniteNumber, requireFiniteNumber),
  processedTotal: requireCount,
  failedTotal: requireCount,
};
const EVENTS = { entry: requireString, events: rowsOf(requireString, requireFiniteNumber) };

/** Requires an array of arrays, by the check of each of their columns. */
function rowsOf(...columns: readonly Check[]): Check {
  return (argument, rows) => {
    if (!Array.isArray(rows) || !rows.every(Array.isArray))
      throw wrongType(argument, 'an array of arrays', rows);
    for (const [nth, row] of (rows as readonly (readonly unknown[])[]).entries())
      for (const [at, check] of columns.entries()) check(`${argument}[${nth}][${at}]`, row[at]);
  };
}

function requireDay(argument: string, value: unknown): void {
  requireString(argument, value);
  const ms = Date.parse(value);
  if (Number.isNaN(ms) || utcDay(ms) !== value) throw wrongValue(argument, "a day: '2026-11-21'", value);
}

function wholeTaskFromJson(json: Json): WholeTask {
  const state = STATES.find((one) => one === json['state']);
  if (state === undefined) throw new Error(`'${String(json['state'])}' is not a state`);
  const { result, progress } = json;
  const fields = fieldsIn<Pick<TaskMessage, keyof typeof MESSAGE>>(MESSAGE, { key: '', ...json }); // older dumps have no keys
  requireOwnLock(fields);
  const headers = objectOf(json['headers']);
  for (const name of Object.keys(headers)) textIn(headers, name);
  const payload = bytesIn(json, 'payload');
  return {
    message: { ...fields, headers: Object.freeze(headers as Record<string, string>), payload },
    state,
    ...fieldsIn<Pick<WholeTask, keyof typeof TASK>>(TASK, json),
    result: result === undefined ? undefined : bytesIn(json, 'result'),
    progress: progress === undefined ? undefined : textIn(json, 'progress'),
  };
}

/** A lock is a key in Redis: no other key may be written. */
function requireOwnLock({ queue, uniqueKey }: Readonly<Record<'queue' | 'uniqueKey', string>>): void {
  const prefix = queuePrefixOf(queue) + LOCK_PREFIX;
  if (uniqueKey !== '' && !uniqueKey.startsWith(prefix))
    throw new Error(`uniqueKey must begin with '${prefix}', not be '${uniqueKey}'`);
}

function wholeQueueFromJson(json: Json): WholeQueue {
  const { isPaused, limits } = json;
  if (limits !== undefined) requireLimits('limits', limits);
  const fields = fieldsIn<Pick<WholeQueue, keyof typeof QUEUE>>(QUEUE, json);
  return { ...fields, isPaused: isPaused === true, limits: limits as QueueLimits | undefined };
}

function eventsToJson({ entryId, events }: Extract<Piece, { kind: 'events' }>): Json {
  return { entry: entryId, events: events.map(({ taskId, atMs }) => [taskId, atMs]) };
}

interface EventsLine {
  readonly entry: string;
  readonly events: readonly (readonly [taskId: string, atMs: number])[];
}

function eventsFromJson(json: Json): Piece {
  const { entry, events } = fieldsIn<EventsLine>(EVENTS, json);
  return { kind: 'events', entryId: entry, events: events.map(([taskId, atMs]) => ({ taskId, atMs })) };
}

// JSON, whose shape is checked.

function objectOf(value: unknown): Json {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
  throw new Error('an object is missing');
}

function textIn(json: Json, name: string): string {
  const value = json[name];
  requireString(name, value);
  return value;
}

function bytesIn(json: Json, name: string): Uint8Array {
  return new Uint8Array(bytesOfBase64(name, textIn(json, name)));
}
