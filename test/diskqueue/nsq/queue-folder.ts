import { readdirSync, readFileSync, rmSync, cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { hostFileSystem } from '../../../src/log/file-system.ts';
import type { CorruptionEvent, MessageLog, StoredMessage } from '../../../src/diskqueue/message-log.ts';
import type { NsqLogOptions } from '../../../src/diskqueue/nsq/data-files.ts';
import { NsqLog } from '../../../src/diskqueue/nsq/nsq-log.ts';
import { folderOfTest } from '../../folder.ts';

/** An open log, and the damage that it has reported. */
export interface OpenLog {
  readonly log: NsqLog;
  readonly damages: CorruptionEvent[];
}

/** A temporary folder with the files of the queue `q`. */
export class QueueFolder {
  readonly path = folderOfTest();

  /** A folder with data files, by number, and perhaps with metadata. */
  static of(files: Readonly<Record<number, Uint8Array>>, metadata?: string): QueueFolder {
    const folder = new QueueFolder();
    for (const [number, bytes] of Object.entries(files)) folder.write(folder.file(Number(number)), bytes);
    if (metadata !== undefined) folder.metadata = metadata;
    return folder;
  }

  /** Returns a copy of the folder as it is now: what a killed process leaves. */
  killed(): QueueFolder {
    const copy = new QueueFolder();
    cpSync(this.path, copy.path, { recursive: true });
    return copy;
  }

  /** Opens the log, which is closed when the test is over. */
  async open(options: Partial<NsqLogOptions> = {}): Promise<OpenLog> {
    const damages: CorruptionEvent[] = [];
    const log = await NsqLog.open({
      ...{ files: hostFileSystem, folder: this.path, name: 'q', maxBytesPerFile: 140, maxMessageSize: 1024 },
      ...{ isAlwaysDurable: true, onCorruption: (event) => damages.push(event) },
      ...options,
    });
    onTestFinished(() => log.close().catch(() => undefined));
    return { log, damages };
  }

  get names(): string[] {
    return readdirSync(this.path).sort();
  }

  /** The data files, by number, as `0`, `12` or `3.bad`. */
  get data(): string[] {
    const numbers = this.names.flatMap((name) => /^q\.diskqueue\.0*(\d+)\.dat(\.bad)?$/.exec(name) ?? []);
    return numbers.filter((_, i) => i % 3 === 1).map((digits, i) => digits + (numbers[i * 3 + 2] ?? ''));
  }

  get metadata(): string {
    return this.read('q.diskqueue.meta.dat').toString('latin1');
  }

  set metadata(text: string) {
    this.write('q.diskqueue.meta.dat', Buffer.from(text, 'latin1'));
  }

  file(number: number): string {
    return `q.diskqueue.${String(number).padStart(6, '0')}.dat`;
  }

  pathOf(name: string): string {
    return join(this.path, name);
  }

  read(name: string): Buffer {
    return readFileSync(this.pathOf(name));
  }

  write(name: string, bytes: Uint8Array): void {
    writeFileSync(this.pathOf(name), bytes, { mode: 0o600 });
  }

  remove(name: string): void {
    rmSync(this.pathOf(name));
  }
}

/** A new folder, and its open log. */
export async function opened(
  options: Partial<NsqLogOptions> = {},
): Promise<OpenLog & { readonly folder: QueueFolder }> {
  const folder = new QueueFolder();
  return { folder, ...(await folder.open(options)) };
}

/** Messages of ten bytes, so that a record has 14 and ten of them fill a file of 140: `message000`, `message001`. */
export function messages(count: number, first = 0): Buffer[] {
  return Array.from({ length: count }, (_, i) => Buffer.from(`message${String(first + i).padStart(3, '0')}`));
}

export function record(message: Uint8Array | string): Buffer {
  const payload = Buffer.from(message);
  const length = Buffer.alloc(4);
  length.writeInt32BE(payload.length);
  return Buffer.concat([length, payload]);
}

export function records(list: readonly Uint8Array[]): Buffer {
  return Buffer.concat(list.map(record));
}

/** Appends, and syncs, as often as it takes. */
export async function put(log: MessageLog, list: readonly Uint8Array[]): Promise<void> {
  for (let left = list; left.length > 0;) {
    const { appended, error } = await log.append(left);
    if (error !== undefined) throw error as Error;
    if (appended === 0) throw new Error(`nothing of ${left.length} was appended`);
    await log.sync();
    left = left.slice(appended);
  }
}

/** Returns all messages that can be read now. */
export async function readAll(log: MessageLog): Promise<StoredMessage[]> {
  const all: StoredMessage[] = [];
  for (let some = await log.read(); some.length > 0; some = await log.read()) all.push(...some);
  return all;
}

export function texts(list: readonly (StoredMessage | Uint8Array)[]): string[] {
  return list.map((one) => Buffer.from(one instanceof Uint8Array ? one : one.data).toString('latin1'));
}

/** Reads and acknowledges everything. */
export async function drain(log: MessageLog): Promise<string[]> {
  const all = await readAll(log);
  for (const message of all) log.acknowledge(message);
  return texts(all);
}

/** Expects that a queue opens with these messages, and that more can be put and read, also after a reopen. */
export async function expectWhole(
  folder: QueueFolder,
  expected: readonly string[],
  damages = 0,
): Promise<void> {
  const open = await folder.open();
  expect(open.log.depth).toBe(expected.length);
  expect(await drain(open.log)).toEqual(expected);
  await put(open.log, messages(3, 900));
  await open.log.close();
  const again = await folder.open();
  expect(again.log.depth).toBe(3);
  expect(await drain(again.log)).toEqual(texts(messages(3, 900)));
  await again.log.close();
  expect(open.damages).toHaveLength(damages);
  expect(again.damages).toEqual([]);
}
