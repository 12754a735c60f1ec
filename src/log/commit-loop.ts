import type { Clock, ClockTimeout } from '../core/clock.ts';
import { inOwnTurn, ownTurn } from '../core/own-turn.ts';
import type { AppendResult } from './segment.ts';

/** When a put resolves, and what its record survives then: the machine, or with the other two the process. */
export type Durability = 'always' | 'interval' | 'os';

/** Upper bounds of the duration of a commit, in seconds, from a tenth of a millisecond to ten seconds. */
export const COMMIT_BUCKETS = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5, 1, 10];

/** Maximum of one write: records, and bytes. The rest is written by the next one. */
const BATCH_RECORDS = 10_000;
const BATCH_BYTES = 8 * 1024 * 1024;

/**
 * Writes that may join the one before them, for one sync of all: enough for a caller that waits for a write twice, and comes once too
 * late. Each delays the puts before it by a write.
 */
const MOST_JOINS = 3;

/** What a commit loop writes to: a log, or a format of the disk queue. */
export interface CommitTarget<R> {
  /** Writes records in order, as `Log.append` does. */
  append(records: readonly R[]): Promise<AppendResult>;
  /** Makes what was appended durable. If it rejects, all records that were appended since the last `sync` are refused. */
  sync(): Promise<void>;
  /**
   * Whether a record may be appended now, although what was appended before is not synced: they share the sync, and are refused
   * together. Without this method none may.
   */
  joins?(record: R): boolean;
}

interface CommitEvents<R> {
  /** Returns the time in milliseconds, for the duration of a commit; `NaN` if that is not measured. */
  now(): number;
  /** Records were committed, and may have become readable. */
  committed(records: number, bytes: number, durationMs: number): void;
  /** A record was not written, and has left nothing behind. @returns the reason with which its `put` rejects. */
  refused(record: R, error: unknown): unknown;
}

interface PendingPut<R> {
  readonly record: R;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A step that runs after the puts before it, and while no batch is written. */
interface PendingStep {
  readonly step: () => Promise<void>;
}

/**
 * Group commit: one write and one sync for all puts that have arrived since the last one began.
 *
 *      put put put ──► pending ──► write ──► sync ──► all of them resolve
 *                         ▲ puts that arrive meanwhile are the next batch
 *
 * There is no artificial delay: a single put is written in the turn after its own. In that turn, and in the one between
 * two batches, callers whose puts have just resolved put again, and share the next sync. If the target lets them join, so do puts
 * that arrive in the turn between write and sync: those of callers that have waited for the write alone.
 *
 * A record is anything with a length in bytes: a message of the disk queue, or an object with a type, a payload, and the
 * position that its target assigns.
 */
export class CommitLoop<R extends { readonly length: number } = Uint8Array> {
  readonly #target: CommitTarget<R>;
  readonly #syncsEach: boolean;
  readonly #events: CommitEvents<R>;
  #pending: (PendingPut<R> | PendingStep)[] = [];
  #isRunning = false;

  /** @param syncsEach - whether a put resolves after the sync that covers it, or after its write. */
  constructor(target: CommitTarget<R>, syncsEach: boolean, events: CommitEvents<R>) {
    this.#target = target;
    this.#syncsEach = syncsEach;
    this.#events = events;
  }

  /** Resolves when the record is written, and durable if each batch is synced. */
  put(record: R): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#add({ record, resolve, reject });
    });
  }

  /** Runs a step after the puts that arrived before it, and before those that arrive later. */
  run(step: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#add({ step: () => step().then(resolve, reject) });
    });
  }

  #add(entry: PendingPut<R> | PendingStep): void {
    this.#pending.push(entry);
    if (this.#isRunning) return;
    this.#isRunning = true;
    inOwnTurn(() => void this.#loop());
  }

  async #loop(): Promise<void> {
    while (this.#pending.length > 0) {
      const pending = this.#pending;
      this.#pending = [];
      await this.#process(pending);
      await ownTurn();
    }
    this.#isRunning = false;
  }

  async #process(pending: readonly (PendingPut<R> | PendingStep)[]): Promise<void> {
    let at = 0;
    while (at < pending.length) {
      const entry = pending[at] as PendingPut<R> | PendingStep;
      if ('step' in entry) {
        await entry.step();
        at++;
      } else {
        const batch = batchFrom(pending, at);
        at += batch.length;
        await this.#commit(batch, at === pending.length);
      }
    }
  }

  /**
   * @param puts - those that join them are added.
   * @param isLast - whether no put before the next ones is left.
   */
  async #commit(puts: PendingPut<R>[], isLast: boolean): Promise<void> {
    const startMs = this.#events.now();
    const { appended, error } = await this.#write(puts, isLast);
    const done = puts.slice(0, appended);
    const bytes = done.reduce((sum, { record }) => sum + record.length, 0);
    this.#events.committed(appended, bytes, this.#events.now() - startMs);
    for (const { resolve } of done) resolve();
    for (const { record, reject } of puts.slice(appended)) reject(this.#events.refused(record, error));
  }

  /** Writes puts, and those that join them. @returns how many are as safe as promised: all of them, unless there is an error. */
  async #write(puts: PendingPut<R>[], isLast: boolean): Promise<AppendResult> {
    let done = 0;
    try {
      while (done < puts.length) {
        const mayJoin = this.#syncsEach && isLast;
        const { appended, error } = await (mayJoin
          ? this.#appendJoined(puts, done)
          : this.#append(puts, done));
        if (this.#syncsEach && appended > 0) await this.#target.sync();
        done += appended;
        if (error !== undefined) return { appended: done, error };
      }
      return { appended: done };
    } catch (error) {
      return { appended: done, error };
    }
  }

  /** Appends the puts from `start` on, and as long as all of them are written, those that join them. */
  async #appendJoined(puts: PendingPut<R>[], start: number): Promise<AppendResult> {
    let { appended, error } = await this.#append(puts, start);
    for (let joins = 0; joins < MOST_JOINS && start + appended === puts.length; joins++) {
      if (!(await this.#addLate(puts))) break;
      const late = await this.#append(puts, start + appended);
      appended += late.appended;
      error = late.error;
    }
    return { appended, error };
  }

  #append(puts: readonly PendingPut<R>[], start: number): Promise<AppendResult> {
    return this.#target.append(puts.slice(start).map(({ record }) => record));
  }

  /** Moves pending puts that may join those that are written. @returns whether there were some. */
  async #addLate(puts: PendingPut<R>[]): Promise<boolean> {
    if (this.#target.joins === undefined) return false;
    await ownTurn();
    const [first] = this.#pending;
    if (first === undefined || 'step' in first || !this.#target.joins(first.record)) return false;
    const late = batchFrom(this.#pending, 0);
    this.#pending.splice(0, late.length);
    puts.push(...late);
    return true;
  }
}

/** The puts from `start` on that are written together. */
function batchFrom<R extends { readonly length: number }>(
  pending: readonly (PendingPut<R> | PendingStep)[],
  start: number,
): PendingPut<R>[] {
  const batch: PendingPut<R>[] = [];
  let bytes = 0;
  for (let at = start; at < pending.length && batch.length < BATCH_RECORDS && bytes < BATCH_BYTES; at++) {
    const entry = pending[at] as PendingPut<R> | PendingStep;
    if ('step' in entry) break;
    batch.push(entry);
    bytes += entry.record.length;
  }
  return batch;
}

/**
 * Decides when writes are synced: after a number of operations, or some time after the first of them. No timeout is armed
 * while there is nothing to sync.
 */
export class SyncSchedule {
  readonly #clock: Clock;
  readonly #every: number;
  readonly #timeoutMs: number;
  readonly #onDue: () => void;
  #operations = 0;
  #isStopped = false;
  #timeout: ClockTimeout | undefined;

  constructor(clock: Clock, every: number, timeoutMs: number, onDue: () => void) {
    this.#clock = clock;
    this.#every = every;
    this.#timeoutMs = timeoutMs;
    this.#onDue = onDue;
  }

  count(operations: number): void {
    if (this.#isStopped) return;
    this.#operations += operations;
    if (this.#operations >= this.#every) this.#due();
    else if (this.#operations > 0) this.#arm();
  }

  /** A sync has failed: it is due again after the timeout, or after as many operations as before. */
  retry(): void {
    if (!this.#isStopped) this.#arm();
  }

  /** Nothing is due any more. */
  stop(): void {
    this.reset();
    this.#isStopped = true;
  }

  /** Everything is synced. */
  reset(): void {
    this.#operations = 0;
    this.#timeout?.cancel();
    this.#timeout = undefined;
  }

  #arm(): void {
    this.#timeout ??= this.#clock.setTimeout(() => {
      this.#due();
    }, this.#timeoutMs);
  }

  #due(): void {
    this.reset();
    this.#onDue();
  }
}
