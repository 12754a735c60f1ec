/** The stores whose memory is measured. */
import { levelUnsyncedBatched } from './level-stores.ts';
import { lmdbUnsynced } from './lmdb-stores.ts';
import type { MessageStore, StoreKind } from './message-store.ts';
import { oursOs } from './our-stores.ts';

class ArrayStore implements MessageStore {
  #messages: Uint8Array[] = [];

  put(message: Uint8Array): Promise<void> {
    this.#messages.push(Uint8Array.from(message));
    return Promise.resolve();
  }

  take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
    this.#messages.splice(0, count).forEach(handle);
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#messages = [];
    return Promise.resolve();
  }
}

const inMemory: StoreKind = {
  name: 'an array, no disk',
  role: 'baseline',
  open: () => Promise.resolve(new ArrayStore()),
};

export const DEPTH_KINDS: readonly StoreKind[] = [inMemory, levelUnsyncedBatched, lmdbUnsynced, oursOs];
