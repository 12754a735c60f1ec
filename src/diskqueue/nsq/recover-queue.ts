import type { FileSystem } from '../../log/file-system.ts';
import type { CorruptionEvent } from '../message-log.ts';
import { emptyDataFile, type DataFile } from './data-file.ts';
import { examineFile, type FoundFile } from './examine-file.ts';
import { dataFileName, sortNames, type QueueFiles } from './file-names.ts';
import type { Metadata } from './metadata.ts';
import { RECORD_HEADER_BYTES } from './record.ts';

/*
 * What a queue holds, found out when it is opened.
 *
 * The files are the truth. The metadata says how much of the first one is consumed, which ones are consumed as a whole,
 * and what is on the disk for sure. Without it all files are read, from the first byte on: twice is better than never.
 * With it, the files behind its write position are read too: they were made since it was written.
 *
 * Every record is counted, because the depth in the metadata may be wrong. That reads the heads of the records only,
 * but where they are small it reads it all.
 */

export interface RecoveredQueue {
  /** With records that are not consumed; ascending. */
  readonly files: readonly DataFile[];
  /** How much of the first of them is consumed, in bytes. */
  readonly offset: number;
  /** Consumed as a whole. */
  readonly passed: readonly DataFile[];
  /** The last file, if more can be appended to it. */
  readonly current: DataFile | undefined;
  /** The number of that file, or of the next one to be made. */
  readonly number: number;
  readonly damages: readonly CorruptionEvent[];
}

export interface RecoverOptions {
  readonly files: FileSystem;
  readonly folder: string;
  readonly name: string;
  readonly maxBytesPerFile: number;
  readonly maxMessageSize: number;
}

/** Cuts off what is torn, and makes what the metadata does not know durable. */
export async function recoverQueue(
  options: RecoverOptions,
  metadata: Metadata | undefined,
): Promise<RecoveredQueue> {
  const { files, folder, name } = options;
  const found = sortNames(name, await files.list(folder));
  for (const temporary of found.temporary) {
    await files.unlink(`${folder}/${temporary}`).catch(() => undefined); // litter: it does not matter
  }
  const isPassed = (number: number): boolean => metadata !== undefined && number < metadata.read.number;
  const passed = found.data.filter(isPassed).map((number) => emptyDataFile(folder, name, number));
  const numbers = found.data.filter((number) => !isPassed(number));
  const damages = metadata === undefined ? [] : findMissing(options, found, numbers, metadata);
  const queue: DataFile[] = [];
  let last: FoundFile | undefined;
  for (const number of numbers) {
    const file = emptyDataFile(folder, name, number);
    last = await recoverFile(options, file, metadata, number === numbers.at(-1));
    if (last.damage !== undefined) damages.push(last.damage);
    queue.push(file);
  }
  const offset = metadata?.read.number === numbers[0] ? (metadata?.read.offset ?? 0) : 0;
  const current = last !== undefined && canGoOn(last, numbers, metadata) ? queue.at(-1) : undefined;
  const number = current?.number ?? nextNumber(found, metadata);
  return { files: queue, offset, passed, current, number, damages };
}

async function recoverFile(
  { files, maxBytesPerFile, maxMessageSize }: RecoverOptions,
  file: DataFile,
  metadata: Metadata | undefined,
  isLast: boolean,
): Promise<FoundFile> {
  const found = await examineFile(files, file.path, {
    from: file.number === metadata?.read.number ? metadata.read.offset : 0,
    known: knownEnd(file.number, isLast, metadata),
    longestRecord: Math.max(maxBytesPerFile, maxMessageSize + RECORD_HEADER_BYTES),
  });
  const isUnknown = file.number > (metadata?.write.number ?? -1);
  if (found.isLonger || isUnknown) await settle(files, file, found);
  file.end = found.end;
  file.unreadRecords = found.records;
  file.unreadBytes = found.bytes;
  file.isDamaged = found.isDamaged;
  return found;
}

/** Up to where a file is known to be on the disk; undefined if to its end, as before another one is made. */
export function knownEnd(
  number: number,
  isLast: boolean,
  metadata: Metadata | undefined,
): number | undefined {
  if (number === metadata?.write.number) return metadata.write.offset;
  return isLast && number > (metadata?.write.number ?? -1) ? 0 : undefined;
}

/** What was never promised is about to be. */
async function settle(files: FileSystem, { path }: DataFile, { end, isTorn }: FoundFile): Promise<void> {
  const handle = await files.open(path, 'write');
  try {
    if (isTorn) await handle.truncate(end);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Only a file that is as the metadata says: whoever reads by the metadata must not be surprised. */
function canGoOn(
  { isLonger, isShorter, isDamaged }: FoundFile,
  numbers: readonly number[],
  metadata: Metadata | undefined,
): boolean {
  const isLast = metadata !== undefined && metadata.write.number === numbers.at(-1);
  return isLast && !isLonger && !isShorter && !isDamaged;
}

/** Where nothing was ever written, and nothing put aside. */
function nextNumber({ data, bad }: QueueFiles, metadata: Metadata | undefined): number {
  const unused = Math.max(-1, ...data.slice(-1), ...bad) + 1;
  if (metadata === undefined) return unused;
  const { number, offset } = metadata.write;
  return Math.max(unused, offset > 0 ? number + 1 : number);
}

/**
 * Files that the metadata knows and nobody finds. The first of them may have been consumed, if go-diskqueue was killed
 * between the deleting of a file and the metadata that says so: that cannot be told from a file that was removed.
 */
export function findMissing(
  { folder, name }: RecoverOptions,
  { bad }: QueueFiles,
  numbers: readonly number[],
  { depth, read, write }: Metadata,
): CorruptionEvent[] {
  const damages: CorruptionEvent[] = [];
  const report = (number: number, offset: number, bytes: number, reason = 'the file is missing'): void => {
    damages.push({ file: `${folder}/${dataFileName(name, number)}`, offset, bytes, reason });
  };
  const offsetIn = (number: number): number => (number === read.number ? read.offset : 0);
  const wasLeft = depth > 0 || (read.number === write.number && read.offset < write.offset);
  const first = wasLeft ? read.number : (numbers[0] ?? Infinity);
  const end = write.offset > 0 ? write.number + 1 : write.number; // the last one may not have been made yet
  const there = [...numbers, ...bad].filter((number) => number >= first && number < end);
  let expected = first;
  for (const number of [...there.sort((a, b) => a - b), end]) {
    const missing = Math.min(number, write.number) - expected;
    if (missing === 1) report(expected, offsetIn(expected), 0);
    if (missing > 1) report(expected, offsetIn(expected), 0, `${missing} files are missing`);
    const offset = offsetIn(write.number);
    const isLastMissing = expected <= write.number && number > write.number;
    if (isLastMissing && write.offset > offset) report(write.number, offset, write.offset - offset);
    expected = number + 1;
  }
  return damages;
}
