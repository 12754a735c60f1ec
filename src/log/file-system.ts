import { constants, writeSync } from 'node:fs';
import { mkdir, open, readdir, rename, stat, unlink, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Everything that a log and a disk queue do to a disk, so that a test can record it and make it fail. Errors are the
 * host's, with their `code`.
 */
export interface FileSystem {
  /** Opens a file that exists. */
  open(path: string, mode: 'read' | 'write'): Promise<File>;
  /** Makes a file for writing. Rejects with `EEXIST` if it exists. */
  create(path: string): Promise<File>;
  list(folder: string): Promise<string[]>;
  size(path: string): Promise<number>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  makeFolder(path: string): Promise<void>;
  /** Makes what was created, renamed and unlinked in a folder durable. */
  syncFolder(path: string): Promise<void>;
}

/** An open file. Positions and lengths are in bytes. */
export interface File {
  /** @returns the number of bytes read: fewer than the buffer holds at the end of the file. */
  read(buffer: Buffer, position: number): Promise<number>;
  /** Writes all of the buffer. If it rejects, any part of it may have been written. */
  write(buffer: Buffer, position: number): Promise<void>;
  truncate(length: number): Promise<void>;
  /** Resolves when everything that was written is on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** @internal Key of an option with which tests replace the file system of a disk queue or a broker. */
export const FILE_SYSTEM: unique symbol = Symbol.for('escapement.file-system');

/** Returns the code of an error of the host; empty if it has none. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException | undefined)?.code ?? '';
}

const DISK_FULL = new Set(['ENOSPC', 'EDQUOT']);

/** Whether the disk is full, or the quota is used up. */
export function isDiskFull(error: unknown): boolean {
  return DISK_FULL.has(codeOf(error));
}

const OUT_OF_FILES = new Set(['EMFILE', 'ENFILE']);

/** Whether the process, or the host, has as many files open as it may. */
export function isOutOfFiles(error: unknown): boolean {
  return OUT_OF_FILES.has(codeOf(error));
}

/** Only the owner reads and writes, as in NSQ. */
const MODE = 0o600;

/** Node rejects calls of 2 GiB and more, and a record may be longer. */
const MOST_BYTES_AT_ONCE = 2 ** 30;

/** Without it, opening a named pipe waits until another process opens it, and blocks a thread. Not on Windows. */
const NO_WAITING = (constants as { O_NONBLOCK?: number }).O_NONBLOCK ?? 0;

/*
 * Short writes are made in the calling thread: the way through the thread pool takes several times as long as the write to the page
 * cache, and more CPU time. A host whose disk is behind holds writes up, so after a slow one the next ones go through the pool.
 */
const SHORT_WRITE_BYTES = 65_536;
const SLOW_WRITE_MS = 5;
const POOLED_WRITES = 100;

/*
 * A host goes on writing to a file that another program has removed, and frees it when it is closed. So a sync also checks whether the file
 * still has a name, but not more often than this. Only a file that had one before can have lost it: some hosts count no names.
 */
const NAME_CHECKED_MS = 1_000;

class HostFile implements File {
  readonly #handle: FileHandle;
  readonly #path: string;
  /** Number of writes that go through the thread pool before the calling thread makes one again. */
  #pooledWrites = 0;
  /** Whether it had a name when that was last checked. */
  #hadName = false;
  #nameCheckedMs = -Infinity;

  constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = path;
  }

  read(buffer: Buffer, position: number): Promise<number> {
    return this.#named(this.#read(buffer, position));
  }

  write(buffer: Buffer, position: number): Promise<void> {
    return this.#named(this.#write(buffer, position));
  }

  truncate(length: number): Promise<void> {
    return this.#named(this.#handle.truncate(length));
  }

  /** The size of a file belongs to what `fdatasync` writes; its times do not. */
  sync(): Promise<void> {
    return this.#named(this.#sync());
  }

  close(): Promise<void> {
    return this.#named(this.#handle.close());
  }

  async #sync(): Promise<void> {
    await this.#handle.datasync();
    const nowMs = performance.now();
    if (nowMs - this.#nameCheckedMs < NAME_CHECKED_MS) return;
    this.#nameCheckedMs = nowMs;
    const hasName = (await this.#handle.stat()).nlink > 0;
    if (this.#hadName && !hasName)
      throw Object.assign(new Error('ENOENT: the file was removed, fdatasync'), {
        code: 'ENOENT',
        syscall: 'fdatasync',
      });
    this.#hadName = hasName;
  }

  async #read(buffer: Buffer, position: number): Promise<number> {
    let done = 0;
    while (done < buffer.length) {
      const length = Math.min(buffer.length - done, MOST_BYTES_AT_ONCE);
      const { bytesRead } = await this.#handle.read(buffer, done, length, position + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return done;
  }

  async #write(buffer: Buffer, position: number): Promise<void> {
    let done = 0;
    while (done < buffer.length) {
      const length = Math.min(buffer.length - done, MOST_BYTES_AT_ONCE);
      const at = position + done;
      const isPooled = length > SHORT_WRITE_BYTES || this.#pooledWrites > 0;
      done += isPooled
        ? await this.#writeInPool(buffer, done, length, at)
        : this.#writeNow(buffer, done, length, at);
    }
  }

  #writeNow(buffer: Buffer, offset: number, length: number, position: number): number {
    const startMs = performance.now();
    const written = writeSync(this.#handle.fd, buffer, offset, length, position);
    if (performance.now() - startMs > SLOW_WRITE_MS) this.#pooledWrites = POOLED_WRITES;
    return written;
  }

  async #writeInPool(buffer: Buffer, offset: number, length: number, position: number): Promise<number> {
    if (this.#pooledWrites > 0) this.#pooledWrites--;
    return (await this.#handle.write(buffer, offset, length, position)).bytesWritten;
  }

  /** The host's errors about an open file do not name the file. */
  async #named<R>(action: Promise<R>): Promise<R> {
    try {
      return await action;
    } catch (error) {
      const failure = error as NodeJS.ErrnoException;
      if (failure.syscall !== undefined && failure.path === undefined) {
        failure.path = this.#path;
        failure.message += ` '${this.#path}'`;
      }
      throw error;
    }
  }
}

/** Where folders cannot be synced, as on Windows, that step is left out. */
const CANNOT_SYNC_FOLDER = new Set(['EPERM', 'EISDIR', 'EINVAL', 'ENOTSUP']);

/** The file system of the host. */
export const hostFileSystem: FileSystem = {
  async open(path, mode) {
    const flags = (mode === 'read' ? constants.O_RDONLY : constants.O_RDWR) | NO_WAITING;
    return new HostFile(await regular(await open(path, flags), path), path);
  },
  async create(path) {
    return new HostFile(await open(path, 'wx', MODE), path);
  },
  list: (folder) => readdir(folder),
  async size(path) {
    return (await stat(path)).size;
  },
  rename: (from, to) => rename(from, to),
  unlink: (path) => unlink(path),
  makeFolder,
  async syncFolder(path) {
    try {
      const folder = await open(path, constants.O_RDONLY);
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
    } catch (error) {
      if (!CANNOT_SYNC_FOLDER.has(codeOf(error))) throw error;
    }
  },
};

/** Rejects pipes, and devices that may never end. Reading a folder fails by itself. */
async function regular(handle: FileHandle, path: string): Promise<FileHandle> {
  const stats = await handle.stat().catch(async (error: unknown) => {
    await handle.close();
    throw error;
  });
  if (stats.isFile() || stats.isDirectory()) return handle;
  await handle.close();
  const message = `EFTYPE: not a regular file, open '${path}'`;
  throw Object.assign(new Error(message), { code: 'EFTYPE', syscall: 'open', path });
}

/** Not `recursive`: Node would retry without end where no folder can be made, as in /proc (libuv reports ENOENT there). */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path).catch((again: unknown) => {
      if (codeOf(again) !== 'EEXIST') throw again; // another process may have made it meanwhile
    });
  }
}

/** Removes a file, unless it is missing. */
export function unlinkIfThere(files: FileSystem, path: string): Promise<void> {
  return ifThere(files.unlink(path), undefined);
}

/** Returns the result of an action on a file; `otherwise` if the file does not exist. */
export async function ifThere<R>(action: Promise<R>, otherwise: R): Promise<R> {
  try {
    return await action;
  } catch (error) {
    if (!isMissing(error)) throw error;
    return otherwise;
  }
}

/**
 * Opens a file for reading; undefined if another program has removed it. Rejects if the folder is missing or empty: it was moved, or its
 * disk is not mounted any more, and the file may be there again later.
 */
export async function openUnlessRemoved(files: FileSystem, path: string): Promise<File | undefined> {
  try {
    return await files.open(path, 'read');
  } catch (error) {
    if (!isMissing(error) || (await files.list(dirname(path))).length === 0) throw error;
    return undefined;
  }
}

/** Whether a file does not exist. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** Opens a file for the time of an action. */
export async function withFile<R>(
  files: FileSystem,
  path: string,
  mode: 'read' | 'write',
  action: (file: File) => Promise<R>,
): Promise<R> {
  const file = await files.open(path, mode);
  try {
    return await action(file);
  } finally {
    await file.close();
  }
}

/** Makes a file, and keeps it open. If the action rejects, the file is removed. */
export async function createFile(
  files: FileSystem,
  path: string,
  action: (file: File) => Promise<void>,
): Promise<File> {
  const file = await files.create(path);
  try {
    await action(file);
    return file;
  } catch (error) {
    await file.close().catch(() => undefined);
    await files.unlink(path).catch(() => undefined);
    throw error;
  }
}

/** Makes a file durably, with the content that the action writes. */
export async function makeFile(
  files: FileSystem,
  path: string,
  action: (file: File) => Promise<void>,
): Promise<void> {
  const file = await createFile(files, path, async (made) => {
    await action(made);
    await made.sync();
  });
  await file.close();
}

const BLOCK_BYTES = 1024 * 1024;

/** Copies the bytes of a file before `end`, as far as it has them, to the same offsets of another file. */
export async function copyBytes(from: File, to: File, end: number): Promise<void> {
  const block = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, end));
  for (let at = 0; at < end;) {
    const filled = await from.read(block.subarray(0, Math.min(block.length, end - at)), at);
    if (filled === 0) break;
    await to.write(block.subarray(0, filled), at);
    at += filled;
  }
}

/** Copies a file. When it resolves, the whole copy is on the disk. */
export async function keepCopy(files: FileSystem, folder: string, path: string, as: string): Promise<void> {
  const temporary = `${as}.new`;
  await unlinkIfThere(files, temporary); // an interrupted call has left it
  const size = await files.size(path);
  await withFile(files, path, 'read', (from) =>
    makeFile(files, temporary, (to) => copyBytes(from, to, size)),
  );
  await files.rename(temporary, as);
  await files.syncFolder(folder);
}

/** Renames a file, unless it is missing, to `path.damaged` or the next free name of that kind. */
export async function setAside(files: FileSystem, folder: string, path: string): Promise<void> {
  const taken = new Set((await files.list(folder)).map((name) => `${folder}/${name}`));
  await ifThere(files.rename(path, freeName(path, taken)), undefined);
}

/** Returns `path.damaged`, or `path.damaged.2` and so on if that is taken. */
export function freeName(path: string, taken: ReadonlySet<string>): string {
  const nameOf = (i: number): string => `${path}.damaged${i === 1 ? '' : `.${i}`}`;
  let i = 1;
  while (taken.has(nameOf(i))) i++;
  return nameOf(i);
}

/** Runs steps one after another, also after a failed one. @throws the first error. */
export async function allOf(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) {
    await step().catch((error: unknown) => {
      errors.push(error);
    });
  }
  if (errors.length > 0) throw errors[0];
}
