import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

const FOLDERS = ['originals', 'sizes'] as const;

/** Images in a folder: what was sent, and what was made of it. */
export class ImageStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Makes the folders, if they are not there. */
  async prepare(): Promise<void> {
    for (const folder of FOLDERS) await mkdir(join(this.#directory, folder), { recursive: true });
  }

  originalPath(id: string): string {
    return join(this.#directory, 'originals', id);
  }

  /** Stores what was sent; nothing of it if its chunks end with an error. */
  async addOriginal(id: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      await writeFile(this.originalPath(id), chunks, { flag: 'wx' });
    } catch (error) {
      await this.removeOriginal(id);
      throw error;
    }
  }

  async removeOriginal(id: string): Promise<void> {
    await rm(this.originalPath(id), { force: true });
  }

  /** Stores a size. It is there as a whole or not at all, and can be stored again: by a job that is tried again. */
  async putSize(id: string, width: number, image: Uint8Array): Promise<void> {
    const path = this.#sizePath(id, width);
    await writeFile(`${path}.part`, image);
    await rename(`${path}.part`, path);
  }

  /** @returns undefined if it is not there. */
  async openSize(id: string, width: number): Promise<FileHandle | undefined> {
    return ifThere(open(this.#sizePath(id, width)));
  }

  /** @returns how many files were removed. */
  async removeOlderThan(ageMs: number, signal: AbortSignal): Promise<number> {
    const beforeMs = Date.now() - ageMs;
    let removed = 0;
    for (const folder of FOLDERS) {
      for (const name of await readdir(join(this.#directory, folder))) {
        signal.throwIfAborted();
        if (await removeIfOlder(join(this.#directory, folder, name), beforeMs)) removed++;
      }
    }
    return removed;
  }

  #sizePath(id: string, width: number): string {
    return join(this.#directory, 'sizes', `${id}-${width}.webp`);
  }
}

async function removeIfOlder(path: string, beforeMs: number): Promise<boolean> {
  const stats = await ifThere(stat(path));
  if (stats === undefined || stats.mtimeMs >= beforeMs) return false;
  await rm(path, { force: true });
  return true;
}

async function ifThere<T>(opened: Promise<T>): Promise<T | undefined> {
  try {
    return await opened;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
