import { holdVirtualTime, ownTurn } from '../../../core/own-turn.ts';
import type { Log } from '../../../log/log.ts';
import type { CorruptionEvent, LogPosition, Segment } from '../../../log/segment.ts';
import type { DamagePiece, RecordPiece, SegmentReader } from '../../../log/segment-reader.ts';
import { EntryReader } from './entry-bytes.ts';
import { Kind, readBody, readHead, type StoreJournal } from './journal-format.ts';
import { journaled, JournaledRow, PayloadOnDisk } from './journaled-row.ts';
import { eventOf } from './replay.ts';
import type { TaskStore } from './task-store.ts';

/** The journal, as compaction needs it. */
interface CompactedJournal extends Pick<StoreJournal, 'begin' | 'task' | 'write'> {
  readonly log: Log;
  readonly live: LiveEntries;
  /** Bytes of the files of the log. */
  readonly logBytes: number;
  fileRemoved(segment: number): void;
  moved(bytes: number): void;
  damaged(event: CorruptionEvent): void;
  /** Whether it can be written to. */
  readonly isAvailable: boolean;
  /** The record with the latest entry; it has a position when the host has it. */
  readonly latest: { readonly position: LogPosition | undefined };
  /** Makes everything durable that was written, and has its payloads read from there. @throws if that fails: nothing is written any more then. */
  syncWritten(): Promise<void>;
  /** Runs a step between two writes. */
  alone(step: () => Promise<void>): Promise<void>;
}

/** A log is compacted when it is larger than so many times what is live in it, and a file. */
const MOST_BYTES_PER_LIVE_BYTE = 2;

/** More files than this, besides full ones, are compacted anyway: a broker that is opened often leaves small ones. */
const MOST_SMALL_SEGMENTS = 32;

/** Bytes that one step reads for each byte that was written, or is not live any more, and at least: it must gain on the writer. */
const BYTES_PER_BYTE = 4;
const LEAST_BYTES = 32 * 1_024;

/** Maximum of what a step reads because of tasks that were removed: operations wait for a step. */
const MOST_BYTES_FOR_REMOVED = 1_024 * 1_024;

/** Bytes after which other callbacks of the event loop have their turn. */
const BYTES_PER_TURN = 64 * 1_024;

/** Files that one step removes: a write makes one at most. */
const REMOVED_AT_ONCE = 4;

/**
 * Keeps the log of a durable broker small, in steps, with each write and between writes: pieces of the oldest segments are read, and
 * the tasks whose latest entry is there are written again, at the end. Then everything that belongs to no task is written again, and
 * the segments are removed. Those without live tasks are not read at all. After beanstalkd. A task whose record was damaged after it
 * was read is written again from memory.
 *
 *      ┌── leaving ──┐┌─ reading ─┐┌─────────┐┌── written ──
 *      │ . . . . . . ││ . a . . b ││ c . d . ││ e f  a            . is dead: removed, or written again later
 *      └─────────────┘└───────────┘└─────────┘└─────────────
 *                             step ▲ ──► b is live: written again
 */
export class Compaction {
  readonly #store: TaskStore;
  readonly #journal: CompactedJournal;
  readonly #maxBytesPerFile: number;
  /** The first segments of the log, which are to be removed: what is live in them is written again, or will be. */
  #leaving: Segment[] = [];
  /** Reads the segment after them. */
  #reader: SegmentReader | undefined;
  /** Writes everything that belongs to no task, when enough segments are to leave. */
  #rest: Iterator<number, undefined> | undefined;
  /** The record that must be durable before they are removed. */
  #last: CompactedJournal['latest'] | undefined;
  /** Whether it is. */
  #isDurable = false;
  /** Whether a step between two writes is to come. */
  #goesOn = false;
  /** Bytes of it, when it was written last. */
  #restBytes = 0;
  /** Bytes of it that were written until now. */
  #restBytesWritten = 0;
  /** Damage that was found in them. */
  #damages: { readonly segment: Segment; readonly piece: DamagePiece }[] = [];
  /** Bytes that the present step may still read. */
  #bytesLeft = 0;
  /** Bytes that it has added to the log, and that are not written yet. */
  #ownBytes = 0;
  /** Bytes that were live after the latest step. */
  #liveBytes = 0;
  /** A segment that could not be read or removed is tried again when another one than this is written. */
  #stuckWith: Segment | undefined;

  constructor(store: TaskStore, journal: CompactedJournal, maxBytesPerFile: number) {
    this.#store = store;
    this.#journal = journal;
    this.#maxBytesPerFile = maxBytesPerFile;
  }

  /** Goes on after so many bytes were written. While it runs, nothing is appended to the log. */
  async step(writtenBytes: number): Promise<void> {
    if (this.#stuckWith !== undefined && this.#stuckWith === this.#journal.log.written) return;
    const ownBytes = Math.min(this.#ownBytes, writtenBytes);
    this.#ownBytes -= ownBytes;
    const removedBytes = Math.max(this.#liveBytes - this.#journal.live.bytes, 0);
    this.#bytesLeft = Math.max(
      (writtenBytes - ownBytes) * BYTES_PER_BYTE,
      Math.min(removedBytes * BYTES_PER_BYTE, MOST_BYTES_FOR_REMOVED),
      LEAST_BYTES,
    );
    try {
      let hasMore = true;
      while (hasMore && this.#bytesLeft > 0) hasMore = await this.#advance();
      if (hasMore) this.#goOn();
    } catch {
      await this.close();
      this.#stuckWith = this.#journal.log.written;
    }
    this.#liveBytes = this.#journal.live.bytes;
  }

  /** A step between two writes, or although there are none. Files can be removed when nothing can be written: the disk may be full. */
  #goOn(): void {
    if (this.#goesOn) return;
    this.#goesOn = true;
    const going = this.#journal.alone(async () => {
      this.#goesOn = false;
      if (this.#isDurable || this.#journal.isAvailable) await this.step(0);
    });
    void holdVirtualTime(going);
  }

  /** Stops it: before the log is closed. The next step begins with the first segment of the log that there is then. */
  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    this.#rest = undefined;
    this.#leaving = [];
    this.#last = undefined;
    this.#isDurable = false;
    this.#stuckWith = undefined;
    this.#damages = [];
    this.#ownBytes = 0;
    await reader?.close().catch(() => undefined);
  }

  /** @returns whether it can go on before the next write. */
  async #advance(): Promise<boolean> {
    if (this.#last !== undefined) return this.#last.position !== undefined && this.#remove();
    if (this.#reader !== undefined) return this.#rewrite(this.#reader);
    if (this.#rest !== undefined) return this.#writeRest(this.#rest);
    const next = this.#next();
    if (next === undefined) {
      if (this.#leaving.length === 0) return false;
      this.#rest = this.#entriesOfRest();
      this.#restBytesWritten = 0;
    } else if (this.#journal.live.isIn(next.number)) this.#reader = await this.#journal.log.openReader(next);
    else this.#leaving.push(next);
    return true;
  }

  /** Returns the segment that is to leave next: none if the log is small enough without those that leave already. */
  #next(): Segment | undefined {
    const { log, live } = this.#journal;
    const { segments, written } = log;
    const staying = segments.length - this.#leaving.length;
    const next = segments[this.#leaving.length];
    if (next === undefined || next === written || staying < 2) return undefined;
    const hasBegun = this.#leaving.length > 0;
    if (hasBegun && !live.isIn(next.number)) return next; // it costs nothing
    const bytes = this.#leaving.reduce((sum, { end }) => sum - end, this.#journal.logBytes);
    const mostBytes = MOST_BYTES_PER_LIVE_BYTE * (live.bytes + this.#restBytes) + this.#maxBytesPerFile;
    // Half of a full segment may be unused, if the next record did not fit.
    const segmentsOf = (count: number): number => (2 * count) / this.#maxBytesPerFile;
    const mostSegments = MOST_SMALL_SEGMENTS + segmentsOf(mostBytes);
    // The rest is written in the end: the log must get smaller by more than that, or it would be compacted again at once, and for ever.
    const gain = hasBegun ? 2 * this.#restBytes : 0;
    return bytes + gain > mostBytes || staying + segmentsOf(gain) > mostSegments ? next : undefined;
  }

  async #rewrite(reader: SegmentReader): Promise<boolean> {
    const { segment } = reader;
    let turnFrom = reader.position.offset;
    while (this.#bytesLeft > 0) {
      const from = reader.position.offset;
      const pieces = await reader.next();
      if (pieces.length === 0) {
        this.#reader = undefined;
        this.#leaving.push(segment);
        await reader.close();
        return true;
      }
      for (const piece of pieces) {
        if (piece.kind === 'damage') this.#damages.push({ segment, piece });
        if (piece.kind !== 'record') continue;
        this.#rewriteRecord(piece, segment.number);
        if (piece.offset - turnFrom < BYTES_PER_TURN) continue;
        turnFrom = piece.offset;
        await ownTurn();
      }
      this.#bytesLeft -= reader.position.offset - from;
    }
    return true;
  }

  /** Writes some of what belongs to no task. The segments can be removed when all of it is durable. */
  async #writeRest(rest: Iterator<number, undefined>): Promise<boolean> {
    let turnBytes = 0;
    while (this.#bytesLeft > 0) {
      const { value: bytes, done } = rest.next();
      if (done === true) {
        this.#rest = undefined;
        this.#restBytes = this.#restBytesWritten;
        this.#last = this.#journal.latest;
        return this.#last.position !== undefined;
      }
      this.#journal.begin();
      this.#moved(bytes);
      this.#restBytesWritten += bytes;
      this.#bytesLeft -= bytes;
      turnBytes += bytes;
      if (turnBytes < BYTES_PER_TURN) continue;
      turnBytes = 0;
      await ownTurn();
    }
    return true;
  }

  /** Writes it entry by entry. What changes between two of them is written behind, or is seen by the loop. @returns bytes of each. */
  *#entriesOfRest(): Generator<number, undefined> {
    const { queues, enqueueEvents, serialLimit } = this.#store;
    yield this.#journal.write(Kind.serial, serialLimit);
    for (const queue of queues.values()) {
      yield this.#journal.write(Kind.queue, queue.name, queue.settingsWithoutBuckets);
      for (const [name, fullAtMs] of queue.pending.buckets())
        yield this.#journal.write(Kind.bucket, fullAtMs, queue.name, name);
    }
    const written = new Set<string>(); // an entry that has an event comes to the end again
    for (const [entryId, events] of enqueueEvents) {
      if (written.has(entryId)) continue;
      written.add(entryId);
      yield this.#journal.write(Kind.events, entryId, events);
    }
  }

  #rewriteRecord({ payload, offset }: RecordPiece, segment: number): void {
    const reader = new EntryReader(payload);
    for (let kind = reader.next(); kind !== undefined; kind = reader.next()) {
      if (kind !== Kind.task && kind !== Kind.keyedTask) continue;
      const { number, id, names } = readHead(reader, kind);
      const row = this.#store.queues.get(names.queue)?.rows.get(id);
      if (!(row instanceof JournaledRow) || row.number !== number || row.segment !== segment) continue;
      const { payload: present } = row.message;
      let payload = present;
      if (present instanceof PayloadOnDisk) {
        const { position, start } = present.where;
        const { message, payloadOffset } = readBody(reader, id, names);
        const isHere = position.offset === offset && start === payloadOffset;
        if (position.segment === segment && !isHere) continue; // an older entry, with another payload
        payload = message.payload;
      }
      this.#journal.begin();
      this.#journal.task(row, payload);
      this.#moved(reader.size);
    }
  }

  #moved(bytes: number): void {
    this.#ownBytes += bytes;
    this.#journal.moved(bytes);
  }

  /** Removes some of the segments, as the last thing that a step does. */
  async #remove(): Promise<boolean> {
    if (this.#rewriteDamaged()) {
      this.#last = this.#journal.latest;
      return false;
    }
    if (!this.#isDurable) await this.#journal.syncWritten();
    this.#isDurable = true;
    // One after the other, each durably: a power cut must not bring back a task whose removal is in a later segment.
    for (const segment of this.#leaving.splice(0, REMOVED_AT_ONCE)) {
      await this.#journal.log.remove([segment]);
      this.#journal.fileRemoved(segment.number);
    }
    if (this.#leaving.length === 0) await this.close();
    this.#bytesLeft = 0;
    return true;
  }

  /** Writes again what was in damaged records, from memory. Payloads that are not there are lost. @returns whether it has found a task. */
  #rewriteDamaged(): boolean {
    const damages = this.#damages.splice(0);
    if (damages.length === 0) return false;
    const found = new Set<number>();
    const damaged = new Set(damages.map(({ segment }) => segment.number));
    for (const { rows } of this.#store.queues.values()) {
      for (const row of rows.values()) {
        if (!(row instanceof JournaledRow) || !damaged.has(row.segment)) continue;
        found.add(row.segment);
        this.#journal.begin();
        if (row.message.payload instanceof PayloadOnDisk) this.#store.losePayload(row);
        else this.#journal.task(row);
      }
    }
    for (const { segment, piece } of damages)
      if (found.has(segment.number)) this.#journal.damaged(eventOf(segment.path, piece));
    return found.size > 0;
  }
}

/** The latest entries of all tasks: their bytes, and how many of them are in each segment of the log. */
export class LiveEntries {
  bytes: number;
  readonly #counts = new Map<number, number>();

  /** @param bytes - of the entries of all rows. O(tasks). */
  constructor({ queues }: TaskStore, bytes: number) {
    this.bytes = bytes;
    for (const { rows } of queues.values())
      for (const row of rows.values()) this.#add(journaled(row).segment, 1);
  }

  isIn(segment: number): boolean {
    return (this.#counts.get(segment) ?? 0) > 0;
  }

  segmentRemoved(segment: number): void {
    this.#counts.delete(segment);
  }

  /** The latest entry of a row is in that segment now, or in none if that is negative. */
  move(row: JournaledRow, segment: number, bytes: number): void {
    if (row.segment > 0) {
      this.bytes -= row.bytes;
      this.#add(row.segment, -1);
    }
    row.segment = segment;
    row.bytes = bytes;
    if (segment < 0) return;
    this.bytes += bytes;
    this.#add(segment, 1);
  }

  #add(segment: number, count: number): void {
    this.#counts.set(segment, (this.#counts.get(segment) ?? 0) + count);
  }
}
