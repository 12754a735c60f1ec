import { DAY_MS, utcDay } from '../../../core/units.ts';
import type { TaskState } from '../../task-state.ts';
import { brokerClosed } from '../broker-errors.ts';
import { TASKS_PER_PIECE, type Piece, type Transfer, type WholeQueue, type WholeTask } from '../transfer.ts';
import { limitsOf } from '../broker-settings.ts';
import type { DurableStore } from './durable-store.ts';
import { Kind } from './journal-format.ts';
import { loaded } from './payload-loading.ts';
import { listOf, type QueueSettings, type QueueState } from './queue-state.ts';
import { restore, restoreLock } from './replay.ts';
import type { TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/** Lists of a queue in the order in which they are read: what was active comes first in the pending list. */
const LISTED = ['active', 'pending', 'scheduled', 'retry', 'archived', 'completed'] as const;

/** Reads and writes everything of the embedded broker as it is. */
export class EmbeddedTransfer implements Transfer {
  readonly #store: TaskStore;
  /** Undefined if the broker has no folder. */
  readonly #folder: DurableStore | undefined;

  constructor(store: TaskStore, folder?: DurableStore) {
    this.#store = store;
    this.#folder = folder;
  }

  async *read(): AsyncGenerator<Piece> {
    const store = this.#store;
    for (const queue of [...store.queues.values()]) {
      yield { kind: 'queue', queue: wholeQueue(store, queue) };
      const rows = rowsOf(queue); // all at once: a row that moves meanwhile is read once all the same
      for (let first = 0; first < rows.length; first += TASKS_PER_PIECE) {
        this.#requireOpen(); // a log that is closed would open its files again
        const some = rows.slice(first, first + TASKS_PER_PIECE).filter(({ list }) => list !== undefined);
        const tasks = some.map((row) => this.#whole(row));
        yield { kind: 'tasks', queue: queue.name, tasks: await Promise.all(tasks) };
      }
    }
    for (const [entryId, events] of [...store.enqueueEvents]) {
      yield { kind: 'events', entryId, events: [...events] };
    }
  }

  async write(piece: Piece): Promise<number> {
    this.#requireOpen();
    const journal = this.#folder?.journal;
    journal?.requireAvailable();
    journal?.begin();
    let added = 0;
    if (piece.kind === 'queue') this.#writeQueue(piece.queue);
    else if (piece.kind === 'events') this.#writeEvents(piece);
    else for (const task of piece.tasks) if (this.#writeTask(task)) added++;
    await journal?.settled();
    return added;
  }

  #requireOpen(): void {
    if (this.#store.isClosed) throw brokerClosed();
  }

  async #whole(row: TaskRow): Promise<WholeTask> {
    const { clock, locks, settings } = this.#store;
    const { recoveries, result, progress } = row;
    const { state } = listOf(row);
    const toWallMs = clock.wallNow() - clock.now();
    const lockEndsAtMs = locks.endOf(row);
    const task = {
      ...{ state: state === 'active' ? 'pending' : state, result, progress },
      atMs: state === 'active' ? clock.wallNow() : atMsOf(row, state, toWallMs, settings.archiveRetentionMs),
      recoveries: state === 'active' ? recoveries + 1 : recoveries,
      lockEndsMs: lockEndsAtMs === undefined ? 0 : lockEndsAtMs + toWallMs,
    } as const;
    return this.#folder === undefined
      ? { ...task, message: row.message }
      : loaded(this.#folder, { ...task, message: row.message });
  }

  /** @returns false if the queue has a task with that id. */
  #writeTask({ message, state, atMs, recoveries, lockEndsMs, result, progress }: WholeTask): boolean {
    const store = this.#store;
    const queue = store.openQueue(message.queue);
    if (queue.rows.has(message.id)) return false;
    const row = store.newRow({ ...message, payload: new Uint8Array(message.payload) });
    row.recoveries = recoveries;
    row.result = result && new Uint8Array(result);
    row.progress = progress;
    row.serial = store.nextSerial();
    row.atMs = state === 'archived' ? atMs + store.settings.archiveRetentionMs : atMs;
    queue.rows.add(row);
    restore(store, row, queue, state);
    const isFree = store.locks.ownerOf(message.uniqueKey, store.clock.now()) === undefined;
    if (lockEndsMs > store.clock.wallNow() && isFree) restoreLock(store, row, lockEndsMs);
    store.journal?.begin();
    store.journal?.task(row);
    if (state === 'pending') queue.pending.announceAll();
    else if (state === 'aggregating') store.notifications.grouped(queue, message.group);
    else store.arm(row, row.atMs - store.clock.wallNow());
    return true;
  }

  #writeQueue(queue: WholeQueue): void {
    const store = this.#store;
    const state = store.openQueue(queue.name);
    state.restore(merged(state.settings, queue));
    state.pending.open(store);
    store.journal?.write(Kind.queue, state.name, state.settings);
    store.raiseSerial(queue.epoch);
  }

  #writeEvents({ entryId, events }: Extract<Piece, { kind: 'events' }>): void {
    const store = this.#store;
    const known = new Set(store.enqueueEvents.of(entryId).map(({ taskId, atMs }) => `${atMs} ${taskId}`));
    for (const event of events) {
      if (known.has(`${event.atMs} ${event.taskId}`)) continue;
      store.enqueueEvents.add(entryId, event);
      store.journal?.write(Kind.event, event.atMs, entryId, event.taskId);
    }
  }
}

function rowsOf(queue: QueueState): TaskRow[] {
  const listed = LISTED.flatMap((state) => [...queue.listsOf(state)].flatMap((list) => [...list]));
  const grouped = [...queue.listsWithSets('aggregating')].flatMap((list) => [...list]);
  return [...listed, ...grouped.sort((a, b) => a.serial - b.serial)];
}

function atMsOf(row: TaskRow, state: TaskState, toWallMs: number, archiveRetentionMs: number): number {
  if (state === 'aggregating') return row.atMs + toWallMs;
  return state === 'archived' ? row.atMs - archiveRetentionMs : row.atMs;
}

function wholeQueue(store: TaskStore, queue: QueueState): WholeQueue {
  const { days, isPaused, ticks, limits, processedTotal, failedTotal } = queue.settings;
  return {
    ...{ name: queue.name, epoch: store.serial, isPaused, limits, ticks, processedTotal, failedTotal },
    days: days.map(([day, processed, failed]) => [utcDay(day * DAY_MS), processed, failed]),
  };
}

/** Returns the larger of each. */
function merged(own: QueueSettings, other: WholeQueue): QueueSettings {
  const days = new Map(own.days.map(([day, ...counts]) => [day, counts]));
  for (const [date, processed, failed] of other.days) {
    const day = Date.parse(date) / DAY_MS;
    const [ownProcessed = 0, ownFailed = 0] = days.get(day) ?? [];
    days.set(day, [Math.max(processed, ownProcessed), Math.max(failed, ownFailed)]);
  }
  const ticks = new Map(own.ticks);
  for (const [entryKey, atMs] of other.ticks)
    ticks.set(entryKey, Math.max(atMs, ticks.get(entryKey) ?? atMs));
  return {
    isPaused: own.isPaused || other.isPaused,
    limits: own.limits ?? limitsOf(other.limits),
    buckets: own.buckets ?? [],
    ticks: [...ticks].sort(([, a], [, b]) => a - b),
    days: [...days].sort(([a], [b]) => a - b).map(([day, counts]) => [day, ...counts] as const),
    processedTotal: Math.max(own.processedTotal, other.processedTotal),
    failedTotal: Math.max(own.failedTotal, other.failedTotal),
  };
}
