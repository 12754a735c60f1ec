/** What the cases ask of each store. */
import type { Contestant, Role, ScenarioOutcome } from '../lib/part.ts';
import { withFolder } from './bench-folder.ts';

export interface MessageStore {
  /** Resolves when the message is as safe as the case wants it. The store is done with the bytes then. */
  put(message: Uint8Array): Promise<void>;
  /** Receives so many messages, in order, and removes them; waits for those that are not there yet. */
  take(count: number, handle: (message: Uint8Array) => void): Promise<void>;
  close(): Promise<void>;
}

export type OpenStore = (folder: string) => Promise<MessageStore>;

export interface StoreKind {
  readonly name: string;
  readonly role: Role;
  readonly note?: string;
  readonly open: OpenStore | { readonly cannot: string };
}

/** The same scenario for every kind, each in a folder of its own. */
export function contest(
  kinds: readonly StoreKind[],
  play: (open: OpenStore, folder: string, size: number) => Promise<ScenarioOutcome>,
): Contestant<(size: number) => Promise<ScenarioOutcome>>[] {
  return kinds.map(({ name, role, note, open }) => ({
    name,
    role,
    ...(note === undefined ? {} : { note }),
    open:
      typeof open === 'function' ? (size: number) => withFolder((folder) => play(open, folder, size)) : open,
  }));
}

/** Opens a store, does something with it, and closes it. */
export async function withStore<R>(
  open: OpenStore,
  folder: string,
  action: (store: MessageStore) => Promise<R>,
): Promise<R> {
  const store = await open(folder);
  try {
    return await action(store);
  } finally {
    await store.close();
  }
}
