import type { File, FileSystem } from '../../../src/log/file-system.ts';

/** Bytes of a file: as they are read, and as they are on the disk. */
interface Inode {
  seen: Buffer;
  durable: Buffer;
  /** What the host has dropped after a failed sync: nothing brings it to the disk any more. */
  dropped: [from: number, to: number][];
}

type Names = Map<string, Inode>;

/** What a power failure leaves of the bytes that were not synced, and how many of the changes to the folder. */
export interface PowerFailure {
  readonly bytes: 'none' | 'some' | 'all' | 'zeros';
  /** From 0, none, to 1, all of them. */
  readonly part: number;
}

/** Called before each call, with its number. Returns the code of an error, with which the call fails. */
export type Fault = (call: number, name: string) => string | undefined;

/**
 * A folder in memory that simulates a disk: after a power failure it has what was synced, and as much of the rest as a test
 * wants. A name survives if its folder was synced; changes to the folder survive in order, as with a journal. A write that
 * fails has written half; bytes of a failed sync are never written.
 */
export class CrashDisk implements FileSystem {
  #names: Names = new Map();
  #durableNames: Names = new Map();
  #changes: ((names: Names) => void)[] = [];
  #calls = 0;
  fault: Fault = () => undefined;

  get calls(): number {
    return this.#calls;
  }

  get names(): string[] {
    return [...this.#names.keys()].sort();
  }

  /** Returns the disk after a power failure. */
  afterPowerFailure({ bytes, part }: PowerFailure): CrashDisk {
    const disk = new CrashDisk();
    const names: Names = new Map(this.#durableNames);
    for (const change of this.#changes.slice(0, Math.round(part * this.#changes.length))) change(names);
    for (const [path, inode] of names) {
      const content = afterPowerFailure(inode, bytes, part);
      names.set(path, { seen: content, durable: content, dropped: [] });
    }
    disk.#names = names;
    disk.#durableNames = new Map(names);
    return disk;
  }

  /** Returns the disk after the process was killed. */
  afterKill(): CrashDisk {
    return this.afterPowerFailure({ bytes: 'all', part: 1 });
  }

  async open(path: string): Promise<File> {
    await this.#call('open');
    return this.#fileOf(this.#inode(path));
  }

  async create(path: string): Promise<File> {
    await this.#call('create');
    if (this.#names.has(path)) throw failure('EEXIST');
    const inode: Inode = { seen: Buffer.alloc(0), durable: Buffer.alloc(0), dropped: [] };
    this.#change((names) => names.set(path, inode));
    return this.#fileOf(inode);
  }

  async list(): Promise<string[]> {
    await this.#call('list');
    return [...this.#names.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1));
  }

  async size(path: string): Promise<number> {
    await this.#call('size');
    return this.#inode(path).seen.length;
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#call('rename');
    const inode = this.#inode(from);
    this.#change((names) => names.delete(from) && names.set(to, inode));
  }

  async unlink(path: string): Promise<void> {
    await this.#call('unlink');
    this.#inode(path);
    this.#change((names) => names.delete(path));
  }

  async makeFolder(): Promise<void> {
    await this.#call('makeFolder');
  }

  async syncFolder(): Promise<void> {
    await this.#call('syncFolder');
    this.#durableNames = new Map(this.#names);
    this.#changes = [];
  }

  #fileOf(inode: Inode): File {
    return {
      read: async (buffer, position) => {
        await this.#call('read');
        return inode.seen.copy(buffer, 0, position);
      },
      write: async (buffer, position) => {
        const error = await this.#call('write').catch((error: unknown) => error);
        const part = error === undefined ? buffer : buffer.subarray(0, buffer.length >> 1);
        const seen = Buffer.alloc(Math.max(inode.seen.length, position + part.length));
        inode.seen.copy(seen);
        part.copy(seen, position);
        inode.seen = seen;
        if (error !== undefined) throw error as Error;
      },
      truncate: async (length) => {
        await this.#call('truncate');
        const seen = Buffer.alloc(length);
        inode.seen.copy(seen);
        inode.seen = seen;
        inode.dropped = inode.dropped.map(([from, to]) => [Math.min(from, length), Math.min(to, length)]);
      },
      sync: async () => {
        try {
          await this.#call('sync');
        } catch (error) {
          inode.dropped.push([inode.durable.length, inode.seen.length]);
          throw error;
        }
        inode.durable = Buffer.from(inode.seen);
        for (const [from, to] of inode.dropped) inode.durable.fill(0, from, to);
      },
      close: () => this.#call('close'),
    };
  }

  #change(change: (names: Names) => void): void {
    change(this.#names);
    this.#changes.push(change);
  }

  #inode(path: string): Inode {
    const inode = this.#names.get(path);
    if (inode === undefined) throw failure('ENOENT');
    return inode;
  }

  /** Other calls may come in between, as with a disk. */
  async #call(name: string): Promise<void> {
    const code = this.fault(++this.#calls, name);
    await Promise.resolve();
    if (code !== undefined) throw failure(code);
  }
}

const MADE_BY_TEST = 'made by the test';

function failure(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${MADE_BY_TEST}`), { code });
}

export function isMadeByTest(error: unknown): boolean {
  return error instanceof Error && error.message.endsWith(MADE_BY_TEST);
}

function afterPowerFailure({ seen, durable }: Inode, bytes: PowerFailure['bytes'], part: number): Buffer {
  if (bytes === 'none') return durable;
  if (bytes === 'all') return seen;
  const kept = Math.min(durable.length, seen.length);
  const until = kept + Math.floor(part * (seen.length - kept));
  const some = Buffer.from(seen.subarray(0, until));
  return bytes === 'some' ? some : Buffer.concat([some, Buffer.alloc(seen.length - until)]);
}
