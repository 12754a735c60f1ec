/** Messages of 256 bytes, the stores that keep them, the callers that put them, and the folder of their files. */
import { statfsSync, type StatsFs } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { UsageError } from '../lib/program.ts';

export interface MessageStore {
  /** Resolves when the message is as durable as the case requires. The caller may then change the bytes. */
  put(message: Uint8Array): Promise<void>;
  /** Receives `count` messages in order and removes them; waits for those that have not been put yet. */
  take(count: number, handle: (message: Uint8Array) => void): Promise<void>;
  close(): Promise<void>;
}

export type OpenStore = (folder: string) => Promise<MessageStore>;

/** Opens a store, calls `action`, and closes the store. */
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

/** Puts the messages `from` up to `to`. Each caller waits for its put. @param latenciesMs - of each put, by its number. */
export async function putAll(
  store: MessageStore,
  from: number,
  to: number,
  callers: number,
  latenciesMs?: Float64Array,
): Promise<void> {
  let next = from;
  const call = async (): Promise<void> => {
    const message = newMessage();
    while (next < to) {
      const number = next++;
      renumber(message, number);
      const startMs = performance.now();
      await store.put(message);
      if (latenciesMs !== undefined) latenciesMs[number - from] = performance.now() - startMs;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
}

export const QUEUE_NAME = 'bench';
export const MESSAGE_BYTES = 256;
const SENT_AT = 8;

/** Incompressible bytes, because classic-level compresses. */
const PATTERN = makePattern();

function makePattern(): Buffer {
  const pattern = Buffer.alloc(MESSAGE_BYTES);
  let state = 1;
  for (let i = 0; i < MESSAGE_BYTES; i++) {
    state = Math.imul(state, 1_664_525) + 1_013_904_223;
    pattern[i] = state >>> 24;
  }
  return pattern;
}

/** Makes a message with a number and a timestamp. */
export function newMessage(number = 0, sentAtMs = 0): Buffer {
  const message = Buffer.from(PATTERN);
  renumber(message, number);
  message.writeDoubleLE(sentAtMs, SENT_AT);
  return message;
}

function renumber(message: Buffer, number: number): void {
  message.writeUInt32LE(number, 0);
}

export function sentAtOf(message: Uint8Array): number {
  return viewOf(message).getFloat64(SENT_AT, true);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Verifies that messages are received in the order of their numbers: 0, 1, 2, … */
export class OrderCheck {
  readonly #expected: number;
  #seen = 0;
  #problem: string | undefined;

  constructor(expected: number) {
    this.#expected = expected;
  }

  readonly see = (message: Uint8Array): void => {
    const number = message.length < MESSAGE_BYTES ? -1 : viewOf(message).getUint32(0, true);
    if (number !== this.#seen) this.#problem ??= `received message ${number} in place of ${this.#seen}`;
    this.#seen++;
  };

  problem(): string | undefined {
    if (this.#problem !== undefined || this.#seen === this.#expected) return this.#problem;
    return `received ${this.#seen} messages, not ${this.#expected}`;
  }
}

const VARIABLE = 'ESCAPEMENT_BENCH_FOLDER';
const BASE = process.env[VARIABLE] ?? tmpdir();

/** Types that `statfs` returns on Linux. */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0x01_02_19_94: 'tmpfs',
  0x2f_c1_2f_c1: 'ZFS',
  0x58_46_53_42: 'XFS',
  0x65_73_55_46: 'FUSE',
  0x69_69: 'NFS',
  0x79_4c_76_30: 'overlayfs',
  0x91_23_68_3e: 'btrfs',
  0xef_53: 'ext2, ext3 or ext4',
};

/** Makes a folder for one contestant and removes it afterwards. */
export async function withFolder<R>(action: (folder: string) => Promise<R>): Promise<R> {
  const folder = await mkdtemp(join(BASE, 'escapement-bench-'));
  try {
    return await action(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function freeBytes(): number {
  const { bavail, bsize } = statistics();
  return bavail * bsize;
}

/** Describes the file system for the remarks, without its path, which may be private. */
export function describeFolder(): string {
  const { type } = statistics();
  const kind = FILE_SYSTEMS[type] ?? `a file system of type 0x${type.toString(16)}`;
  const where = process.env[VARIABLE] === undefined ? 'the folder for temporary files' : `the ${VARIABLE}`;
  const warning =
    kind === 'tmpfs'
      ? ` WARNING: tmpfs has no disk, so a sync costs nothing: set ${VARIABLE} to a folder on a disk.`
      : '';
  return `The files are in ${where}: ${kind}.${warning} Recent writes are read from the memory of the host, not from the disk.`;
}

function statistics(): StatsFs {
  try {
    return statfsSync(BASE);
  } catch (error) {
    throw new UsageError(`${VARIABLE}: cannot use '${BASE}': ${(error as Error).message}`);
  }
}
