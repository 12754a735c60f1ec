import { ifThere, isMissing, unlinkIfThere, type FileSystem } from '../../log/file-system.ts';
import type { CorruptionEvent } from '../message-log.ts';
import { LogLock } from '../../log/log-lock.ts';

export type QueueFormat = 'checked' | 'nsq';

/** Called with how far a command has come. An error that it throws ends the command. */
export type OnProgress = (bytesDone: number, bytesTotal: number) => void;

/** There is no way to repair a queue that keeps every intact message in its place. Nothing was changed. */
export class CannotRepair extends Error {
  override readonly name = 'CannotRepair';
}

/**
 * A queue as it is on the disk: inspects and repairs its files without opening it.
 *
 * Only the steps of a repair write. The files of an open queue change meanwhile: results are of some time in between.
 */
export abstract class StoredQueue {
  readonly name: string;
  abstract readonly format: QueueFormat;
  protected readonly files: FileSystem;
  protected readonly folder: string;

  constructor(files: FileSystem, folder: string, name: string) {
    this.files = files;
    this.folder = folder;
    this.name = name;
  }

  /** Whether the lock of the queue is held. go-diskqueue takes no lock. */
  isOpen(): Promise<boolean> {
    return LogLock.isHeld(this.folder, this.name);
  }

  /** Returns the bytes of the queue's files. */
  async size(): Promise<number> {
    let bytes = 0;
    for (const name of await this.files.list(this.folder)) {
      if (this.owns(name)) bytes += await ifThere(this.files.size(this.pathOf(name)), 0); // its owner may have removed it
    }
    return bytes;
  }

  /** Reads no more than opening it would. */
  abstract summarize(): Promise<QueueSummary>;
  /** Reads every byte. */
  abstract verify(onProgress: OnProgress): Promise<VerifyReport>;
  /** Lists messages in order. */
  abstract messages(selection: MessageSelection): AsyncIterable<ListedMessage>;
  /** Reads every byte, and returns the steps of a repair. */
  abstract planRepair(onProgress: OnProgress): Promise<RepairPlan>;

  /** Whether a file in the folder belongs to the queue, by its name. */
  protected abstract owns(name: string): boolean;

  protected pathOf(name: string): string {
    return `${this.folder}/${name}`;
  }
}

/** Attempts to read a queue whose owner removes files meanwhile. */
const MAX_ATTEMPTS = 20;

/** Repeats a reading action while a file that it needs is removed by the owner of the queue. */
export async function untilNothingIsRemoved<R>(action: () => Promise<R>): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await action();
    } catch (error) {
      const isRemoved = isMissing(error) || isMissing((error as Error).cause);
      if (!isRemoved || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

interface QueueSize {
  /** Number of messages in the files. */
  readonly messages: number;
  readonly unacknowledged: number;
  /** Bytes of all files of the queue. */
  readonly bytes: number;
}

export interface QueueSummary extends QueueSize {
  /** Names of the files that hold messages, in order. */
  readonly files: readonly string[];
}

export interface VerifyReport extends QueueSize {
  readonly problems: readonly CorruptionEvent[];
  /** Findings that are not problems: what a crash or a repair may leave. */
  readonly notes: readonly string[];
}

export interface MessageSelection {
  /** Whether acknowledged messages that are still in the files are listed, too. */
  readonly isAll: boolean;
  /** The first sequence number that is listed. */
  readonly from: number;
  /** Called for each damaged part that is left out. */
  readonly onDamage: (file: string, offset: number) => void;
}

export interface ListedMessage {
  /** In the `nsq` format, which has no sequence numbers: counted from 1 over the messages that are still in the files. */
  readonly sequence: number;
  readonly isAcknowledged: boolean;
  readonly data: Uint8Array;
}

export interface RepairPlan {
  /** To be run in order; empty if there is nothing to do. Between two steps the queue can be opened. */
  readonly steps: readonly RepairStep[];
  /** Messages that cannot be recovered. */
  readonly lost: readonly LostMessages[];
}

type RepairAction =
  | 'remove' // removes a file without messages
  | 'seal' // cuts off a torn end, and ends the file
  | 'mend' // rewrites a part of which there is a second copy
  | 'rewrite' // replaces the file by one with all of its intact messages
  | 'set aside' // renames a file in which nothing can be read
  | 'make' // creates an empty file where one is missing
  | 'write cursor'; // writes the acknowledgements again

export interface RepairStep {
  readonly action: RepairAction;
  /** Path of the file that is changed. */
  readonly file: string;
  /** What is done, and why, in plain words. */
  readonly detail: string;
  /** Path of the copy of the file as it was. */
  readonly keptAs?: string;
  run(): Promise<void>;
}

/** The removal of a file that a process has begun, and not completed. */
export function removalOf(files: FileSystem, folder: string, file: string): RepairStep {
  const run = async (): Promise<void> => {
    await unlinkIfThere(files, file);
    await files.syncFolder(folder);
  };
  return { action: 'remove', file, detail: 'it is unfinished: a process ended while it was written', run };
}

export interface LostMessages extends CorruptionEvent {
  /** Number of lost messages that were not acknowledged; undefined if it is unknown. */
  readonly messages: number | undefined;
}
