import { TurnBudget } from '../../../core/own-turn.ts';
import type { Log } from '../../../log/log.ts';
import {
  corruptionOf,
  gapsOf,
  type CorruptionEvent,
  type DamagedPart,
  type LogPosition,
} from '../../../log/segment.ts';
import type { TaskState } from '../../task-state.ts';
import type { EnqueueEvent } from '../broker.ts';
import { EntryReader } from './entry-bytes.ts';
import {
  hasNotRun,
  isOfTask,
  isOnlyMessage,
  Kind,
  LARGEST_IN_MEMORY_BYTES,
  readBody,
  readHead,
  readRunFields,
  readState,
  readValues,
  type RunFields,
  type StoredState,
  type TaskHead,
  type TaskNames,
} from './journal-format.ts';
import { crcOf, journaled, JournaledRow, LiveEntries, PackedMemory, PayloadOnDisk } from './journaled-row.ts';
import { listOf, type QueueSettings, type QueueState } from './queue-state.ts';
import { RowsByNumber } from './row-index.ts';
import { isEarlier, TaskList, type TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/**
 * Reads a log, which may be open and written. Entries state what is true after a change, so the latest one counts, and one about a
 * task that is not known is left out. Rows are put in order at the end: compaction writes tasks again in another order.
 *
 * @param store - gets what the log holds when `finish` is called; a read that fails leaves it as it is.
 */
export async function replay(
  store: TaskStore,
  log: Log,
  onCorruption: (event: CorruptionEvent) => void,
): Promise<Loading> {
  const loading = new Loading(store);
  for (const gap of gapsOf(log.segments, log.segments[0]?.base ?? 0)) onCorruption(eventOf(gap.path, gap));
  for (const segment of log.segments) {
    const damaged = (piece: DamagedPart): void => {
      onCorruption(eventOf(segment.path, piece));
    };
    const reader = await log.openReader(segment);
    for await (const pieces of reader) {
      for (const piece of pieces) {
        if (piece.kind === 'damage') damaged(piece);
        if (piece.kind !== 'record') continue;
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
  }
  await loading.index();
  return loading;
}

/** The sequences of a log are those of records, and not of tasks: they are left out. */
export function eventOf(file: string, { offset, end, reason }: DamagedPart): CorruptionEvent {
  return corruptionOf(file, { offset, end, reason });
}

/** Rows of one queue and state that may not be in order yet: `active` are those that have started. */
class UnorderedList extends TaskList {
  #isInOrder = true;

  override push(row: TaskRow): void {
    if (this.tail !== undefined && this.tail.serial > row.serial) this.#isInOrder = false;
    super.push(row);
  }

  /** Takes its rows out, in order of arrival. */
  takeAll(take: (row: TaskRow) => void): void {
    if (!this.#isInOrder) this.#sort();
    for (let row = this.head; row !== undefined; row = this.head) {
      this.remove(row);
      take(row);
    }
  }

  #sort(): void {
    const rows = [...this].sort((a, b) => a.serial - b.serial);
    for (const row of rows) this.remove(row);
    for (const row of rows) super.push(row);
  }
}

/** What a log holds, in a store of its own. */
export class Loading {
  /** Complete when the rows are in the index. */
  readonly live = new LiveEntries();
  readonly #target: TaskStore;
  readonly #store: TaskStore;
  readonly #rows = new RowsByNumber<JournaledRow>();
  readonly #lists = new Map<QueueState, Map<TaskState, UnorderedList>>();
  /** Most rows go to the list of the row before. */
  #latestList: UnorderedList | undefined;
  #serial = 0;
  readonly #memory = new PackedMemory();
  #names: TaskNames | undefined;

  constructor(store: TaskStore) {
    this.#target = store;
    this.#store = store.blank();
  }

  record(payload: Buffer, position: LogPosition): void {
    const reader = new EntryReader(payload);
    for (let kind = reader.next(); kind !== undefined; kind = reader.next()) {
      if (kind === Kind.task || kind === Kind.keyedTask) this.#task(kind, reader, position);
      else if (isOfTask(kind)) this.#ofTask(kind, reader);
      else this.#other(kind, reader);
    }
  }

  /** Called when everything was read: only rows that are left get into the index, first those whose ids are packed. */
  async index(): Promise<void> {
    const budget = new TurnBudget();
    const others: JournaledRow[] = [];
    for (const [queue, lists] of this.#lists) {
      let count = 0;
      for (const { size } of lists.values()) count += size;
      queue.rows.reserve(count);
    }
    for (const row of this.#rows.values()) {
      const { idHash } = row;
      const isAdded = idHash !== undefined && listOf(row).queue.rows.addPacked(row, idHash);
      if (!isAdded) others.push(row);
      if (budget.spend()) await budget.next();
    }
    for (const row of others) {
      this.#indexById(row);
      if (budget.spend()) await budget.next();
    }
  }

  /**
   * Replaces what is in the store, with every row in order. Synchronous.
   *
   * @param leases - of runs that go on, by the numbers of their tasks; undefined if the workers were lost with their process.
   * @returns tasks that had started, and are at the head of their queue now.
   */
  finish(leases?: ReadonlyMap<number, number>): JournaledRow[] {
    const store = this.#target;
    const recovered: JournaledRow[] = [];
    store.adopt(this.#store, this.#serial);
    const wallNowMs = store.clock.wallNow();
    for (const [queue, lists] of this.#lists) {
      const started: TaskRow[] = [];
      for (const [state, list] of lists) {
        list.takeAll((row) => {
          if (state === 'active') started.push(row);
          else restore(store, row, queue, state);
        });
      }
      const { scheduled, retry, completed, archived } = queue.lists;
      // Those that are overdue run in the order in which they are armed.
      const waiting = [...scheduled.byTime, ...retry.byTime];
      if (retry.size > 0) waiting.sort((a, b) => (isEarlier(a, b) ? -1 : 1));
      for (const rows of [waiting, completed, archived])
        for (const row of rows) store.arm(row, row.atMs - wallNowMs);
      if (leases !== undefined) {
        for (const row of started) restoreLease(store, row, queue, leases.get(journaled(row).number));
        continue;
      }
      // Their workers were lost with the process. The last one first: each goes to the head of its queue.
      for (const row of started.reverse()) {
        row.recoveries++;
        store.toHead(row, queue);
        recovered.push(journaled(row));
      }
    }
    return recovered;
  }

  #task(kind: number, reader: EntryReader, position: LogPosition): void {
    const head = readHead(reader, kind, this.#names);
    const { number, names, stored } = head;
    this.#names = names;
    const queue = this.#store.openQueue(names.queue);
    this.#remove(this.#rows.get(number)); // it was written again
    const row = new JournaledRow(number);
    if (isOnlyMessage(reader, head)) row.pack(head, reader, this.#memory);
    else this.#fill(row, head, reader, position);
    this.live.move(row, position.segment, reader.size);
    this.#rows.set(row);
    this.#place(row, queue, stored);
    this.#serial = Math.max(this.#serial, number);
  }

  #fill(row: JournaledRow, head: TaskHead, reader: EntryReader, position: LogPosition): void {
    const { idOffset, names, ran } = head;
    const id = reader.textAt(idOffset);
    const { message, lockEndsMs, result, progress, payloadOffset } = readBody(reader, id, names, ran);
    const { length } = message.payload;
    const where = { position, start: payloadOffset, length, crc: crcOf(message.payload) };
    row.message =
      length > LARGEST_IN_MEMORY_BYTES ? { ...message, payload: new PayloadOnDisk(where) } : message;
    row.recoveries = ran.recoveries;
    row.result = result;
    row.progress = progress;
    if (lockEndsMs > 0) restoreLock(this.#store, row, lockEndsMs);
  }

  /** An entry about a task: one that is not known is left out. */
  #ofTask(kind: number, reader: EntryReader): void {
    const row = this.#rows.get(reader.number());
    if (row === undefined) return;
    if (kind === Kind.change) this.#change(row, reader);
    else if (kind === Kind.remove) this.#remove(row);
    else if (kind === Kind.start) this.#start(row, reader);
    else if (kind === Kind.result) row.result = reader.blob();
    else row.progress = reader.text();
  }

  #change(row: JournaledRow, reader: EntryReader): void {
    const stored = readState(reader);
    this.#ran(row, readRunFields(reader));
    this.#place(row, listOf(row).queue, stored);
    if (stored.state === 'completed' || stored.state === 'archived') this.#free(row);
  }

  #start(row: JournaledRow, reader: EntryReader): void {
    const stored = { state: 'pending', isStarted: true, serial: reader.number(), atMs: row.atMs } as const;
    this.#place(row, listOf(row).queue, stored);
  }

  #remove(row: JournaledRow | undefined): void {
    if (row === undefined) return;
    this.live.move(row, -1, row.bytes);
    this.#rows.delete(row);
    this.#free(row);
    listOf(row).remove(row);
  }

  /** If another row has the id, the removal of the older one was in a damaged record. */
  #indexById(row: JournaledRow): void {
    const { rows } = listOf(row).queue;
    const found = rows.get(row.id);
    const namesake = found && journaled(found);
    if (namesake !== undefined && namesake.number > row.number) {
      this.#remove(row);
    } else {
      if (namesake !== undefined) rows.delete(namesake);
      this.#remove(namesake);
      rows.add(row);
    }
  }

  #ran(row: JournaledRow, ran: RunFields): void {
    if (row.isPacked && hasNotRun(ran)) return;
    const { recoveries, ...fields } = ran;
    row.message = { ...row.message, ...fields };
    row.recoveries = recoveries;
  }

  /** A packed message has no unique key. */
  #free(row: JournaledRow): void {
    if (!row.isPacked) this.#store.locks.free(row);
  }

  #place(row: TaskRow, queue: QueueState, { state, isStarted, serial, atMs }: StoredState): void {
    row.list?.remove(row);
    row.serial = serial;
    row.atMs = atMs;
    this.#serial = Math.max(this.#serial, serial);
    this.#list(queue, isStarted ? 'active' : state).push(row);
  }

  #list(queue: QueueState, state: TaskState): UnorderedList {
    const latest = this.#latestList;
    if (latest?.queue === queue && latest.state === state) return latest;
    let lists = this.#lists.get(queue);
    if (lists === undefined) this.#lists.set(queue, (lists = new Map<TaskState, UnorderedList>()));
    let list = lists.get(state);
    if (list === undefined) lists.set(state, (list = new UnorderedList(queue, state)));
    this.#latestList = list;
    return list;
  }

  #other(kind: number, reader: EntryReader): void {
    const store = this.#store;
    if (kind === Kind.count) {
      const [wallMs, hasFailed, queue] = readValues(reader, kind);
      store.openQueue(queue).days.count(wallMs, hasFailed === 1);
    } else if (kind === Kind.queue) {
      const [queue, settings] = readValues(reader, kind);
      store.openQueue(queue).restore(settings as QueueSettings);
    } else if (kind === Kind.removeQueue) {
      this.#removeQueue(...readValues(reader, kind));
    } else if (kind === Kind.tick) {
      const [atMs, queue, entryKey] = readValues(reader, kind);
      store.openQueue(queue).setTick(entryKey, atMs);
    } else if (kind === Kind.bucket) {
      const [fullAtWallMs, queue, name] = readValues(reader, kind);
      store.openQueue(queue).pending.restoreBucket([name, fullAtWallMs]);
    } else if (kind === Kind.event) {
      const [atMs, entryId, taskId] = readValues(reader, kind);
      store.enqueueEvents.add(entryId, { atMs, taskId });
    } else if (kind === Kind.events) {
      const [entryId, events] = readValues(reader, kind);
      store.enqueueEvents.replace(entryId, events as EnqueueEvent[]);
    } else if (kind === Kind.serial) {
      const [limit] = readValues(reader, kind);
      this.#serial = Math.max(this.#serial, limit);
    }
  }

  #removeQueue(name: string): void {
    const queue = this.#store.queues.get(name);
    if (queue === undefined) return;
    for (const list of this.#lists.get(queue)?.values() ?? [])
      for (let row = list.head; row !== undefined; row = list.head) this.#remove(journaled(row));
    this.#lists.delete(queue);
    this.#store.queues.delete(name);
  }
}

/* How a row of an earlier process, or of another broker, comes into a store: everything but its list is filled in. */

/** Puts a row where it was. `row.atMs` is wall-clock time, `row.serial` its order. One that waits for a time must be armed. */
export function restore(store: TaskStore, row: TaskRow, queue: QueueState, state: TaskState): void {
  const { clock } = store;
  if (state === 'pending') {
    queue.pending.push(row);
  } else if (state === 'aggregating') {
    row.atMs = Math.min(clock.now() + row.atMs - clock.wallNow(), clock.now());
    queue.group(row.message.group).push(row);
  } else {
    queue.lists[state].push(row);
  }
}

/** Returns when the leases of a store end, by the numbers of their tasks: for {@link restoreLease}. */
export function leasesOf({ queues }: TaskStore): ReadonlyMap<number, number> {
  const active = Array.from(queues.values(), ({ lists }) => [...lists.active]).flat();
  return new Map(active.map((row) => [journaled(row).number, row.atMs]));
}

/** Its run goes on, with the same epoch. A lease whose end is not known is over: until it is recovered, its holder may settle. */
function restoreLease(store: TaskStore, row: TaskRow, queue: QueueState, endsAtMs?: number): void {
  const nowMs = store.clock.now();
  row.atMs = endsAtMs ?? nowMs;
  queue.lists.active.push(row);
  queue.pending.resume(row);
  store.arm(row, row.atMs - nowMs);
}

export function restoreLock({ clock, locks }: TaskStore, row: TaskRow, endsWallMs: number): void {
  locks.take(row.message.uniqueKey, row, clock.now() + endsWallMs - clock.wallNow());
}
