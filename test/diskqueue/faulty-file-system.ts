import type { File, FileSystem } from '../../src/log/file-system.ts';
import { hostError, WrappedFiles, type Operation } from './support/wrapped-files.ts';

/** What a queue asks of a disk. */
export const CALLS = [
  ...(['open', 'create', 'list', 'size', 'rename', 'unlink', 'syncFolder'] as const),
  ...(['read', 'write', 'truncate', 'sync', 'close'] as const),
];
export type Call = (typeof CALLS)[number];

export interface Fault {
  /** Which calls fail; undefined: all of them. */
  readonly call: Call | undefined;
  /** The first one that fails, from 0. */
  readonly nth: number;
  readonly code: string;
  /** Whether all later ones fail too, until it is healed. */
  readonly isLasting: boolean;
}

/** A disk that fails, and counts what is asked of it. */
export class FaultyFileSystem extends WrappedFiles {
  readonly calls = new Map<Call, number>();
  /** Files that were synced after a sync of them had failed. */
  readonly syncedAgain: string[] = [];
  /** How often it has failed, and how often to sync a file. */
  failures = 0;
  failedSyncs = 0;
  readonly #fault: Fault | undefined;
  #count = 0;
  #isHealed = false;

  constructor(files: FileSystem, fault?: Fault) {
    super(files);
    this.#fault = fault;
  }

  heal(): void {
    this.#isHealed = true;
  }

  protected override async call<R>(operation: Operation, path: string, action: () => Promise<R>): Promise<R> {
    if (operation !== 'makeFolder') this.#enter(operation, path);
    return await action();
  }

  /** Counts the call. @throws if it is to fail. */
  #enter(call: Call, path: string): void {
    const ofKind = this.calls.get(call) ?? 0;
    this.calls.set(call, ofKind + 1);
    const all = this.#count++;
    const fault = this.#fault;
    if (fault === undefined || this.#isHealed || (fault.call !== undefined && fault.call !== call)) return;
    const index = fault.call === undefined ? all : ofKind;
    if (index < fault.nth || (index > fault.nth && !fault.isLasting)) return;
    this.failures++;
    throw hostError(fault.code, call, path);
  }

  protected override wrap(path: string, file: File): File {
    let hasFailedToSync = false;
    return {
      ...super.wrap(path, file),
      write: async (buffer, position) => {
        try {
          this.#enter('write', path);
        } catch (error) {
          await file.write(buffer.subarray(0, buffer.length >> 1), position); // a part of it was written
          throw error;
        }
        await file.write(buffer, position);
      },
      sync: async () => {
        if (hasFailedToSync) this.syncedAgain.push(path);
        try {
          this.#enter('sync', path);
        } catch (error) {
          hasFailedToSync = true;
          this.failedSyncs++;
          throw error;
        }
        await file.sync();
      },
      close: async () => {
        await file.close(); // whatever the host says of it, it is closed
        this.#enter('close', path);
      },
    };
  }
}
