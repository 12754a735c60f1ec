import { watch, type FSWatcher } from 'node:fs';
import { join } from 'node:path';
import { isMissing } from './files.ts';
import { inside } from './keys.ts';

/**
 * Tells that something has happened to a path below a directory. Not what: whoever is told looks at the disk.
 *
 * HOW. One watcher for each directory, and none for files. Whoever lists a directory calls `watch` before, so that what
 * is made between the two is listed, or told of, or both.
 *
 * WHY not `fs.watch(root, { recursive: true })`: see README.md.
 */
export class TreeWatcher {
  readonly #root: string;
  readonly #onEvent: (path: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #isClosed = false;

  constructor(root: string, onEvent: (path: string) => void) {
    this.#root = root;
    this.#onEvent = onEvent;
  }

  /**
   * Watches a directory, which may be another one of the same name than the last time. If there is none, forgets it
   * and what was below it.
   *
   * @throws ENOSPC when the system allows no more watchers, EACCES when this one is not allowed.
   */
  watch(directory: string): void {
    if (this.#isClosed) return;
    try {
      this.#replace(directory, this.#open(directory));
    } catch (error) {
      this.#forget(directory);
      if (!isMissing(error)) throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#forget('');
  }

  #open(directory: string): FSWatcher {
    return watch(join(this.#root, directory), (_, name) => {
      this.#onEvent(name === null ? directory : inside(directory, name));
    }).on('error', () => {
      this.#onEvent(directory); // the directory is gone, says Windows
    });
  }

  #replace(directory: string, watcher: FSWatcher): void {
    this.#watchers.get(directory)?.close();
    this.#watchers.set(directory, watcher);
  }

  #forget(prefix: string): void {
    for (const [directory, watcher] of this.#watchers) {
      if (!directory.startsWith(prefix)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
  }
}
