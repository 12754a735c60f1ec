import { holdVirtualTime, ownTurn } from '../../../core/own-turn.ts';
import type { Log } from '../../../log/log.ts';
import type { CorruptionEvent, LogPosition, Segment } from '../../../log/segment.ts';
import type { FoundDamage } from '../../../log/recover-segments.ts';
import type { RecordPiece } from '../../../log/segment-reader.ts';
import { EntryReader } from './entry-bytes.ts';
import { Kind, readBody, readHead, type StoreJournal, type TaskHead } from './journal-format.ts';
import { JournaledRow, PayloadOnDisk, type LiveEntries } from './journaled-row.ts';
import { eventOf } from './replay.ts';
import type { TaskStore } from './task-store.ts';

/** The journal, as compaction needs it. */
interface CompactedJournal extends Pick<StoreJournal, 'begin' | 'task' | 'write'> {
  readonly log: Log;
  readonly live: LiveEntries;
  readonly logBytes: number;
  readonly meter: { readonly moved?: (bytes: number) => void; readonly removed?: () => void };
  damaged(event: CorruptionEvent): void;
  readonly isAvailable: boolean;
  /** The record with the latest entry; it has a position when the host has it. */
  readonly latest: { readonly position: LogPosition | undefined };
  /** Makes everything durable that was written, and has its payloads read from there. @throws if that fails: nothing is written any more then. */
  syncWritten(): Promise<void>;
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

/** How a step ends: the next one may come before the next write, or has nothing to do until then. */
type Pause = 'may go on' | 'waits for a write';

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
  /** What is done step by step; undefined before the first step, and after an error. */
  #work: AsyncGenerator<Pause, never> | undefined;
  /** Whether segments are being removed: everything that was live in them is durable elsewhere. */
  #isRemoving = false;
  /** Whether a step between two writes is to come. */
  #goesOn = false;
  /** Bytes of what belongs to no task, when it was written last. */
  #restBytes = 0;
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
      const work = (this.#work ??= this.#compact());
      let pause: Pause = 'may go on';
      while (pause === 'may go on' && this.#bytesLeft > 0) pause = (await work.next()).value;
      if (pause === 'may go on') this.#goOn();
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
      if (this.#isRemoving || this.#journal.isAvailable) await this.step(0);
    });
    void holdVirtualTime(going);
  }

  /** Stops it: before the log is closed. The next step begins with the first segment of the log that there is then. */
  async close(): Promise<void> {
    const work = this.#work;
    this.#work = undefined;
    this.#isRemoving = false;
    this.#stuckWith = undefined;
    this.#ownBytes = 0;
    await work?.return(undefined as never).catch(() => undefined); // closes its reader
  }

  /** Goes on for ever: each `yield` is where a step may end. */
  async *#compact(): AsyncGenerator<Pause, never> {
    for (;;) {
      const leaving: Segment[] = [];
      const damages: FoundDamage[] = [];
      for (let next = this.#next(leaving); next !== undefined; next = this.#next(leaving)) {
        if (this.#journal.live.isIn(next.number)) yield* this.#rewrite(next, damages);
        leaving.push(next);
        yield 'may go on';
      }
      if (leaving.length === 0) {
        yield 'waits for a write';
        continue;
      }
      yield* this.#writeRest();
      do {
        const { latest } = this.#journal;
        while (latest.position === undefined) yield 'waits for a write'; // of everything that was added until now
      } while (this.#rewriteDamaged(damages.splice(0)));
      await this.#journal.syncWritten();
      this.#ownBytes = 0;
      yield* this.#remove(leaving);
    }
  }

  /** Returns the segment that is to leave next: none if the log is small enough without those that leave already. */
  #next(leaving: readonly Segment[]): Segment | undefined {
    const { log, live } = this.#journal;
    const { segments } = log;
    const staying = segments.length - leaving.length;
    const next = segments[leaving.length];
    if (next === undefined || staying < 2) return undefined; // the last one is being written
    const hasBegun = leaving.length > 0;
    if (hasBegun && !live.isIn(next.number)) return next; // it costs nothing
    const bytes = leaving.reduce((sum, { end }) => sum - end, this.#journal.logBytes);
    const mostBytes = MOST_BYTES_PER_LIVE_BYTE * (live.bytes + this.#restBytes) + this.#maxBytesPerFile;
    // Half of a full segment may be unused, if the next record did not fit.
    const segmentsOf = (count: number): number => (2 * count) / this.#maxBytesPerFile;
    const mostSegments = MOST_SMALL_SEGMENTS + segmentsOf(mostBytes);
    // The rest is written in the end: the log must get smaller by more than that, or it would be compacted again at once, and for ever.
    const gain = hasBegun ? 2 * this.#restBytes : 0;
    return bytes + gain > mostBytes || staying + segmentsOf(gain) > mostSegments ? next : undefined;
  }

  /** Writes the tasks of a segment again whose latest entry is there. */
  async *#rewrite(segment: Segment, damages: FoundDamage[]): AsyncGenerator<Pause, void> {
    const reader = await this.#journal.log.openReader(segment);
    let turnFrom = 0;
    let from = reader.position.offset;
    for await (const pieces of reader) {
      for (const piece of pieces) {
        if (piece.kind === 'damage') damages.push({ segment, piece });
        if (piece.kind !== 'record') continue;
        this.#rewriteRecord(piece, segment.number);
        if (piece.offset - turnFrom < BYTES_PER_TURN) continue;
        turnFrom = piece.offset;
        await ownTurn();
      }
      const { offset } = reader.position;
      this.#bytesLeft -= offset - from;
      from = offset;
      if (this.#bytesLeft <= 0) yield 'may go on';
    }
  }

  /** Writes what belongs to no task. The segments can be removed when all of it is durable. */
  async *#writeRest(): AsyncGenerator<Pause, void> {
    let restBytes = 0;
    let turnBytes = 0;
    for (const bytes of this.#entriesOfRest()) {
      this.#journal.begin();
      this.#moved(bytes);
      restBytes += bytes;
      this.#bytesLeft -= bytes;
      turnBytes += bytes;
      if (this.#bytesLeft <= 0) yield 'may go on';
      if (turnBytes < BYTES_PER_TURN) continue;
      turnBytes = 0;
      await ownTurn();
    }
    this.#restBytes = restBytes;
  }

  /** Writes it entry by entry. What changes between two of them is written behind, or is seen by the loop. @returns bytes of each. */
  *#entriesOfRest(): Generator<number> {
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
    for (let head = nextHead(reader); head !== undefined; head = nextHead(reader)) {
      const { number, idOffset, names } = head;
      const id = reader.textAt(idOffset);
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
    this.#journal.meter.moved?.(bytes);
  }

  /** Removes segments, some in each step as its last thing. */
  async *#remove(segments: Segment[]): AsyncGenerator<Pause, void> {
    this.#isRemoving = true;
    while (this.#isRemoving) {
      // One after the other, each durably: a power cut must not bring back a task whose removal is in a later segment.
      for (const segment of segments.splice(0, REMOVED_AT_ONCE)) {
        await this.#journal.log.remove([segment]);
        this.#journal.live.segmentRemoved(segment.number);
        this.#journal.meter.removed?.();
      }
      this.#isRemoving = segments.length > 0;
      this.#bytesLeft = 0;
      yield 'may go on';
    }
  }

  /** Writes again what was in damaged records, from memory. Payloads that are not there are lost. @returns whether it has found a task. */
  #rewriteDamaged(damages: readonly FoundDamage[]): boolean {
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

/** Goes to the next entry with a whole task. @returns its head; undefined if there is none. */
function nextHead(reader: EntryReader): TaskHead | undefined {
  try {
    for (let kind = reader.next(); kind !== undefined; kind = reader.next())
      if (kind === Kind.task || kind === Kind.keyedTask) return readHead(reader, kind);
  } catch {
    // Not entries of a broker: replay has reported it, and has read no task from the rest of the record.
  }
  return undefined;
}
