import type { File, FileSystem } from '../../src/log/file-system.ts';
import { hostError } from './recording-file-system.ts';

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
export class FaultyFileSystem implements FileSystem {
  readonly calls = new Map<Call, number>();
  /** Files that were synced after a sync of them had failed. */
  readonly syncedAgain: string[] = [];
  /** How often it has failed, and how often to sync a file. */
  failures = 0;
  failedSyncs = 0;
  readonly #files: FileSystem;
  readonly #fault: Fault | undefined;
  #count = 0;
  #isHealed = false;

  constructor(files: FileSystem, fault?: Fault) {
    this.#files = files;
    this.#fault = fault;
  }

  heal(): void {
    this.#isHealed = true;
  }

  async open(path: string, mode: 'read' | 'write'): Promise<File> {
    this.enter('open', path);
    return this.#wrap(await this.#files.open(path, mode), path);
  }

  async create(path: string): Promise<File> {
    this.enter('create', path);
    return this.#wrap(await this.#files.create(path), path);
  }

  list(folder: string): Promise<string[]> {
    return this.#guard('list', folder, () => this.#files.list(folder));
  }

  size(path: string): Promise<number> {
    return this.#guard('size', path, () => this.#files.size(path));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#guard('rename', from, () => this.#files.rename(from, to));
  }

  unlink(path: string): Promise<void> {
    return this.#guard('unlink', path, () => this.#files.unlink(path));
  }

  makeFolder(path: string): Promise<void> {
    return this.#files.makeFolder(path);
  }

  syncFolder(path: string): Promise<void> {
    return this.#guard('syncFolder', path, () => this.#files.syncFolder(path));
  }

  /** Counts the call. @throws if it is to fail. */
  enter(call: Call, path: string): void {
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

  async #guard<R>(call: Call, path: string, action: () => Promise<R>): Promise<R> {
    this.enter(call, path);
    return await action();
  }

  #wrap(file: File, path: string): File {
    let hasFailedToSync = false;
    return {
      read: (buffer, position) => this.#guard('read', path, () => file.read(buffer, position)),
      write: async (buffer, position) => {
        try {
          this.enter('write', path);
        } catch (error) {
          await file.write(buffer.subarray(0, buffer.length >> 1), position); // a part of it was written
          throw error;
        }
        await file.write(buffer, position);
      },
      truncate: (length) => this.#guard('truncate', path, () => file.truncate(length)),
      sync: async () => {
        if (hasFailedToSync) this.syncedAgain.push(path);
        try {
          this.enter('sync', path);
        } catch (error) {
          hasFailedToSync = true;
          this.failedSyncs++;
          throw error;
        }
        await file.sync();
      },
      close: async () => {
        await file.close(); // whatever the host says of it, it is closed
        this.enter('close', path);
      },
    };
  }
}
