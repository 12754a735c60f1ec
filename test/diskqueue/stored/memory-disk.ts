import type { File, FileSystem } from '../../../src/log/file-system.ts';
import { hostError } from '../support/wrapped-files.ts';

/** One folder in memory, of any name: for tests that repair it thousands of times. */
export class MemoryDisk implements FileSystem {
  readonly contents: Map<string, Buffer>;
  /** Number of changes until all further ones fail, as if the machine had stopped. */
  changesLeft = Infinity;

  constructor(contents: ReadonlyMap<string, Buffer> = new Map()) {
    this.contents = new Map([...contents].map(([path, bytes]) => [path, Buffer.from(bytes)]));
  }

  open(path: string): Promise<File> {
    return this.#having(path, () => this.#file(path));
  }

  create(path: string): Promise<File> {
    if (this.#isStopped()) return Promise.reject(hostError('EIO', 'open', path));
    if (this.contents.has(path)) return Promise.reject(hostError('EEXIST', 'open', path));
    this.contents.set(path, Buffer.alloc(0));
    return Promise.resolve(this.#file(path));
  }

  list(folder: string): Promise<string[]> {
    return Promise.resolve([...this.contents.keys()].map((path) => path.slice(folder.length + 1)));
  }

  size(path: string): Promise<number> {
    return this.#having(path, () => this.#bytes(path).length);
  }

  rename(from: string, to: string): Promise<void> {
    if (this.#isStopped()) return Promise.reject(hostError('EIO', 'open', from));
    return this.#having(from, () => {
      this.contents.set(to, this.#bytes(from));
      this.contents.delete(from);
    });
  }

  unlink(path: string): Promise<void> {
    if (this.#isStopped()) return Promise.reject(hostError('EIO', 'open', path));
    return this.#having(path, () => {
      this.contents.delete(path);
    });
  }

  makeFolder(): Promise<void> {
    return Promise.resolve();
  }

  syncFolder(): Promise<void> {
    return Promise.resolve();
  }

  #isStopped(): boolean {
    return this.changesLeft-- <= 0;
  }

  #having<R>(path: string, action: () => R): Promise<R> {
    return this.contents.has(path)
      ? Promise.resolve(action())
      : Promise.reject(hostError('ENOENT', 'open', path));
  }

  #bytes(path: string): Buffer {
    return this.contents.get(path) as Buffer;
  }

  #file(path: string): File {
    return {
      read: (buffer, position) => Promise.resolve(this.#bytes(path).subarray(position).copy(buffer)),
      write: (buffer, position) => {
        if (this.#isStopped()) return Promise.reject(hostError('EIO', 'open', path));
        const grown = Buffer.alloc(Math.max(this.#bytes(path).length, position + buffer.length));
        this.#bytes(path).copy(grown);
        buffer.copy(grown, position);
        this.contents.set(path, grown);
        return Promise.resolve();
      },
      truncate: (length) => {
        if (this.#isStopped()) return Promise.reject(hostError('EIO', 'open', path));
        const cut = Buffer.alloc(length);
        this.#bytes(path).copy(cut);
        this.contents.set(path, cut);
        return Promise.resolve();
      },
      sync: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
  }
}
