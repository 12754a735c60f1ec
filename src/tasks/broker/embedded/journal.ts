import type { ClockTimeout } from '../../../core/clock.ts';
import { EscapementError } from '../../../core/errors.ts';
import { holdVirtualTime } from '../../../core/own-turn.ts';
import { measuredNow } from '../../../metrics/measure.ts';
import { CommitLoop, SyncSchedule, type CommitTarget, type Durability } from '../../../log/commit-loop.ts';
import { isDiskFull, isOutOfFiles } from '../../../log/file-system.ts';
import type { Log } from '../../../log/log.ts';
import {
  positionAfter,
  type AppendResult,
  type CorruptionEvent,
  type LogPosition,
} from '../../../log/segment.ts';
import { brokerClosed } from '../broker-errors.ts';
import {
  Kind,
  writeRunFields,
  writeState,
  writeTask,
  writeValues,
  type LaidOutKind,
  type StoredState,
  type StoreJournal,
  type ValuesOf,
} from './journal-format.ts';
import { Compaction } from './compaction.ts';
import { crcOf, journaled, JournalRecord, type LiveEntries } from './journaled-row.ts';
import { listOf } from './queue-state.ts';
import type { TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/** A record ends with the operation with which it gets this size: damage to it costs what is in it. */
const FULL_RECORD_BYTES = 4_096;

/** How long after the disk was full, or no file could be opened, it is tried again, in milliseconds. */
const TRY_AGAIN_MS = 1_000;

/** Reads the log again, into the store, after the disk was full. */
export type Reload = () => Promise<{ readonly log: Log; readonly live: LiveEntries }>;

export interface JournalOptions {
  readonly durability: Durability;
  readonly syncTimeoutMs: number;
  readonly maxBytesPerFile: number;
  /** Whether every change is refused. @default false */
  readonly isReadOnly?: boolean;
  /** What it throws is an uncaught exception, and stops nothing. */
  readonly onCorruption: (event: CorruptionEvent) => void;
}

/** What is measured: without a function that is not. Durations are in milliseconds. */
export interface JournalMeter {
  readonly committed?: (durationMs: number) => void;
  readonly synced?: (durationMs: number) => void;
  /** Compaction writes so many bytes again. */
  readonly moved?: (bytes: number) => void;
  /** A file of the log was compacted and removed. */
  readonly removed?: () => void;
}

/**
 * Writes what changes in a store to a log, so that a reopen finds it.
 *
 *      change ──► entry ──► open record ──┐                       ┌──► done: the operations of the record settle
 *      change ──► entry ──►     "         ├──► write ──► sync ────┤
 *                                         │                       └──► large payloads leave the memory
 *      changes that come meanwhile: the next record
 *
 * All entries of one synchronous operation are in one record, and a record is on the disk as a whole or not at all. Group
 * commit is that of the log. What a clock changes (a task becomes due, a retention ends) is written and not waited for: a reopen
 * finds it out again.
 */
export class Journal implements StoreJournal, CommitTarget<JournalRecord> {
  readonly #store: TaskStore;
  readonly #options: JournalOptions;
  readonly #commits: CommitLoop<JournalRecord>;
  readonly #schedule: SyncSchedule;
  readonly #reload: Reload;
  readonly #compaction: Compaction;
  #log: Log;
  /** The record that gets the next entry. */
  #open: JournalRecord | undefined;
  /** The record with the latest entry. */
  latest = new JournalRecord();
  /** Records that the host has, and that are to be synced before they settle. */
  #unsynced: JournalRecord[] = [];
  #failure: EscapementError | undefined;
  /** With `'interval'`: error after which changes that had settled may be lost, until a `flush` has rejected with it. */
  #loss: EscapementError | undefined;
  #nextAttempt: ClockTimeout | undefined;
  #isClosed = false;
  /** Number of entries that were written, or are to be. */
  entries = 0;
  live: LiveEntries;
  meter: JournalMeter = {};

  constructor(store: TaskStore, log: Log, live: LiveEntries, options: JournalOptions, reload: Reload) {
    this.#store = store;
    this.#log = log;
    this.live = live;
    this.#options = options;
    this.#reload = reload;
    if (options.isReadOnly === true)
      this.#failure = new EscapementError('ERR_BROKER_UNAVAILABLE', 'the folder was opened for reading');
    this.#compaction = new Compaction(store, this, options.maxBytesPerFile);
    this.#schedule = new SyncSchedule(store.clock, Infinity, options.syncTimeoutMs, () => {
      void holdVirtualTime(this.#commits.run(() => this.#sync()));
    });
    this.#commits = new CommitLoop<JournalRecord>(this, options.durability === 'always', {
      now: () => (this.meter.committed === undefined ? NaN : measuredNow(store.clock)),
      committed: (records, _, durationMs) => {
        this.meter.committed?.(durationMs);
        if (options.durability === 'interval') this.#schedule.count(records);
      },
      refused: (_, error) => this.#fail(error),
    });
  }

  get log(): Log {
    return this.#log;
  }

  get logBytes(): number {
    return this.#log.segments.reduce((sum, { end }) => sum + end, 0);
  }

  /** Called when a file that was read before is found to be damaged. */
  damaged(event: CorruptionEvent): void {
    this.#options.onCorruption(event);
  }

  get isAvailable(): boolean {
    return this.#failure === undefined && !this.#isClosed;
  }

  requireAvailable(): void {
    if (this.#failure !== undefined) throw copyOf(this.#failure);
  }

  /** Called before an operation: all of it is in one record. */
  begin(): void {
    if (this.#open !== undefined && this.#open.length >= FULL_RECORD_BYTES) this.#open = undefined;
  }

  /** Resolves when every entry until now is with the host: it survives the process then. */
  written(): Promise<void> {
    return this.latest.written;
  }

  settled(): Promise<void> | undefined {
    return this.#options.durability === 'interval' ? undefined : this.latest.done;
  }

  /** Resolves when every entry until now is on the disk. @throws EscapementError - one since the last `flush` is lost, and its operation had settled. */
  async flush(): Promise<void> {
    this.requireAvailable();
    await this.#commits.run(() => this.#sync());
    this.requireAvailable();
    const loss = this.#loss;
    this.#loss = undefined;
    if (loss !== undefined) throw loss;
  }

  /** Runs a step behind every entry until now. While it runs, nothing is appended, and nothing is compacted. */
  alone(step: () => Promise<void>): Promise<void> {
    return this.#commits.run(step);
  }

  task(added: TaskRow, payload: Uint8Array = added.message.payload): void {
    const row = journaled(added);
    const record = this.#begin(row.message.key === '' ? Kind.task : Kind.keyedTask);
    const lockEndsMs = this.#lockEndsMs(row);
    const start = writeTask(record, row.number, stateOf(this.#store, row), lockEndsMs, row, payload);
    // Computed now: compaction passes a view of memory that is used again.
    record.tasks.push({ row, bytes: record.end(), payload, payloadStart: start, payloadCrc: crcOf(payload) });
  }

  change(row: TaskRow): void {
    const record = this.#begin(Kind.change);
    record.number(journaled(row).number);
    writeState(record, stateOf(this.#store, row));
    writeRunFields(record, row.message, row.recoveries);
    record.end();
  }

  remove(removed: TaskRow, isWithQueue: boolean): void {
    const row = journaled(removed);
    this.live.move(row, -1, row.bytes);
    if (isWithQueue) return;
    const record = this.#begin(Kind.remove);
    record.number(row.number);
    record.end();
  }

  start(row: TaskRow): void {
    const record = this.#begin(Kind.start);
    record.number(journaled(row).number);
    record.number(row.serial);
    record.end();
  }

  write<K extends LaidOutKind>(kind: K, ...values: ValuesOf<K>): number {
    const record = this.#begin(kind);
    writeValues(record, kind, values);
    return record.end();
  }

  /** Called by the commit loop: writes the records that are complete now. */
  async append(records: readonly JournalRecord[]): Promise<AppendResult> {
    if (this.#open !== undefined && records.includes(this.#open)) this.#open = undefined;
    if (this.#failure !== undefined) return { appended: 0, error: this.#failure };
    const { appended, position, error } = await this.#log.append(records.map((record) => record.bytes));
    let at = position;
    let bytes = 0;
    for (const record of records.slice(0, appended)) {
      if (at === undefined) break;
      this.#written(record, at);
      bytes += record.length;
      at = positionAfter(at, record.length);
    }
    if (error === undefined && !this.#isClosed) await this.#compaction.step(bytes);
    return { appended, error };
  }

  /**
   * Called by the commit loop: a run begins when the host has its start, and may end before that is synced. Its end joins it: one sync
   * for both, not two.
   */
  joins(record: JournalRecord): boolean {
    return this.#log.fits(record.length);
  }

  /** Called by the commit loop: makes what was written durable. */
  async sync(): Promise<void> {
    // The compaction syncs, too: if that has failed, what was to be synced is lost.
    if (this.#unsynced.length > 0 && this.#failure !== undefined) throw this.#failure;
    await this.#syncLog();
    for (const record of this.#unsynced.splice(0)) record.forgetPayloads();
  }

  /** As `sync`, for compaction. @throws EscapementError - that failed, and nothing is written any more. */
  async syncWritten(): Promise<void> {
    try {
      await this.sync();
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Makes everything durable, and closes the files. @throws as `flush`, or the error of the host. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#nextAttempt?.cancel();
    this.#schedule.stop();
    await this.#commits.run(async () => {
      this.#failure ??= brokerClosed(); // a step of the compaction may have added entries behind this one
      await this.#compaction.close();
      await this.#log.close();
    });
    if (this.#loss !== undefined) throw this.#loss;
  }

  async #sync(): Promise<void> {
    if (this.#failure !== undefined) return;
    try {
      await this.#syncLog();
      this.#schedule.reset();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #syncLog(): Promise<void> {
    const { synced } = this.meter;
    const startMs = synced === undefined ? NaN : measuredNow(this.#store.clock);
    await this.#log.sync();
    synced?.(measuredNow(this.#store.clock) - startMs);
  }

  #begin(kind: number): JournalRecord {
    this.entries++;
    const record = this.#open ?? this.#openRecord();
    record.begin(kind);
    return record;
  }

  #openRecord(): JournalRecord {
    const record = new JournalRecord();
    // Refused at once: behind a step that reads the log again it would be written, and be about what the memory has had before.
    record.done =
      this.#failure === undefined ? this.#commits.put(record) : Promise.reject(copyOf(this.#failure));
    void holdVirtualTime(record.done).catch(() => undefined);
    this.#open = record;
    this.latest = record;
    return record;
  }

  /** Called when the host has a record: compaction finds its tasks. */
  #written(record: JournalRecord, position: LogPosition): void {
    record.writtenAt(position);
    record.release();
    for (const { row, bytes } of record.tasks) {
      if (row.segment >= 0) this.live.move(row, position.segment, bytes);
    }
    if (this.#options.durability === 'always') this.#unsynced.push(record);
    else record.forgetPayloads();
  }

  #lockEndsMs(row: TaskRow): number {
    const { clock, locks } = this.#store;
    const endsAtMs = locks.endOf(row);
    return endsAtMs === undefined ? 0 : clock.wallNow() + endsAtMs - clock.now();
  }

  /** Stops writing; if the disk is full, or no file can be opened, until that is over. */
  #fail(cause: unknown): EscapementError {
    if (this.#failure === undefined) {
      const until = isDiskFull(cause)
        ? 'until there is space on the disk'
        : isOutOfFiles(cause)
          ? 'until the process may open files again'
          : 'until it is opened again';
      const message = `the broker cannot write to its folder, and takes no changes ${until}: ${String(cause)}`;
      this.#failure = new EscapementError('ERR_BROKER_UNAVAILABLE', message, { cause });
      if (this.#options.durability === 'interval') this.#loss ??= lossOf(cause);
      if (isDiskFull(cause) || isOutOfFiles(cause)) this.#tryAgainLater();
    }
    return copyOf(this.#failure);
  }

  #tryAgainLater(): void {
    if (this.#isClosed) return;
    this.#nextAttempt = this.#store.clock.setTimeout(() => {
      void holdVirtualTime(this.#commits.run(() => this.#tryAgain()));
    }, TRY_AGAIN_MS);
  }

  /** The changes that were refused are in the memory: it is read from the log again. */
  async #tryAgain(): Promise<void> {
    if (this.#isClosed) return;
    const before = this.#log;
    try {
      await this.#compaction.close();
      await before.close().catch(() => undefined);
      const { log, live } = await this.#reload();
      this.#log = log;
      this.live = live; // at once: a task may expire in a later turn
      this.#unsynced = [];
      this.#failure = undefined;
      this.#open = undefined; // its entries were refused
      this.#store.reserveSerials();
      await before.close().catch(() => undefined); // files that were opened meanwhile, to read payloads
    } catch (error) {
      this.#failure = undefined;
      this.#fail(error);
    }
  }
}

function lossOf(cause: unknown): EscapementError {
  const message = `changes that were not flushed may be lost: the broker could not write to its folder: ${String(cause)}`;
  return new EscapementError('ERR_BROKER_UNAVAILABLE', message, { cause });
}

/** Each caller gets an error of its own, which names its operation. */
function copyOf({ code, message, cause }: EscapementError): EscapementError {
  return new EscapementError(code, message, { cause });
}

/** An active task is stored as one that is pending and has started: leases are not stored. */
function stateOf({ clock }: TaskStore, row: TaskRow): StoredState {
  const { state } = listOf(row);
  const { serial, atMs } = row;
  if (state === 'active') return { state: 'pending', isStarted: true, serial, atMs: clock.wallNow() };
  const isStarted = false;
  if (state !== 'aggregating') return { state, isStarted, serial, atMs };
  return { state, isStarted, serial, atMs: clock.wallNow() + atMs - clock.now() };
}
