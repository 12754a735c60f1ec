import type { CorruptionEvent } from '../message-log.ts';

/** Of the files of a queue. */
export type QueueFormat = 'checked' | 'nsq';

/** Told how far it is. What it throws ends the reading. */
export type OnProgress = (bytesDone: number, bytesTotal: number) => void;

/**
 * A queue as it lies on the disk: what can be found out about it, and put in order, without opening it.
 *
 * Everything but the steps of a repair only reads. A queue that somebody has open changes meanwhile: what was found
 * then is what was there at some time.
 */
export interface StoredQueue {
  readonly name: string;
  readonly format: QueueFormat;
  /** Whether somebody has it open, as far as the lock says. go-diskqueue takes none. */
  isOpen(): Promise<boolean>;
  /** Bytes of its files. */
  size(): Promise<number>;
  /** Reads no more than opening it would. */
  summarize(): Promise<QueueSummary>;
  /** Reads every byte. */
  verify(onProgress: OnProgress): Promise<VerifyReport>;
  /** In their order. */
  messages(selection: MessageSelection): AsyncIterable<ListedMessage>;
  /** Reads every byte, and says what is to be done. */
  planRepair(onProgress: OnProgress): Promise<RepairPlan>;
}

export interface QueueSummary {
  /** Names of the files that hold messages, in their order. */
  readonly files: readonly string[];
  /** That are still there. */
  readonly messages: number;
  readonly unacknowledged: number;
  /** Of these files and what belongs to them. */
  readonly bytes: number;
}

export interface VerifyReport {
  readonly messages: number;
  readonly unacknowledged: number;
  readonly bytes: number;
  readonly problems: readonly CorruptionEvent[];
  /** What is no problem: what a crash may leave, and a repair. For people. */
  readonly notes: readonly string[];
}

export interface MessageSelection {
  /** The ones that are acknowledged and still there, too. */
  readonly isAll: boolean;
  /** Those before it are left out. */
  readonly from: number;
  /** Told of what is damaged, and left out. */
  readonly onDamage: (file: string, offset: number) => void;
}

export interface ListedMessage {
  /** With `nsq`, which numbers nothing: its place among those that are still there, from 1 on. */
  readonly sequence: number;
  readonly isAcknowledged: boolean;
  readonly data: Uint8Array;
}

export interface RepairPlan {
  /** To be done one after the other; none if all is in order. Between two, the queue is whole. */
  readonly steps: readonly RepairStep[];
  /** What no step brings back. */
  readonly lost: readonly LostMessages[];
}

export type RepairAction =
  /** Removes a file that holds nothing. */
  | 'remove'
  /** Cuts off a torn end, and ends the file. */
  | 'seal'
  /** Writes a part again that is there twice. */
  | 'mend'
  /** Replaces the file by one that holds what is whole in it. */
  | 'rewrite'
  /** Gives a file another name in which nothing can be read. */
  | 'set aside'
  /** Makes an empty file where one is missing. */
  | 'make'
  /** Writes what is acknowledged anew. */
  | 'write cursor';

export interface RepairStep {
  readonly action: RepairAction;
  /** The path of the file that is changed. */
  readonly file: string;
  /** For people: what, and why. */
  readonly detail: string;
  /** The path that the file, as it was, is kept under. */
  readonly keptAs?: string;
  run(): Promise<void>;
}

export interface LostMessages extends CorruptionEvent {
  /** How many of them were not acknowledged; undefined if nobody can tell. */
  readonly messages: number | undefined;
}
