/** The stores: files without a format, classic-level and lmdb with numbers as keys, an array, and the disk queue. */
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { ClassicLevel } from 'classic-level';
import { DiskQueue, type Durability } from 'escapement/diskqueue';
import { open as openDatabase } from 'lmdb';
import { baseline, ours, rival, unable, type Contestant } from '../lib/part.ts';
import { MESSAGE_BYTES, QUEUE_NAME, type MessageStore, type OpenStore } from './messages.ts';

type Handle = (message: Uint8Array) => void;
type Put = (message: Uint8Array) => Promise<void>;

export const FILE = 'messages';
/** The disk queue reads as much at once. */
export const READ_BYTES = 128 * 1024;
/** Number of messages that the databases read and delete together. */
const TAKEN_AT_ONCE = 1_000;
const KEY_BYTES = 6;

/** Group commit as one writes it by hand: pending messages are written together; later ones are the next batch. */
function groupCommit(write: (messages: readonly Uint8Array[]) => Promise<void>): Put {
  let messages: Uint8Array[] = [];
  /** Of the batch that is written, and of the one that collects messages. */
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const writeNext = async (before?: Promise<void>): Promise<void> => {
    await before?.catch(() => undefined);
    // Callers whose puts have resolved put again before the next batch starts: that is after all microtasks.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const batch = messages;
    messages = [];
    current = next;
    next = undefined;
    await write(batch);
  };

  return (message) => {
    messages.push(message);
    next ??= writeNext(current);
    return next;
  };
}

/**
 * Makes a reader wait for messages, of a store that cannot: every put announces itself.
 *
 * @param takeSome - receives at most so many messages and removes them. @returns their number.
 */
function waiting(
  put: Put,
  takeSome: (most: number, handle: Handle) => Promise<number>,
): Omit<MessageStore, 'close'> {
  let puts = 0;
  let wake: () => void = () => undefined;
  return {
    put: async (message) => {
      await put(message);
      puts++;
      wake();
    },
    take: async (count, handle) => {
      for (let left = count; left > 0;) {
        const before = puts;
        const taken = await takeSome(Math.min(left, TAKEN_AT_ONCE), handle);
        left -= taken;
        if (taken > 0 || puts > before) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

/** One write and one sync for all pending puts: the fastest use of this file system from JavaScript. */
export const openRaw =
  (syncs: boolean): OpenStore =>
  async (folder) => {
    const path = `${folder}/${FILE}`;
    const file = await open(path, 'wx');
    let buffer = Buffer.allocUnsafe(64 * MESSAGE_BYTES);
    let end = 0;
    return {
      put: groupCommit(async (messages) => {
        const bytes = messages.length * MESSAGE_BYTES;
        if (buffer.length < bytes) buffer = Buffer.allocUnsafe(bytes);
        for (let i = 0; i < messages.length; i++) buffer.set(messages[i] as Uint8Array, i * MESSAGE_BYTES);
        await file.write(buffer, 0, bytes, end);
        if (syncs) await file.datasync();
        end += bytes;
      }),
      take: (count, handle) => readAll(path, count, handle),
      close: () => file.close(),
    };
  };

export const openStream: OpenStore = async (folder) => {
  const path = `${folder}/${FILE}`;
  const stream = createWriteStream(path, { flags: 'a' });
  await once(stream, 'open');
  return {
    put: (message) =>
      new Promise((resolve, reject) => {
        stream.write(message, (error) => {
          if (error) reject(error);
          else resolve();
        });
      }),
    take: (count, handle) => readAll(path, count, handle),
    close: async () => {
      stream.end();
      await once(stream, 'close');
    },
  };
};

async function readAll(path: string, count: number, handle: Handle): Promise<void> {
  let left = count;
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) {
    const bytes = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
    let at = 0;
    for (; at + MESSAGE_BYTES <= bytes.length && left > 0; at += MESSAGE_BYTES, left--) {
      handle(Buffer.from(bytes.subarray(at, at + MESSAGE_BYTES)));
    }
    rest = bytes.subarray(at);
  }
}

const openLevel =
  (sync: boolean, isBatched: boolean): OpenStore =>
  async (folder) => {
    const encodings = { keyEncoding: 'view', valueEncoding: 'view' } as const;
    const db = new ClassicLevel<Uint8Array, Uint8Array>(folder, encodings);
    await db.open();
    let next = 0;
    let last: Uint8Array = new Uint8Array(0);
    const newKey = (): Buffer => {
      const key = Buffer.allocUnsafe(KEY_BYTES);
      key.writeUIntBE(next++, 0, KEY_BYTES);
      return key;
    };
    const write: Put = isBatched
      ? groupCommit((messages) =>
          db.batch(
            messages.map((value) => ({ type: 'put' as const, key: newKey(), value })),
            { sync },
          ),
        )
      : (message) => db.put(newKey(), message, { sync });
    return {
      ...waiting(write, async (limit, handle) => {
        // After the last key: from the first, the iterator would go over deleted entries that are not yet compacted.
        const entries = await db.iterator({ gt: last, limit }).all();
        for (const [, message] of entries) handle(message);
        await db.batch(entries.map(([key]) => ({ type: 'del', key })));
        last = entries.at(-1)?.[0] ?? last;
        return entries.length;
      }),
      close: () => db.close(),
    };
  };

/** lmdb batches by itself. */
const openLmdb =
  (isSynced: boolean): OpenStore =>
  (folder) => {
    const options = { path: `${folder}/data`, encoding: 'binary', noSync: !isSynced } as const;
    const db = openDatabase<Buffer, number>(options);
    let next = 0;
    const put: Put = async (message) => {
      await db.put(next++, message as Buffer);
      if (isSynced) await db.flushed;
    };
    const store = waiting(put, async (limit, handle) => {
      const removals: Promise<unknown>[] = [];
      for (const { key, value } of db.getRange({ limit })) {
        handle(value);
        removals.push(db.remove(key));
      }
      await removals.at(-1);
      return removals.length;
    });
    return Promise.resolve({ ...store, close: () => db.close() });
  };

const openQueue =
  (durability: Durability): OpenStore =>
  async (folder) => {
    const queue = await DiskQueue.open({ name: QUEUE_NAME, dataPath: folder, durability });
    return {
      put: (message) => queue.put(message),
      take: async (count, handle) => {
        for (let left = count; left > 0; left--) {
          const delivery = await queue.receive();
          handle(delivery.data);
          delivery.ack();
        }
      },
      close: () => queue.close(),
    };
  };

export const openOursOs = openQueue('os');

const openArray: OpenStore = () => {
  let messages: Uint8Array[] = [];
  return Promise.resolve({
    put: (message) => {
      messages.push(Uint8Array.from(message));
      return Promise.resolve();
    },
    take: (count, handle) => {
      messages.splice(0, count).forEach(handle);
      return Promise.resolve();
    },
    close: () => {
      messages = [];
      return Promise.resolve();
    },
  });
};

/** Delivers what a store has written from memory: nothing is read. */
function memoryReader(store: MessageStore): MessageStore {
  let written: Uint8Array[] = [];
  const put: Put = async (message) => {
    await store.put(message);
    written.push(message);
  };
  const takeAll = (_limit: number, handle: Handle): Promise<number> => {
    const arrived = written;
    written = [];
    arrived.forEach(handle);
    return Promise.resolve(arrived.length);
  };
  return { ...waiting(put, takeAll), close: () => store.close() };
}

function readFromMemory(name: string, open: OpenStore): Contestant<OpenStore> {
  return baseline(
    name,
    async (folder) => memoryReader(await open(folder)),
    'and the consumer receives written messages from memory: nothing is read, nothing acknowledged.',
  );
}

const levelBatched = rival('classic-level, batched', openLevel(false, true));
const levelSyncedBatched = rival('classic-level, batched', openLevel(true, true));
const lmdb = rival('lmdb', openLmdb(false));
const lmdbSynced = rival('lmdb', openLmdb(true));
const oursOs = ours('ours', openOursOs);
const oursAlways = ours('ours', openQueue('always'));

/** The contestants of each case, side by side. */
export const STORES = {
  putDurable: [
    baseline('write + fdatasync', openRaw(true)),
    unable('fs.WriteStream', 'it has no sync before its end'),
    rival('classic-level', openLevel(true, false)),
    levelSyncedBatched,
    lmdbSynced,
    oursAlways,
  ],
  put: [
    baseline('write', openRaw(false)),
    rival('fs.WriteStream', openStream),
    rival('classic-level', openLevel(false, false)),
    levelBatched,
    lmdb,
    oursOs,
  ],
  receive: [
    baseline(
      'fs.ReadStream',
      openStream,
      'reads what fs.WriteStream wrote, and copies each message: nothing is acknowledged, which it could not do.',
    ),
    levelBatched,
    lmdb,
    oursOs,
  ],
  keepUpDurable: [
    readFromMemory('write + fdatasync', openRaw(true)),
    levelSyncedBatched,
    lmdbSynced,
    oursAlways,
  ],
  keepUp: [readFromMemory('write', openRaw(false)), levelBatched, lmdb, oursOs],
  recover: [
    baseline(
      'fs.ReadStream',
      openStream,
      'reads the file that fs.WriteStream wrote from its beginning to its end, and checks nothing.',
    ),
    levelBatched,
    lmdb,
    oursOs,
  ],
  depth: [baseline('an array, no disk', openArray), levelBatched, lmdb, oursOs],
} satisfies Record<string, readonly Contestant<OpenStore>[]>;
