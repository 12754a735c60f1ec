/** The stores: files without a format, classic-level and lmdb with numbers as keys, an array, and the disk queue. */
import { once } from 'node:events';
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { ClassicLevel } from 'classic-level';
import { DiskQueue, type Durability } from 'escapement/diskqueue';
import { open as openDatabase, type RootDatabase } from 'lmdb';
import { baseline, ours, rival, unable } from '../lib/part.ts';
import { MESSAGE_BYTES, QUEUE_NAME, type MessageStore, type OpenStore } from './messages.ts';

type Handle = (message: Uint8Array) => void;

export const FILE = 'messages';
/** The disk queue reads as much at once. */
export const READ_BYTES = 128 * 1024;
/** Number of messages that the databases read and delete together. */
const TAKEN_AT_ONCE = 1_000;
const KEY_BYTES = 6;

/** Group commit as one writes it by hand: pending messages are written together; later ones are the next batch. */
class GroupCommit {
  readonly #write: (messages: readonly Uint8Array[]) => Promise<void>;
  #messages: Uint8Array[] = [];
  #resolves: (() => void)[] = [];
  #rejects: ((error: unknown) => void)[] = [];
  #isRunning = false;

  constructor(write: (messages: readonly Uint8Array[]) => Promise<void>) {
    this.#write = write;
  }

  put(message: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#messages.push(message);
      this.#resolves.push(resolve);
      this.#rejects.push(reject);
      if (!this.#isRunning) {
        this.#isRunning = true;
        process.nextTick(() => void this.#run());
      }
    });
  }

  async #run(): Promise<void> {
    while (this.#messages.length > 0) {
      const [messages, resolves, rejects] = [this.#messages, this.#resolves, this.#rejects];
      this.#messages = [];
      this.#resolves = [];
      this.#rejects = [];
      try {
        await this.#write(messages);
        for (const resolve of resolves) resolve();
      } catch (error) {
        for (const reject of rejects) reject(error);
      }
      // Callers whose puts have resolved put again before the next batch starts: that is after all microtasks.
      await new Promise<void>((resolve) => {
        process.nextTick(resolve);
      });
    }
    this.#isRunning = false;
  }
}

/** For stores that cannot wait for messages: every put announces itself. */
export class Arrivals {
  #hasNew = false;
  #wake: (() => void) | undefined;

  announce(): void {
    this.#hasNew = true;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Resolves when a message was announced since the last call. One caller at a time. */
  async wait(): Promise<void> {
    if (!this.#hasNew) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#hasNew = false;
  }
}

/** One write and one sync for all pending puts: the fastest use of this file system from JavaScript. */
class RawStore implements MessageStore {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #syncs: boolean;
  readonly #commit = new GroupCommit((messages) => this.#write(messages));
  #buffer = Buffer.allocUnsafe(64 * MESSAGE_BYTES);
  #end = 0;

  constructor(path: string, file: FileHandle, syncs: boolean) {
    this.#path = path;
    this.#file = file;
    this.#syncs = syncs;
  }

  put(message: Uint8Array): Promise<void> {
    return this.#commit.put(message);
  }

  take(count: number, handle: Handle): Promise<void> {
    return readAll(this.#path, count, handle);
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #write(messages: readonly Uint8Array[]): Promise<void> {
    const bytes = messages.length * MESSAGE_BYTES;
    if (this.#buffer.length < bytes) this.#buffer = Buffer.allocUnsafe(bytes);
    for (let i = 0; i < messages.length; i++) this.#buffer.set(messages[i] as Uint8Array, i * MESSAGE_BYTES);
    await this.#file.write(this.#buffer, 0, bytes, this.#end);
    if (this.#syncs) await this.#file.datasync();
    this.#end += bytes;
  }
}

class StreamStore implements MessageStore {
  readonly #path: string;
  readonly #stream: WriteStream;

  constructor(path: string, stream: WriteStream) {
    this.#path = path;
    this.#stream = stream;
  }

  put(message: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(message, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }

  take(count: number, handle: Handle): Promise<void> {
    return readAll(this.#path, count, handle);
  }

  async close(): Promise<void> {
    this.#stream.end();
    await once(this.#stream, 'close');
  }
}

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

export const openRaw =
  (syncs: boolean): OpenStore =>
  async (folder) => {
    const path = `${folder}/${FILE}`;
    return new RawStore(path, await open(path, 'wx'), syncs);
  };

export const openStream: OpenStore = async (folder) => {
  const path = `${folder}/${FILE}`;
  const stream = createWriteStream(path, { flags: 'a' });
  await once(stream, 'open');
  return new StreamStore(path, stream);
};

export const rawSynced = baseline('write + fdatasync', openRaw(true));
export const rawUnsynced = baseline('write', openRaw(false));
export const writeStream = rival('fs.WriteStream', openStream);
export const writeStreamSynced = unable('fs.WriteStream', 'it has no sync before its end');
export const readStream = baseline(
  'fs.ReadStream',
  openStream,
  'reads what fs.WriteStream wrote, and copies each message: nothing is acknowledged, which it could not do.',
);

class LevelStore implements MessageStore {
  readonly #db: ClassicLevel<Uint8Array, Uint8Array>;
  readonly #sync: boolean;
  readonly #arrivals = new Arrivals();
  readonly #commit: GroupCommit | undefined;
  #next = 0;

  constructor(db: ClassicLevel<Uint8Array, Uint8Array>, sync: boolean, isBatched: boolean) {
    this.#db = db;
    this.#sync = sync;
    this.#commit = isBatched ? new GroupCommit((messages) => this.#writeAll(messages)) : undefined;
  }

  async put(message: Uint8Array): Promise<void> {
    if (this.#commit === undefined) await this.#db.put(this.#newKey(), message, { sync: this.#sync });
    else await this.#commit.put(message);
    this.#arrivals.announce();
  }

  async take(count: number, handle: Handle): Promise<void> {
    let last: Uint8Array = new Uint8Array(0);
    for (let left = count; left > 0;) {
      // After the last key: from the first, the iterator would go over deleted entries that are not yet compacted.
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
  (sync: boolean, isBatched: boolean): OpenStore =>
  async (folder) => {
    const encodings = { keyEncoding: 'view', valueEncoding: 'view' } as const;
    const db = new ClassicLevel<Uint8Array, Uint8Array>(folder, encodings);
    await db.open();
    return new LevelStore(db, sync, isBatched);
  };

export const levelSynced = rival('classic-level', openLevel(true, false));
export const levelSyncedBatched = rival('classic-level, batched', openLevel(true, true));
export const levelUnsynced = rival('classic-level', openLevel(false, false));
export const levelUnsyncedBatched = rival('classic-level, batched', openLevel(false, true));

/** lmdb batches by itself. */
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

  async take(count: number, handle: Handle): Promise<void> {
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
    const options = { path: `${folder}/data`, encoding: 'binary', noSync: !isSynced } as const;
    return Promise.resolve(new LmdbStore(openDatabase<Buffer, number>(options), isSynced));
  };

export const lmdbSynced = rival('lmdb', openLmdb(true));
export const lmdbUnsynced = rival('lmdb', openLmdb(false));

class ReceiveStore implements MessageStore {
  protected readonly queue: DiskQueue;

  constructor(queue: DiskQueue) {
    this.queue = queue;
  }

  put(message: Uint8Array): Promise<void> {
    return this.queue.put(message);
  }

  async take(count: number, handle: Handle): Promise<void> {
    for (let left = count; left > 0; left--) {
      const delivery = await this.queue.receive();
      handle(delivery.data);
      delivery.ack();
    }
  }

  close(): Promise<void> {
    return this.queue.close();
  }
}

class LoopStore extends ReceiveStore {
  override async take(count: number, handle: Handle): Promise<void> {
    if (count === 0) return;
    let left = count;
    for await (const message of this.queue) {
      handle(message);
      if (--left === 0) break; // the last one is not acknowledged
    }
  }
}

const openQueue =
  (durability: Durability, Store: typeof ReceiveStore): OpenStore =>
  async (folder) =>
    new Store(await DiskQueue.open({ name: QUEUE_NAME, dataPath: folder, durability }));

export const openOursOs = openQueue('os', ReceiveStore);
export const oursAlways = ours('ours', openQueue('always', ReceiveStore));
export const oursOs = ours('ours', openOursOs);
export const oursReceive = ours('ours: receive', openOursOs);
export const oursLoop = ours('ours: for await', openQueue('os', LoopStore));

class ArrayStore implements MessageStore {
  #messages: Uint8Array[] = [];

  put(message: Uint8Array): Promise<void> {
    this.#messages.push(Uint8Array.from(message));
    return Promise.resolve();
  }

  take(count: number, handle: Handle): Promise<void> {
    this.#messages.splice(0, count).forEach(handle);
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#messages = [];
    return Promise.resolve();
  }
}

/** The stores whose memory is measured. */
export const DEPTH_STORES = [
  baseline<OpenStore>('an array, no disk', () => Promise.resolve(new ArrayStore())),
  levelUnsyncedBatched,
  lmdbUnsynced,
  oursOs,
];
