import { inOwnTurn } from '../../../core/own-turn.ts';
import type { Log } from '../../../log/log.ts';
import type { CorruptionEvent, Segment } from '../../../log/segment.ts';
import type { DamagePiece, RecordPiece, SegmentReader } from '../../../log/segment-reader.ts';
import { EntryReader } from './entry-bytes.ts';
import { Kind, readBody, readHead } from './journal-format.ts';
import { JournaledRow, PayloadOnDisk } from './journaled-row.ts';
import { eventOf } from './replay.ts';
import type { StoreJournal } from './store-journal.ts';
import type { TaskStore } from './task-store.ts';

/** The journal, as compaction needs it. */
interface CompactedJournal extends Pick<StoreJournal, 'begin' | 'task' | 'queue' | 'events' | 'serial'> {
  readonly log: Log;
  /** Bytes of the latest entries of all tasks. */
  readonly liveBytes: number;
  /** Bytes of the files of the log. */
  readonly logBytes: number;
  /** Whether the latest entry of a task is in the segment. */
  isLive(segment: number): boolean;
  fileRemoved(segment: number): void;
  damaged(event: CorruptionEvent): void;
  /** Resolves when every entry until now is with the host. */
  written(): Promise<void>;
}

/** A log is compacted when it is larger than so many times what is live in it, and a file. */
const MOST_BYTES_PER_LIVE_BYTE = 2;

/** More files than this, besides full ones, are compacted anyway: a broker that is opened often leaves small ones. */
const MOST_SMALL_SEGMENTS = 32;

/** Bytes of the oldest segment that are read for each byte that is written, and at least: it must gain on the writer. */
const BYTES_PER_BYTE = 4;
const LEAST_BYTES = 32 * 1_024;

/** Bytes of one step, at most: a few milliseconds. */
const MOST_BYTES = 256 * 1_024;

/** Bytes after which other callbacks of the event loop have their turn. */
const BYTES_PER_TURN = 64 * 1_024;

/**
 * Keeps the log of a durable broker small, in steps: with each write, a piece of the oldest segment is read, and the tasks whose
 * latest entry is there are written again, at the end. Then everything that belongs to no task is written again, and the segment
 * is removed. One without live tasks is not read at all. After beanstalkd. A task whose record was damaged after it was read is written again from memory.
 *
 *      ┌── oldest ──┐┌─────────┐┌── written ──
 *      │ . a . . b .││ c . d . ││ e f  a b          . is dead: removed, or written again later
 *      └────────────┘└─────────┘└─────────────
 *          step ▲ ──► a and b are live: written again
 */
export class Compaction {
  readonly #store: TaskStore;
  readonly #journal: CompactedJournal;
  readonly #maxBytesPerFile: number;
  /** The segment that is to be removed, and what reads it. */
  #segment: Segment | undefined;
  #reader: SegmentReader | undefined;
  /** Whether the segment is read; or, after its end, whether everything else is being written or has been written. */
  #state: 'reading' | 'writing' | 'written' = 'reading';
  /** Damage in the segment that is read. */
  #damages: DamagePiece[] = [];
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
    try {
      if (this.#state === 'written') await this.#finish();
      else if (this.#state === 'writing') return;
      else if (this.#reader !== undefined) await this.#rewrite(this.#reader, writtenBytes);
      else if (this.#isNeeded()) await this.#begin();
    } catch {
      await this.close();
      this.#stuckWith = this.#journal.log.written;
    }
  }

  /** Stops it: before the log is closed. The next step begins with the first segment of the log that there is then. */
  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    this.#segment = undefined;
    this.#state = 'reading';
    this.#stuckWith = undefined;
    this.#damages = [];
    await reader?.close().catch(() => undefined);
  }

  #isNeeded(): boolean {
    const { log, logBytes, liveBytes } = this.#journal;
    const { segments, written } = log;
    if (segments.length < 2 || segments[0] === written) return false;
    const mostBytes = MOST_BYTES_PER_LIVE_BYTE * liveBytes + this.#maxBytesPerFile;
    return logBytes > mostBytes || segments.length > MOST_SMALL_SEGMENTS + mostBytes / this.#maxBytesPerFile;
  }

  async #begin(): Promise<void> {
    const { log } = this.#journal;
    const segment = log.segments[0] as Segment;
    this.#segment = segment;
    if (this.#journal.isLive(segment.number)) this.#reader = await log.openReader(segment);
    else this.#writeTheRest();
  }

  async #rewrite(reader: SegmentReader, writtenBytes: number): Promise<void> {
    const from = reader.position.offset;
    const bytes = Math.min(Math.max(writtenBytes * BYTES_PER_BYTE, LEAST_BYTES), MOST_BYTES);
    let turnFrom = from;
    while (reader.position.offset - from < bytes) {
      const pieces = await reader.next();
      for (const piece of pieces) {
        if (piece.kind === 'damage') this.#damages.push(piece);
        if (piece.kind !== 'record') continue;
        this.#rewriteRecord(piece, reader.segment.number);
        if (piece.offset - turnFrom < BYTES_PER_TURN) continue;
        turnFrom = piece.offset;
        await new Promise<void>(inOwnTurn);
      }
      if (pieces.length > 0) continue;
      this.#writeTheRest();
      return;
    }
  }

  /** Everything that belongs to no task. The segment can be removed when it is written. */
  #writeTheRest(): void {
    const { queues, enqueueEvents, serialLimit } = this.#store;
    this.#journal.serial(serialLimit);
    for (const queue of queues.values()) this.#journal.queue(queue);
    for (const [entryId, events] of enqueueEvents) this.#journal.events(entryId, events);
    this.#wait();
  }

  #wait(): void {
    this.#state = 'writing';
    this.#journal.written().then(
      () => {
        this.#state = 'written';
      },
      () => undefined,
    );
  }

  #rewriteRecord({ payload }: RecordPiece, segment: number): void {
    const reader = new EntryReader(payload);
    for (let kind = reader.next(); kind !== undefined; kind = reader.next()) {
      if (kind !== Kind.task && kind !== Kind.keyedTask) continue;
      const { number, id, names } = readHead(reader, kind);
      const row = this.#store.queues.get(names.queue)?.rows.get(id);
      if (!(row instanceof JournaledRow) || row.number !== number || row.segment !== segment) continue;
      this.#journal.begin();
      const { payload } = row.message;
      this.#journal.task(row, payload instanceof PayloadOnDisk ? readBody(reader).body.payload : payload);
    }
  }

  /** What was written again must be on the disk before the segment is removed. */
  async #finish(): Promise<void> {
    const { log } = this.#journal;
    const segment = this.#segment;
    if (segment !== undefined && this.#rewriteDamaged(segment)) {
      this.#wait();
      return;
    }
    await this.close();
    await log.sync();
    if (segment === undefined) return;
    await log.remove([segment]);
    this.#journal.fileRemoved(segment.number);
  }

  /** Writes again what was in damaged records, from memory. Payloads that are not there are lost. @returns whether it has found a task. */
  #rewriteDamaged(segment: Segment): boolean {
    const damages = this.#damages.splice(0);
    if (damages.length === 0) return false;
    let count = 0;
    for (const { rows } of this.#store.queues.values()) {
      for (const row of rows.values()) {
        if (!(row instanceof JournaledRow) || row.segment !== segment.number) continue;
        count++;
        this.#journal.begin();
        if (row.message.payload instanceof PayloadOnDisk) this.#store.losePayload(row);
        else this.#journal.task(row);
      }
    }
    if (count > 0) for (const damage of damages) this.#journal.damaged(eventOf(segment.path, damage));
    return count > 0;
  }
}
