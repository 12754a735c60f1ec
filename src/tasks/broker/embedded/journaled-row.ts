import type { PayloadPart } from '../../../log/log.ts';
import { crc32, type LogPosition } from '../../../log/segment.ts';
import type { TaskMessage } from '../../task-options.ts';
import { EntryReader, EntryWriter } from './entry-bytes.ts';
import { LARGEST_IN_MEMORY_BYTES, readBody, type TaskHead, type TaskNames } from './journal-format.ts';
import { hashOfBytes } from './row-index.ts';
import { TaskRow } from './task-lists.ts';

/** The payload of a task in memory, if it is on the disk: empty, and has its position. */
export class PayloadOnDisk extends Uint8Array {
  readonly where: PayloadPart;

  constructor(where: PayloadPart) {
    super(0);
    this.where = where;
  }
}

/** The checksum with which a payload of a task is read back; 0 for one that stays in memory. */
export function crcOf(payload: Uint8Array): number {
  return payload.length > LARGEST_IN_MEMORY_BYTES ? crc32(payload) : 0;
}

/**
 * A row of a broker that has a journal.
 *
 * A reopen leaves the messages of waiting tasks packed, as the log has them, until they are needed: that is faster, and takes less than
 * half the memory. The tasks of a long queue are needed late.
 */
export class JournaledRow extends TaskRow {
  /** Number of the task in the log: no other row of the broker has ever had it. */
  readonly number: number;
  /** Number of the segment with the latest entry of all it has: 0 until that is written, -1 when the row was removed. */
  segment = 0;
  /** Size of that entry, in bytes. */
  bytes = 0;
  #packedIn: Buffer | undefined = undefined;
  #packedAt = 0;
  #names: TaskNames | undefined = undefined;

  /** @param message - may be left out if it is packed. */
  constructor(number: number, message?: TaskMessage) {
    super(message);
    this.number = number;
  }

  get isPacked(): boolean {
    return this.#packedIn !== undefined;
  }

  override get key(): string {
    return this.isPacked && this.#names !== undefined ? this.#names.key : super.key;
  }

  override get group(): string {
    return this.isPacked ? '' : super.group;
  }

  override get id(): string {
    return this.#packedIn === undefined ? super.id : new EntryReader(this.#packedIn, this.#packedAt).text();
  }

  /** The hash of its id, for a `RowIndex`, if the id is packed and ASCII. */
  get idHash(): number | undefined {
    if (this.#packedIn === undefined) return undefined;
    const start = this.#packedAt + 4;
    return hashOfBytes(this.#packedIn, start, start + this.#packedIn.readUInt32LE(this.#packedAt));
  }

  /** Packs a message without a group that no run has changed, of which the reader has read the head. */
  pack({ idOffset, idEnd, names }: TaskHead, reader: EntryReader, memory: PackedMemory): void {
    this.#names = names;
    this.#packedAt = memory.add(reader, idOffset, idEnd);
    this.#packedIn = memory.piece;
  }

  protected override unpack(): TaskMessage {
    if (this.#packedIn === undefined || this.#names === undefined) return super.unpack();
    const reader = new EntryReader(this.#packedIn, this.#packedAt);
    this.#packedIn = undefined;
    return readBody(reader, reader.text(), this.#names).message;
  }
}

/** A store that has a journal has no other rows. */
export function journaled(row: TaskRow): JournaledRow {
  if (row instanceof JournaledRow) return row;
  throw new Error(`task '${row.id}' is not in the journal`);
}

/** The latest entries of all tasks: their bytes, and how many of them are in each segment of the log. */
export class LiveEntries {
  bytes = 0;
  readonly #counts = new Map<number, { entries: number }>();

  isIn(segment: number): boolean {
    return (this.#counts.get(segment)?.entries ?? 0) > 0;
  }

  segmentRemoved(segment: number): void {
    this.#counts.delete(segment);
  }

  /** The latest entry of a row is in that segment now, or in none if that is negative. */
  move(row: JournaledRow, segment: number, bytes: number): void {
    if (row.segment > 0) {
      this.bytes -= row.bytes;
      this.#countOf(row.segment).entries--;
    }
    row.segment = segment;
    row.bytes = bytes;
    if (segment < 0) return;
    this.bytes += bytes;
    this.#countOf(segment).entries++;
  }

  #countOf(segment: number): { entries: number } {
    let count = this.#counts.get(segment);
    if (count === undefined) this.#counts.set(segment, (count = { entries: 0 }));
    return count;
  }
}

/** Size of a piece of memory: it is in use as long as one message is packed in it. */
const PIECE_BYTES = 16_384;

export class PackedMemory {
  /** The piece that has the latest message. */
  piece: Buffer = Buffer.alloc(0);
  #view = new DataView(this.piece.buffer);
  #used = 0;

  /** Copies the id of a task, and what the reader has not read of its entry. @returns where they begin in the piece. */
  add(reader: EntryReader, idOffset: number, idEnd: number): number {
    const { offset, left } = reader;
    const bytes = idEnd - idOffset + left;
    if (this.#used + bytes > this.piece.length) {
      this.piece = Buffer.allocUnsafeSlow(Math.max(bytes, PIECE_BYTES));
      this.#view = new DataView(this.piece.buffer);
      this.#used = 0;
    }
    const start = this.#used;
    const middle = reader.copy(idOffset, idEnd, this.piece, this.#view, start);
    this.#used = reader.copy(offset, offset + left, this.piece, this.#view, middle);
    return start;
  }
}

/** A task whose entry is not written yet. */
interface PendingTask {
  readonly row: JournaledRow;
  readonly bytes: number;
  readonly payload: Uint8Array;
  readonly payloadStart: number;
  readonly payloadCrc: number;
}

export class JournalRecord extends EntryWriter {
  readonly tasks: PendingTask[] = [];
  position: LogPosition | undefined;
  /** Settles when the record is as durable as the options require. */
  done: Promise<void> = Promise.resolve();
  #resolveWritten: (() => void) | undefined;
  #written: Promise<void> | undefined;

  /** Resolves when the host has the record. */
  get written(): Promise<void> {
    if (this.position !== undefined) return Promise.resolve();
    this.#written ??= Promise.race([
      new Promise<void>((resolve) => {
        this.#resolveWritten = resolve;
      }),
      this.done,
    ]);
    return this.#written;
  }

  writtenAt(position: LogPosition): void {
    this.position = position;
    this.#resolveWritten?.();
  }

  /** Called when it is as durable as the options require: its large payloads are read from the disk. */
  forgetPayloads(): void {
    const { position } = this;
    if (position === undefined) return;
    for (const { row, payload, payloadStart: start, payloadCrc: crc } of this.tasks) {
      const { payload: present } = row.message;
      const isPresent = present === payload || present instanceof PayloadOnDisk;
      if (payload.length <= LARGEST_IN_MEMORY_BYTES || !isPresent) continue;
      const where = { position, start, length: payload.length, crc };
      row.message = { ...row.message, payload: new PayloadOnDisk(where) };
    }
    this.tasks.length = 0; // the latest record stays in memory
  }
}
