import type { Log } from '../../../log/log.ts';
import type { CorruptionEvent, LogPosition } from '../../../log/segment.ts';
import type { DamagePiece } from '../../../log/segment-reader.ts';
import type { TaskMessage } from '../../task-message.ts';
import type { EnqueueEvent } from '../broker.ts';
import {
  ENTRIES,
  EntryReader,
  Kind,
  LARGEST_IN_MEMORY_BYTES,
  PayloadOnDisk,
  readRunFields,
  readState,
  readTask,
  type StoredState,
} from './journal-format.ts';
import { TaskList, TaskRow, type QueueSettings, type QueueState } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/** What a replay has found. */
export interface Replayed {
  /** Bytes of the latest entries of all tasks. */
  readonly liveBytes: number;
  /** Tasks that had started, and are at the head of their queue now. */
  readonly recovered: readonly TaskRow[];
}

/**
 * Reads a log into an empty store. Entries state what is true after a change, so the latest one counts, and one about a task that is
 * not known is left out. Rows are put in order at the end: compaction writes tasks again in another order.
 */
export async function replay(
  store: TaskStore,
  log: Log,
  onCorruption: (event: CorruptionEvent) => void,
): Promise<Replayed> {
  const loading = new Loading(store);
  for (const segment of log.segments) {
    const reader = await log.openReader(segment);
    try {
      const damaged = (piece: DamagedPart): void => {
        onCorruption(eventOf(segment.path, piece));
      };
      for (let pieces = await reader.next(); pieces.length > 0; pieces = await reader.next()) {
        for (const piece of pieces) {
          if (piece.kind === 'damage') damaged(piece);
          if (piece.kind !== 'record' || piece.type !== ENTRIES) continue;
          const { offset, sequence } = piece;
          try {
            loading.record(piece.payload, { segment: segment.number, offset, sequence });
          } catch (error) {
            damaged({ offset, end: piece.end, reason: `not entries of a broker: ${String(error)}` });
          }
        }
      }
      const missing = reader.missingAtEnd();
      if (missing !== undefined) damaged(missing);
    } finally {
      await reader.close();
    }
  }
  return loading.finish();
}

type DamagedPart = Pick<DamagePiece, 'offset' | 'end' | 'reason'>;

/** The sequences of a log are those of records, and not of tasks: they are left out. */
function eventOf(file: string, { offset, end, reason }: DamagedPart): CorruptionEvent {
  return { file, offset, bytes: end - offset, reason };
}

/** Rows of one queue that are not in order yet: `active` are those that have started. */
type UnorderedLists = Map<StoredState['state'], TaskList>;

class Loading {
  readonly #store: TaskStore;
  readonly #rows = new Map<number, TaskRow>();
  readonly #lists = new Map<QueueState, UnorderedLists>();
  #serial = 0;
  /** The message that was read before. */
  #before: TaskMessage | undefined;

  constructor(store: TaskStore) {
    this.#store = store;
  }

  record(payload: Buffer, position: LogPosition): void {
    const reader = new EntryReader(payload);
    for (let kind = reader.next(); kind !== undefined; kind = reader.next()) {
      if (kind === Kind.task) this.#task(reader, position, payload.length);
      else if (kind === Kind.change) this.#change(reader);
      else if (kind === Kind.remove) this.#remove(this.#rows.get(reader.number()));
      else if (kind === Kind.start) this.#start(reader);
      else if (kind === Kind.result) this.#with(reader, (row) => (row.result = reader.blob()));
      else if (kind === Kind.progress) this.#with(reader, (row) => (row.progress = reader.text()));
      else this.#other(kind, reader);
    }
  }

  /** Puts every row in order. */
  finish(): Replayed {
    let liveBytes = 0;
    const recovered: TaskRow[] = [];
    for (const row of this.#rows.values()) liveBytes += row.stored?.bytes ?? 0;
    this.#rows.clear();
    this.#store.startSerialAt(this.#serial);
    for (const [queue, lists] of this.#lists) {
      for (const [state, list] of lists) {
        if (state !== 'active') for (const row of inOrder(list)) this.#store.restore(row, queue, state);
      }
      // The last one first: each goes to the head of its queue.
      const started = lists.get('active');
      for (const row of started === undefined ? [] : inOrder(started).reverse()) {
        this.#store.restoreStarted(row, queue);
        recovered.push(row);
      }
    }
    return { liveBytes, recovered };
  }

  #task(reader: EntryReader, position: LogPosition, recordBytes: number): void {
    const task = readTask(reader, this.#before);
    const { number, stored, recoveries, lockEndsMs, message, result, progress, payloadOffset } = task;
    this.#before = message;
    const { length } = message.payload;
    const isLarge = length > LARGEST_IN_MEMORY_BYTES;
    const where = { position, recordBytes, start: payloadOffset, length };
    const queue = this.#store.openQueue(message.queue);
    // The one that had this number or this id before: it was written again, or its removal was in a damaged record.
    this.#remove(this.#rows.get(number) ?? queue.rows.get(message.id));
    const row = new TaskRow(isLarge ? { ...message, payload: new PayloadOnDisk(where) } : message);
    row.stored = { number, segment: position.segment, bytes: reader.size };
    row.recoveries = recoveries;
    row.result = result;
    row.progress = progress;
    this.#rows.set(number, row);
    queue.addRow(row);
    this.#place(row, queue, stored);
    if (lockEndsMs > 0) this.#store.restoreLock(row, lockEndsMs);
    this.#serial = Math.max(this.#serial, number);
  }

  #change(reader: EntryReader): void {
    this.#with(reader, (row) => {
      const stored = readState(reader);
      const { recoveries, ...ran } = readRunFields(reader);
      row.message = { ...row.message, ...ran };
      row.recoveries = recoveries;
      this.#place(row, this.#store.openQueue(row.message.queue), stored);
      if (stored.state === 'completed' || stored.state === 'archived') this.#store.locks.free(row);
    });
  }

  #start(reader: EntryReader): void {
    this.#with(reader, (row) => {
      const stored = { state: 'pending', isStarted: true, serial: reader.number(), atMs: row.atMs } as const;
      this.#place(row, this.#store.openQueue(row.message.queue), stored);
    });
  }

  #remove(row: TaskRow | undefined): void {
    if (row === undefined) return;
    this.#rows.delete(row.stored?.number ?? 0);
    this.#store.locks.free(row);
    row.list?.remove(row);
    this.#store.openQueue(row.message.queue).deleteRow(row);
  }

  #place(row: TaskRow, queue: QueueState, { state, isStarted, serial, atMs }: StoredState): void {
    row.list?.remove(row);
    row.serial = serial;
    row.atMs = atMs;
    this.#serial = Math.max(this.#serial, serial);
    const lists = this.#lists.get(queue) ?? new Map<StoredState['state'], TaskList>();
    this.#lists.set(queue, lists);
    const to = isStarted ? 'active' : state;
    const list = lists.get(to) ?? new TaskList(queue, to);
    lists.set(to, list);
    list.push(row);
  }

  #with(reader: EntryReader, apply: (row: TaskRow) => unknown): void {
    const row = this.#rows.get(reader.number());
    if (row !== undefined) apply(row);
  }

  #other(kind: number, reader: EntryReader): void {
    const store = this.#store;
    if (kind === Kind.count) {
      const [wallMs, hasFailed] = [reader.number(), reader.byte() === 1];
      store.openQueue(reader.text()).days.count(wallMs, hasFailed);
    } else if (kind === Kind.queue) {
      store.openQueue(reader.text()).restore(JSON.parse(reader.text()) as QueueSettings);
    } else if (kind === Kind.removeQueue) {
      this.#removeQueue(reader.text());
    } else if (kind === Kind.tick) {
      const atMs = reader.number();
      store.openQueue(reader.text()).setTick(reader.text(), atMs);
    } else if (kind === Kind.event) {
      const atMs = reader.number();
      store.addEvent(reader.text(), { atMs, taskId: reader.text() });
    } else if (kind === Kind.events) {
      store.enqueueEvents.set(reader.text(), JSON.parse(reader.text()) as EnqueueEvent[]);
    } else if (kind === Kind.serial) {
      this.#serial = Math.max(this.#serial, reader.number());
    }
  }

  #removeQueue(name: string): void {
    const queue = this.#store.queues.get(name);
    if (queue === undefined) return;
    for (const row of [...queue.rows.values()]) this.#remove(row);
    this.#lists.delete(queue);
    this.#store.queues.delete(name);
  }
}

/** Takes the rows out of a list, in order of arrival. */
function inOrder(list: TaskList): TaskRow[] {
  const rows = [...list].sort((a, b) => a.serial - b.serial);
  for (const row of rows) list.remove(row);
  return rows;
}
