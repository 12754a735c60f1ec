/** Files without a format: nothing says where a message ends, nothing is checked, and none can be removed. */
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { once } from 'node:events';
import { Gathered } from './gathered.ts';
import type { MessageStore, OpenStore, StoreKind } from './message-store.ts';
import { MESSAGE_BYTES } from './messages.ts';

const FILE = 'messages';
/** What the queue reads at once, too. */
const READ_BYTES = 128 * 1024;

/** One write, and one sync, for all who have asked: as fast as this file system can be used from JavaScript. */
class RawStore implements MessageStore {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #syncs: boolean;
  readonly #gathered = new Gathered((messages) => this.#write(messages));
  #buffer = Buffer.allocUnsafe(64 * MESSAGE_BYTES);
  #end = 0;

  constructor(path: string, file: FileHandle, syncs: boolean) {
    this.#path = path;
    this.#file = file;
    this.#syncs = syncs;
  }

  put(message: Uint8Array): Promise<void> {
    return this.#gathered.put(message);
  }

  take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
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

  take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
    return readAll(this.#path, count, handle);
  }

  async close(): Promise<void> {
    this.#stream.end();
    await once(this.#stream, 'close');
  }
}

async function readAll(path: string, count: number, handle: (message: Uint8Array) => void): Promise<void> {
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

const openRaw =
  (syncs: boolean): OpenStore =>
  async (folder) => {
    const path = `${folder}/${FILE}`;
    return new RawStore(path, await open(path, 'wx'), syncs);
  };

const openStream: OpenStore = async (folder) => {
  const path = `${folder}/${FILE}`;
  const stream = createWriteStream(path, { flags: 'a' });
  await once(stream, 'open');
  return new StreamStore(path, stream);
};

export const rawSynced: StoreKind = { name: 'write + fdatasync', role: 'baseline', open: openRaw(true) };
export const rawUnsynced: StoreKind = { name: 'write', role: 'baseline', open: openRaw(false) };
export const writeStream: StoreKind = { name: 'fs.WriteStream', role: 'rival', open: openStream };
export const readStream: StoreKind = {
  name: 'fs.ReadStream',
  role: 'baseline',
  note: 'reads what fs.WriteStream wrote, and a copy of each message: nothing is acknowledged, nor could it be.',
  open: openStream,
};
export const writeStreamUnsynced: StoreKind = {
  name: 'fs.WriteStream',
  role: 'rival',
  open: { cannot: 'it has no sync before its end' },
};
