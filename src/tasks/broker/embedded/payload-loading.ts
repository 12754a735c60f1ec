import { EscapementError, hasCode } from '../../../core/errors.ts';
import { holdVirtualTime } from '../../../core/own-turn.ts';
import { codeOf } from '../../../log/file-system.ts';
import { RECORD_HEADER_BYTES } from '../../../log/segment.ts';
import { taskNotFound } from '../broker-errors.ts';
import type { ReturningOperation } from '../broker-operations.ts';
import type { Broker, LeasedTask, TaskRecord } from '../broker.ts';
import { failedWith, type TaskMessage } from '../../task-options.ts';
import type { Journal } from './journal.ts';
import { PayloadOnDisk } from './journaled-row.ts';
import { findLeased } from './life-of-a-task.ts';
import type { TaskStore } from './task-store.ts';

interface TaskFolder {
  readonly store: TaskStore;
  readonly journal: Journal;
}

type ResultOf<O extends ReturningOperation> = Awaited<ReturnType<Broker[O]>>;

/** Returns the result of an operation with its payloads: the result itself if none is on the disk. */
type Loader<O extends ReturningOperation> = (
  folder: TaskFolder,
  result: ResultOf<O>,
) => ResultOf<O> | Promise<ResultOf<O>>;

/** How the payloads of what an operation returns are read. TypeScript checks that none is missing. */
export const PAYLOAD_LOADERS: { readonly [O in ReturningOperation]: Loader<O> } = {
  task: (folder, record) => (isLoaded(record) ? record : loaded(folder, record)),

  tasks: (folder, records) => (records.every(isLoaded) ? records : loadedOr(folder, records, standInFor)),

  scan(folder, piece) {
    if (piece.tasks.every(isLoaded)) return piece;
    return loadedOr(folder, piece.tasks, standInFor).then((tasks) => ({ ...piece, tasks }));
  },

  takeGroup(folder, taking) {
    const { set } = taking;
    const records = set?.messages.map((message) => ({ message })) ?? [];
    if (set === undefined || records.every(isLoaded)) return taking;
    return loadedOrLost(folder, records).then((found) => {
      const messages = found.map(({ message }) => message);
      return { ...taking, set: { ...set, messages } };
    });
  },

  dequeue(folder, tasks) {
    if (tasks.every(isLoaded)) return tasks;
    return loadedOrLost(folder, tasks).then(
      (found) => {
        // A server takes a queue for empty that returns fewer tasks than it may.
        if (found.length < tasks.length) announceWork(folder.store, tasks);
        return found;
      },
      (error: unknown) => {
        giveBack(folder.store, tasks);
        throw error;
      },
    );
  },

  recover: (folder, tasks) => (tasks.every(isLoaded) ? tasks : loadedOrLost(folder, tasks)),
};

function isLoaded({ message }: { readonly message: TaskMessage }): boolean {
  return !(message.payload instanceof PayloadOnDisk);
}

/** When a payload is read again that the disk has failed to read, in milliseconds. */
const READ_AGAIN_MS = 60_000;

/** A task in a list whose payload cannot be read: without a payload, and with the reason as its last error. */
function standInFor(record: TaskRecord, { message: lastError }: Error): TaskRecord {
  return { ...record, message: { ...record.message, payload: new Uint8Array(0), lastError } };
}

/**
 * Reads payloads. A task whose payload is lost is archived, one whose payload the disk fails to read is tried again later, and both are
 * left out: they must not keep the others from being run.
 */
function loadedOrLost<R extends { readonly message: TaskMessage }>(
  folder: TaskFolder,
  records: readonly R[],
): Promise<R[]> {
  return loadedOr(folder, records, ({ message }, error) => {
    if (isReadFailure(error)) putOff(folder, message, error);
    else lose(folder, message);
    return undefined;
  });
}

/**
 * Reads payloads. A task that was removed meanwhile is left out.
 *
 * @param instead - returns what takes the place of a task whose payload is lost or cannot be read; undefined to leave it out.
 */
async function loadedOr<R extends { readonly message: TaskMessage }>(
  folder: TaskFolder,
  records: readonly R[],
  instead: (record: R, error: EscapementError) => R | undefined,
): Promise<R[]> {
  const all = records.map((record) =>
    loaded(folder, record).catch((error: unknown) => {
      if (hasCode(error, 'ERR_TASK_NOT_FOUND')) return undefined;
      if (hasCode(error, 'ERR_WIRE_MESSAGE') || isReadFailure(error)) return instead(record, error);
      throw error;
    }),
  );
  return (await Promise.all(all)).filter((record) => record !== undefined);
}

/** Whether the disk has failed: the next attempt is not likely to succeed at once, as it is when too many files are open. */
function isReadFailure(error: unknown): error is EscapementError {
  return error instanceof EscapementError && codeOf(error.cause) === 'EIO';
}

function putOff({ store, journal }: TaskFolder, message: TaskMessage, { message: reason }: Error): void {
  const row = store.queues.get(message.queue)?.rows.get(message.id);
  if (row?.message.payload !== message.payload) return;
  const wallNowMs = store.clock.wallNow();
  journal.begin();
  row.message = failedWith(row.message, reason, 0, wallNowMs);
  store.makeRetry(row, wallNowMs + READ_AGAIN_MS);
}

function lose({ store, journal }: TaskFolder, message: TaskMessage): void {
  const row = store.queues.get(message.queue)?.rows.get(message.id);
  const { payload } = message;
  if (row?.message.payload !== payload || !(payload instanceof PayloadOnDisk)) return;
  const { position, start, length: bytes } = payload.where;
  const file = journal.log.segments.find(({ number }) => number === position.segment)?.path ?? '';
  journal.begin();
  store.losePayload(row);
  const offset = position.offset + RECORD_HEADER_BYTES + start;
  journal.damaged({ file, offset, bytes, reason: 'a payload is damaged' });
}

function announceWork({ queues }: TaskStore, [task]: readonly LeasedTask[]): void {
  if (task !== undefined) queues.get(task.message.queue)?.pending.announceAll();
}

/** Returns tasks to the head of their queues that could not be read, in order. */
function giveBack(store: TaskStore, tasks: readonly LeasedTask[]): void {
  store.journal?.begin();
  for (const task of tasks.toReversed()) {
    const row = findLeased(store, task);
    if (row !== undefined) store.release(row);
  }
}

export async function loaded<R extends { readonly message: TaskMessage }>(
  { store, journal }: TaskFolder,
  record: R,
): Promise<R> {
  const { message } = record;
  for (let { payload } = message; ;) {
    if (!(payload instanceof PayloadOnDisk)) return { ...record, message: { ...message, payload } };
    const bytes = await holdVirtualTime(journal.log.read(payload.where)).catch((error: unknown) => {
      throw payloadUnreadable(message, error);
    });
    if (bytes !== undefined) {
      return { ...record, message: { ...message, payload: new Uint8Array(bytes.buffer) } };
    }
    // Compaction has moved it meanwhile, or it is damaged.
    const present = store.queues.get(message.queue)?.rows.get(message.id)?.message.payload;
    if (present === undefined) throw taskNotFound(message.queue, message.id);
    if (present === payload) throw payloadLost(message);
    payload = present;
  }
}

function payloadLost({ id, queue }: TaskMessage): EscapementError {
  const message = `the payload of task '${id}' of queue '${queue}' cannot be read: it is damaged`;
  return new EscapementError('ERR_WIRE_MESSAGE', message);
}

function payloadUnreadable({ id, queue }: TaskMessage, cause: unknown): EscapementError {
  const message = `the payload of task '${id}' of queue '${queue}' cannot be read now: ${String(cause)}`;
  return new EscapementError('ERR_BROKER_UNAVAILABLE', message, { cause });
}
