/** lmdb as a queue: the keys are numbers, the first ones are read and removed. It batches by itself. */
import { open, type RootDatabase } from 'lmdb';
import { Arrivals } from './arrivals.ts';
import type { MessageStore, OpenStore, StoreKind } from './message-store.ts';

/** Messages that are read, and removed, together. */
const TAKEN_AT_ONCE = 1_000;

class LmdbStore implements MessageStore {
  readonly #db: RootDatabase<Buffer, number>;
  readonly #isSynced: boolean;
  readonly #arrivals = new Arrivals();
  #next = 0;

  constructor(db: RootDatabase<Buffer, number>, isSynced: boolean) {
    this.#db = db;
    this.#isSynced = isSynced;
  }

  async put(message: Uint8Array): Promise<void> {
    await this.#db.put(this.#next++, message as Buffer);
    if (this.#isSynced) await this.#db.flushed;
    this.#arrivals.announce();
  }

  async take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
    for (let left = count; left > 0;) {
      let removed: Promise<unknown> | undefined;
      for (const { key, value } of this.#db.getRange({ limit: Math.min(left, TAKEN_AT_ONCE) })) {
        handle(value);
        removed = this.#db.remove(key);
        left--;
      }
      await (removed ?? this.#arrivals.wait());
    }
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}

const openLmdb =
  (isSynced: boolean): OpenStore =>
  (folder) => {
    const db = open<Buffer, number>({ path: `${folder}/data`, encoding: 'binary', noSync: !isSynced });
    return Promise.resolve(new LmdbStore(db, isSynced));
  };

export const lmdbSynced: StoreKind = { name: 'lmdb', role: 'rival', open: openLmdb(true) };
export const lmdbUnsynced: StoreKind = { name: 'lmdb', role: 'rival', open: openLmdb(false) };
