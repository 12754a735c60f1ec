import type { AppendResult } from '../log/segment.ts';

export type { AppendResult, CorruptionEvent } from '../log/segment.ts';

/**
 * Where a queue keeps its messages: the seam between `DiskQueue` and a format.
 *
 * `DiskQueue` calls `append` and `sync` from one loop, `read` from another, and the rest from anywhere, but never while
 * `empty` or `close` run. An error is the file system's own, and leaves everything as it was unless said otherwise.
 */
export interface MessageLog {
  /** Messages that are not acknowledged. */
  readonly depth: number;
  /** Their bytes. What is damaged counts until it is found. */
  readonly bytes: number;

  /**
   * Writes messages behind the last one, in order. Written they are with the host, not yet on the disk.
   *
   * @returns how many were written: one at least, unless there is an `error`. The others have left nothing behind; what
   * may be durable or lost as one ends there, so `sync` before the next call, if it is to be synced at all.
   */
  append(messages: readonly Uint8Array[]): Promise<AppendResult>;

  /**
   * Makes what was appended durable, and then readable if it was not yet. If it rejects, what was appended by the last
   * call is lost to the caller, and will never be readable if it was not yet. What was readable and could not be made
   * durable stays so, and every `sync` and `close` rejects until it is acknowledged.
   */
  sync(): Promise<void>;

  /** The next messages to hand out: about as many as one block of the disk holds, and none at the end. */
  read(): Promise<StoredMessage[]>;

  /** A message is done with. In memory only; see `saveAcks`. */
  acknowledge(message: StoredMessage): void;

  /** Whether there are acknowledgements that were not saved durably. */
  readonly hasUnsavedAcks: boolean;

  /** Writes down what is acknowledged: with the host, or on the disk. Frees the room that is not needed any more. */
  saveAcks(isDurable: boolean): Promise<void>;

  /** Drops every message. If it rejects, they are gone here, but may come again with the next open. */
  empty(): Promise<void>;

  /** Makes everything durable, and closes the files. The log is not used after that, also if it rejects. */
  close(): Promise<void>;

  /** Removes every file of the queue. After `close`. */
  remove(): Promise<void>;
}

/** A message as it was read. */
export interface StoredMessage {
  /** Ascending; what it is counted in is the format's business. */
  readonly sequence: number;
  /** A copy of its own. */
  readonly data: Uint8Array;
}
