import type { File, FileSystem } from '../../src/log/file-system.ts';
import type { Random } from './random.ts';
import { hostError } from './support/wrapped-files.ts';

/*
 * A disk in memory that writes down what is done to it, and can tell what may be left of it after a power cut at any
 * moment:
 *
 * - Of a file, what a sync that was finished has covered is there. Of what was written later, each sector of 512 bytes
 *   is there or not, in any order; one that was written again is there as it was some time between. The size of the
 *   file is what it was at some time between, or any whole number of sectors up to it. What is not there is zeros.
 * - In a folder, each name that was made, changed or removed since its last sync is, or is not.
 */

/** What was done to the disk. */
export type Operation =
  | { readonly kind: 'write'; readonly file: number; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly file: number; readonly length: number }
  | { readonly kind: 'create'; readonly file: number; readonly path: string }
  | { readonly kind: 'rename'; readonly file: number; readonly from: string; readonly path: string }
  | { readonly kind: 'unlink'; readonly path: string }
  /** Finished here, and covers what was done before `begun`. */
  | { readonly kind: 'sync'; readonly file: number; readonly begun: number }
  | { readonly kind: 'syncFolder'; readonly begun: number };

/** Files by their path. */
export type Disk = Map<string, Buffer>;

interface Inode {
  readonly number: number;
  bytes: Buffer;
  size: number;
}

const SECTOR_BYTES = 512;

export class RecordingFileSystem implements FileSystem {
  readonly log: Operation[] = [];
  /** Files that are open. */
  handles = 0;
  /** Bytes that were read. */
  bytesRead = 0;
  readonly #start: Disk;
  readonly #inodes: Inode[] = [];
  readonly #names = new Map<string, Inode>();

  constructor(start: Disk = new Map()) {
    this.#start = start;
    for (const [path, bytes] of start) this.#names.set(path, this.#newInode(Buffer.from(bytes)));
  }

  /** As it is now, without any crash. */
  get disk(): Disk {
    const entries = [...this.#names].map(
      ([path, { bytes, size }]) => [path, bytes.subarray(0, size)] as const,
    );
    return new Map(entries.map(([path, bytes]) => [path, Buffer.from(bytes)]));
  }

  async open(path: string): Promise<File> {
    await turn();
    return new RecordingFile(this, this.#inode('open', path));
  }

  async create(path: string): Promise<File> {
    await turn();
    if (this.#names.has(path)) throw hostError('EEXIST', 'open', path);
    const inode = this.#newInode(Buffer.alloc(0));
    this.#names.set(path, inode);
    this.log.push({ kind: 'create', file: inode.number, path });
    return new RecordingFile(this, inode);
  }

  async list(folder: string): Promise<string[]> {
    await turn();
    const paths = [...this.#names.keys()].filter((path) => path.startsWith(`${folder}/`));
    return paths.map((path) => path.slice(folder.length + 1));
  }

  async size(path: string): Promise<number> {
    await turn();
    return this.#inode('stat', path).size;
  }

  async rename(from: string, to: string): Promise<void> {
    await turn();
    const inode = this.#inode('rename', from);
    this.#names.delete(from);
    this.#names.set(to, inode);
    this.log.push({ kind: 'rename', file: inode.number, from, path: to });
  }

  async unlink(path: string): Promise<void> {
    await turn();
    this.#inode('unlink', path);
    this.#names.delete(path);
    this.log.push({ kind: 'unlink', path });
  }

  async makeFolder(): Promise<void> {
    await turn();
  }

  async syncFolder(): Promise<void> {
    const begun = this.log.length;
    await turn();
    this.log.push({ kind: 'syncFolder', begun });
  }

  #newInode(bytes: Buffer): Inode {
    const inode = { number: this.#inodes.length, bytes, size: bytes.length };
    this.#inodes.push(inode);
    return inode;
  }

  #inode(syscall: string, path: string): Inode {
    const inode = this.#names.get(path);
    if (inode === undefined) throw hostError('ENOENT', syscall, path);
    return inode;
  }

  /** A disk as a power cut may leave it after the first `point` operations. */
  afterPowerCut(point: number, remains: Remains): Disk {
    const done = this.log.slice(0, point);
    const starts = [...this.#start.values()];
    const disk: Disk = new Map();
    for (const [path, file] of namesAfter([...this.#start.keys()], done, remains)) {
      disk.set(path, contentAfter(file, starts[file] ?? Buffer.alloc(0), done, remains));
    }
    return disk;
  }

  /** Sectors and names that a power cut at that moment may or may not spare. */
  unsyncedAt(point: number): number {
    let count = 0;
    this.afterPowerCut(point, { keeps: () => (count++, true), choose: (below) => (count++, below - 1) });
    return count;
  }
}

/** What of the things that were not synced is left: asked in a fixed order. */
export interface Remains {
  /** Whether a change of a name has reached the disk. */
  keeps(): boolean;
  /** Which of several sizes or versions of a sector it is, from the oldest to the newest. */
  choose(below: number): number;
  /** The same for sizes alone. @default choose */
  chooseSize?(below: number): number;
}

export const nothingRemains: Remains = { keeps: () => false, choose: () => 0 };
export const allRemains: Remains = { keeps: () => true, choose: (below) => below - 1 };

/** All but the one that is asked for as the `nth`; or that one alone. */
export function allBut(nth: number): Remains {
  let asked = 0;
  const isIt = (): boolean => asked++ === nth;
  return { keeps: () => !isIt(), choose: (below) => (isIt() ? 0 : below - 1) };
}

export function only(nth: number): Remains {
  let asked = 0;
  const isIt = (): boolean => asked++ === nth;
  return { keeps: isIt, choose: (below) => (isIt() ? below - 1 : 0) };
}

export function someRemains(random: Random): Remains {
  const probability = random.pick([0.1, 0.5, 0.9]);
  return {
    keeps: () => random.chance(probability),
    choose: (below) => (random.chance(probability) ? below - 1 : random.below(below)),
  };
}

/**
 * As on a disk that writes in order: names change as in a journal, and a file is as long as it was some time between. What was
 * written is there, or all of it is zeros.
 */
export function orderedRemains(random: Random): Remains {
  const probability = random.pick([0.1, 0.5, 0.9]);
  const isZeros = random.chance(0.2);
  let isKept = true;
  return {
    keeps: () => (isKept &&= random.chance(probability)),
    choose: (below) => (isZeros ? 0 : below - 1),
    chooseSize: (below) => (isZeros ? below - 1 : random.below(below)),
  };
}

/** Every answer to every question, one after another: all that may be left. The first answers are those of `nothingRemains`. */
export function* everyRemains(): Generator<Remains> {
  const answers: number[] = [];
  const limits: number[] = [];
  do {
    let asked = 0;
    const choose = (below: number): number => {
      limits[asked] = below;
      return (answers[asked++] ??= 0);
    };
    yield { keeps: () => choose(2) === 1, choose };
    answers.length = asked;
    while (answers.length > 0 && (answers.at(-1) ?? 0) + 1 === limits[answers.length - 1]) answers.pop();
    if (answers.length > 0) answers.push((answers.pop() ?? 0) + 1);
  } while (answers.length > 0);
}

function namesAfter(
  start: readonly string[],
  done: readonly Operation[],
  remains: Remains,
): Map<string, number> {
  const names = new Map(start.map((path, file) => [path, file]));
  const syncedTo = Math.max(
    0,
    ...done.map((operation) => (operation.kind === 'syncFolder' ? operation.begun : 0)),
  );
  for (const [i, operation] of done.entries()) {
    const { kind } = operation;
    if (kind !== 'create' && kind !== 'rename' && kind !== 'unlink') continue;
    if (i >= syncedTo && !remains.keeps()) continue;
    if (kind === 'rename') names.delete(operation.from);
    if (kind === 'unlink') names.delete(operation.path);
    else names.set(operation.path, operation.file);
  }
  return names;
}

type Change = Extract<Operation, { kind: 'write' | 'truncate' }>;

function contentAfter(file: number, start: Buffer, done: readonly Operation[], remains: Remains): Buffer {
  let syncedTo = 0;
  for (const operation of done) {
    if (operation.kind === 'sync' && operation.file === file) syncedTo = Math.max(syncedTo, operation.begun);
  }
  let bytes = Buffer.from(start);
  const unsynced: Change[] = [];
  for (const [i, operation] of done.entries()) {
    if ((operation.kind !== 'write' && operation.kind !== 'truncate') || operation.file !== file) continue;
    const isWithin = operation.kind === 'write' && operation.at + operation.bytes.length <= bytes.length;
    if (i < syncedTo && isWithin) operation.bytes.copy(bytes, operation.at);
    else if (i < syncedTo) bytes = changed(bytes, operation);
    else unsynced.push(operation);
  }
  return unsynced.length === 0 ? bytes : torn(bytes, unsynced, remains);
}

/** Sector by sector as it was at some time between. */
function torn(start: Buffer, unsynced: readonly Change[], remains: Remains): Buffer {
  const versions = [start];
  for (const change of unsynced) versions.push(changed(versions.at(-1) as Buffer, change));
  const sizes = possibleSizes(versions);
  const size = sizes[remains.chooseSize?.(sizes.length) ?? remains.choose(sizes.length)] as number;
  const result = Buffer.alloc(size);
  for (let from = 0; from < size; from += SECTOR_BYTES) {
    const to = Math.min(from + SECTOR_BYTES, size);
    const ofSector = differentVersions(versions, from, to);
    const chosen = ofSector.length > 1 ? remains.choose(ofSector.length) : 0;
    ofSector[chosen]?.copy(result, from);
  }
  return result;
}

function possibleSizes(versions: readonly Buffer[]): number[] {
  const sizes = new Set<number>();
  for (const [i, { length }] of versions.entries()) {
    const before = versions[i - 1]?.length ?? length;
    for (let size = before + SECTOR_BYTES - (before % SECTOR_BYTES); size < length; size += SECTOR_BYTES) {
      sizes.add(size);
    }
    sizes.delete(length);
    sizes.add(length);
  }
  return [...sizes];
}

function differentVersions(versions: readonly Buffer[], from: number, to: number): Buffer[] {
  const different: Buffer[] = [];
  for (const version of versions) {
    const sector = Buffer.alloc(to - from);
    version.subarray(from, to).copy(sector);
    if (different.at(-1)?.equals(sector) !== true) different.push(sector);
  }
  return different;
}

function changed(bytes: Buffer, change: Change): Buffer<ArrayBuffer> {
  const size =
    change.kind === 'truncate' ? change.length : Math.max(bytes.length, change.at + change.bytes.length);
  const result = Buffer.alloc(size);
  bytes.copy(result);
  if (change.kind === 'write') change.bytes.copy(result, change.at);
  return result;
}

class RecordingFile implements File {
  readonly #system: RecordingFileSystem;
  readonly #inode: Inode;
  #isOpen = true;

  constructor(system: RecordingFileSystem, inode: Inode) {
    this.#system = system;
    this.#inode = inode;
    system.handles++;
  }

  async read(buffer: Buffer, position: number): Promise<number> {
    this.#requireOpen('read');
    await turn();
    const { bytes, size } = this.#inode;
    const read = bytes.copy(buffer, 0, Math.min(position, size), Math.min(position + buffer.length, size));
    this.#system.bytesRead += read;
    return read;
  }

  async write(buffer: Buffer, position: number): Promise<void> {
    this.#requireOpen('write');
    const inode = this.#inode;
    const end = position + buffer.length;
    if (end > inode.bytes.length) {
      const grown = Buffer.alloc(Math.max(end, 2 * inode.bytes.length));
      inode.bytes.copy(grown, 0, 0, inode.size);
      inode.bytes = grown;
    }
    buffer.copy(inode.bytes, position);
    inode.size = Math.max(inode.size, end);
    this.#system.log.push({ kind: 'write', file: inode.number, at: position, bytes: Buffer.from(buffer) });
    await turn();
  }

  async truncate(length: number): Promise<void> {
    this.#requireOpen('ftruncate');
    const inode = this.#inode;
    const bytes = Buffer.alloc(length);
    inode.bytes.copy(bytes, 0, 0, Math.min(length, inode.size));
    inode.bytes = bytes;
    inode.size = length;
    this.#system.log.push({ kind: 'truncate', file: inode.number, length });
    await turn();
  }

  async sync(): Promise<void> {
    this.#requireOpen('fdatasync');
    const begun = this.#system.log.length;
    await turn();
    this.#system.log.push({ kind: 'sync', file: this.#inode.number, begun });
  }

  async close(): Promise<void> {
    this.#requireOpen('close');
    this.#isOpen = false;
    this.#system.handles--;
    await turn();
  }

  #requireOpen(syscall: string): void {
    if (!this.#isOpen) throw hostError('EBADF', syscall, '');
  }
}

/** Nothing of the host's is done at once. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
