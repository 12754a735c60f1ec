import type { PayloadPart } from '../../../log/log.ts';
import { crc32, type LogPosition } from '../../../log/segment.ts';
import type { TaskMessage } from '../../task-options.ts';
import { EntryReader, EntryWriter } from './entry-bytes.ts';
import { readBody, type TaskNames } from './journal-format.ts';
import { TaskRow } from './task-lists.ts';

/** Payloads of at most this size are kept in memory; larger ones are read from the disk. */
export const LARGEST_IN_MEMORY_BYTES = 1_024;

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
  /** No other row of the broker has ever had it. */
  readonly number: number;
  /** Number of the segment with the latest entry of all it has: 0 until that is written, -1 when the row was removed. */
  segment = 0;
  /** Size of that entry, in bytes. */
  bytes = 0;
  #packedIn: Buffer | undefined = undefined;
  #packedAt = 0;
  #id = '';
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

  override get id(): string {
    return this.isPacked ? this.#id : super.id;
  }

  /** Packs a message that no run has changed, of which the reader has read everything in front of the body. */
  pack(id: string, names: TaskNames, reader: EntryReader, memory: PackedMemory): void {
    this.#id = id;
    this.#names = names;
    this.#packedAt = memory.add(reader);
    this.#packedIn = memory.piece;
  }

  protected override unpack(): TaskMessage {
    if (this.#packedIn === undefined || this.#names === undefined) return super.unpack();
    const reader = new EntryReader(this.#packedIn, this.#packedAt);
    this.#packedIn = undefined;
    return readBody(reader, this.#id, this.#names).message;
  }
}

/** A store that has a journal has no other rows. */
export function journaled(row: TaskRow): JournaledRow {
  if (row instanceof JournaledRow) return row;
  throw new Error(`task '${row.id}' is not in the journal`);
}

/** Size of a piece of memory: it is in use as long as one message is packed in it. */
const PIECE_BYTES = 16_384;

/** Memory of packed messages. */
export class PackedMemory {
  /** That of the latest message. */
  piece: Buffer = Buffer.alloc(0);
  #used = 0;

  /** Copies what the reader has not read of its entry. @returns where it begins in the piece. */
  add(reader: EntryReader): number {
    const bytes = reader.left;
    if (this.#used + bytes > this.piece.length) {
      this.piece = Buffer.allocUnsafeSlow(Math.max(bytes, PIECE_BYTES));
      this.#used = 0;
    }
    const start = this.#used;
    reader.copyRest(this.piece, start);
    this.#used += bytes;
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

/** Entries that are written together. */
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
