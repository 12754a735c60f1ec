import type { LogPosition } from '../../../log/segment.ts';
import { EntryWriter } from './entry-bytes.ts';
import { LARGEST_IN_MEMORY_BYTES, PayloadOnDisk, type JournaledRow } from './journaled-row.ts';

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
