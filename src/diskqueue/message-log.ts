import type { AppendResult } from '../log/segment.ts';

export type { AppendResult, CorruptionEvent } from '../log/segment.ts';

/**
 * Where a queue keeps its messages: the interface between `DiskQueue` and a format.
 *
 * What excludes what: `append` and `sync` are called one after another, from the commit loop; `read` from another loop; and
 * `saveAcks` one after another, from a third. These three lanes run beside each other, so a save of acknowledgements does
 * not wait for the sync of a put. `empty`, `close` and `remove` exclude everything else. Errors are those of the file
 * system, and leave everything as it was unless stated otherwise.
 */
export interface MessageLog {
  /** Number of messages that are not acknowledged. */
  readonly depth: number;
  /** Their bytes. Damage counts until it is found, and part of it may count until the end of the log has been read. */
  readonly bytes: number;

  /** The files with messages, the oldest first. */
  readonly segments: readonly SegmentSnapshot[];
  /** Where reading goes on; undefined if there is nothing to read, or it begins with the first file. */
  readonly cursor: CursorSnapshot | undefined;

  /**
   * Writes messages behind the last one, in order. They are with the host then, not yet on the disk.
   *
   * @returns how many were written: at least one, unless there is an `error`. The others have left nothing behind. If they
   * are to be durable, `sync` before the next call.
   */
  append(messages: readonly Uint8Array[]): Promise<AppendResult>;

  /**
   * Makes what was appended durable, and then readable if it was not yet. If it rejects, the messages of the last append
   * will never be readable if they were not yet. Messages that were readable and could not be made durable stay readable,
   * and every `sync` and `close` rejects until they are acknowledged.
   */
  sync(): Promise<void>;

  /** Returns the next messages to deliver: about one block of the disk, and none at the end. */
  read(): Promise<StoredMessage[]>;

  /** Marks a message as acknowledged, in memory; see `saveAcks`. */
  acknowledge(message: StoredMessage): void;

  /** Whether an acknowledgement is not saved durably yet. */
  readonly hasUnsavedAcks: boolean;

  /** Writes the acknowledgements, to the host or to the disk, and removes files that are not needed any more. */
  saveAcks(isDurable: boolean): Promise<void>;

  /** Drops every message. If it rejects, they are dropped here, but may be delivered again after a reopen. */
  empty(): Promise<void>;

  /** Makes everything durable, and closes the files. The log is not used any more then, even if it rejects. */
  close(): Promise<void>;

  /** Removes every file of the queue. After `close`. */
  remove(): Promise<void>;
}

/** A snapshot has the last of these files. */
export const MOST_SEGMENTS_SHOWN = 1_000;

/** A message that was read. */
export interface StoredMessage {
  /** Ascending; each format has its own count. */
  readonly sequence: number;
  /** A copy of its own. */
  readonly data: Uint8Array;
}

/** The state of a disk queue, for people: a copy. */
export interface DiskQueueSnapshot {
  /** Name of the queue. */
  readonly name: string;
  /** Number of messages that were put and not acknowledged. */
  readonly depth: number;
  /** Bytes of these messages. */
  readonly bytes: number;
  /** Of these messages, those that were delivered and are not settled. */
  readonly inFlight: number;
  /** Its files, the oldest first; if there are more than a thousand, the last ones. */
  readonly segments: readonly SegmentSnapshot[];
  /** Where reading goes on: the message that is read next, from the disk; undefined if that is the end of what was put, or the beginning. */
  readonly cursor: CursorSnapshot | undefined;
}

/** A file of a disk queue. */
export interface SegmentSnapshot {
  /** Path of the file. */
  readonly file: string;
  /** Bytes of its records. */
  readonly bytes: number;
  /** Number of its messages, acknowledged ones too; undefined in NSQ's format. */
  readonly messages: number | undefined;
}

/** A place in the files of a disk queue. */
export interface CursorSnapshot {
  /** Path of the file. */
  readonly file: string;
  /** Offset in it, in bytes. */
  readonly offset: number;
}
