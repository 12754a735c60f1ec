/** classic-level as a queue: the keys are numbers, the first ones are read and deleted. */
import { ClassicLevel } from 'classic-level';
import { Arrivals } from './arrivals.ts';
import { Gathered } from './gathered.ts';
import type { MessageStore, OpenStore, StoreKind } from './message-store.ts';

/** Messages that are read, and deleted, together. */
const TAKEN_AT_ONCE = 1_000;
const KEY_BYTES = 6;

class LevelStore implements MessageStore {
  readonly #db: ClassicLevel<Uint8Array, Uint8Array>;
  readonly #sync: boolean;
  readonly #arrivals = new Arrivals();
  readonly #gathered: Gathered | undefined;
  #next = 0;

  constructor(db: ClassicLevel<Uint8Array, Uint8Array>, sync: boolean, isGathered: boolean) {
    this.#db = db;
    this.#sync = sync;
    this.#gathered = isGathered ? new Gathered((messages) => this.#writeAll(messages)) : undefined;
  }

  async put(message: Uint8Array): Promise<void> {
    if (this.#gathered === undefined) await this.#db.put(this.#newKey(), message, { sync: this.#sync });
    else await this.#gathered.put(message);
    this.#arrivals.announce();
  }

  async take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
    let last: Uint8Array = new Uint8Array(0);
    for (let left = count; left > 0;) {
      // From the last key on: the iterator would go over all that is deleted and not yet compacted.
      const entries = await this.#db.iterator({ gt: last, limit: Math.min(left, TAKEN_AT_ONCE) }).all();
      for (const [, message] of entries) handle(message);
      await this.#db.batch(entries.map(([key]) => ({ type: 'del', key })));
      last = entries.at(-1)?.[0] ?? last;
      left -= entries.length;
      if (entries.length === 0) await this.#arrivals.wait();
    }
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  #newKey(): Buffer {
    const key = Buffer.allocUnsafe(KEY_BYTES);
    key.writeUIntBE(this.#next++, 0, KEY_BYTES);
    return key;
  }

  async #writeAll(messages: readonly Uint8Array[]): Promise<void> {
    const puts = messages.map((value) => ({ type: 'put' as const, key: this.#newKey(), value }));
    await this.#db.batch(puts, { sync: this.#sync });
  }
}

const openLevel =
  (sync: boolean, isGathered: boolean): OpenStore =>
  async (folder) => {
    const encodings = { keyEncoding: 'view', valueEncoding: 'view' } as const;
    const db = new ClassicLevel<Uint8Array, Uint8Array>(folder, encodings);
    await db.open();
    return new LevelStore(db, sync, isGathered);
  };

const BATCHED = 'classic-level, batched';

export const levelSynced: StoreKind = { name: 'classic-level', role: 'rival', open: openLevel(true, false) };
export const levelSyncedBatched: StoreKind = { name: BATCHED, role: 'rival', open: openLevel(true, true) };
export const levelUnsynced: StoreKind = {
  name: 'classic-level',
  role: 'rival',
  open: openLevel(false, false),
};
export const levelUnsyncedBatched: StoreKind = { name: BATCHED, role: 'rival', open: openLevel(false, true) };
