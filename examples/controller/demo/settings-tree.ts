import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** A directory of settings, and real changes to it. */
export class SettingsTree {
  /** Changes so far. */
  changes = 0;
  readonly #root: string;
  /** Where files are written that come into the tree in one step. */
  readonly #staging: string;

  constructor(root: string, staging: string) {
    this.#root = root;
    this.#staging = staging;
  }

  /** As a careless program does it: somebody who reads meanwhile sees half of it, or nothing. */
  async write(path: string, text = this.#settings(path)): Promise<void> {
    await mkdir(dirname(this.#at(path)), { recursive: true });
    await writeFile(this.#at(path), text);
    this.changes++;
  }

  /** As an editor does it: a new file takes the place of the old one. */
  async save(path: string, text = this.#settings(path)): Promise<void> {
    const temporary = join(this.#staging, path);
    await mkdir(dirname(temporary), { recursive: true });
    await writeFile(temporary, text);
    await rename(temporary, this.#at(path));
    this.changes++;
  }

  async move(from: string, to: string): Promise<void> {
    await rename(this.#at(from), this.#at(to));
    this.changes++;
  }

  async remove(path: string): Promise<void> {
    await rm(this.#at(path), { recursive: true });
    this.changes++;
  }

  #at(path: string): string {
    return join(this.#root, path);
  }

  /** Different each time, and of different lengths. */
  #settings(path: string): string {
    const revision = this.changes;
    const tags = Array.from({ length: revision % 5 }, (_, index) => `tag-${index}`);
    return JSON.stringify({ name: path, revision, server: { port: 8_000 + (revision % 1_000), tags } });
  }
}
