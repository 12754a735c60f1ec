import { type FileSystem, isMissing, withFile } from '../../log/file-system.ts';
import type { CorruptionEvent } from '../message-log.ts';
import { examineFile, type FoundFile } from './examine-file.ts';
import { dataFileName, metadataFileName, sortNames, type QueueFiles } from './file-names.ts';
import { MetadataFile } from './metadata-file.ts';
import type { Metadata } from './metadata.ts';
import { walkRecords } from './record-walk.ts';
import { findMissing, knownEnd } from './recover-queue.ts';

/** Longest record that is taken for one that was being written, in bytes: the default size of a file. */
const LONGEST_RECORD = 100 * 1024 * 1024;

/** What is in one data file. */
export interface InspectedFile extends FoundFile {
  readonly number: number;
  readonly path: string;
  readonly size: number;
  /** Records before the read position that are still in it. */
  readonly consumed: number;
}

/** What the files of a queue hold. */
export interface InspectedQueue {
  readonly found: QueueFiles;
  readonly metadata: Metadata | undefined;
  /** Whether there is a file for it, whatever is in it. */
  readonly hasMetadata: boolean;
  /** All data files, ascending. */
  readonly files: readonly InspectedFile[];
  /** What is damaged or missing. */
  readonly damages: readonly CorruptionEvent[];
}

/** Reads the heads of all records, from the first byte on. Changes nothing. @param onFile - told of each file's size. */
export async function inspectQueue(
  files: FileSystem,
  folder: string,
  name: string,
  onFile: (bytes: number) => void = () => undefined,
): Promise<InspectedQueue> {
  const names = await files.list(folder);
  const found = sortNames(name, names);
  const metadata = await new MetadataFile(files, folder, name).load();
  const unread = found.data.filter((number) => metadata === undefined || number >= metadata.read.number);
  const options = { files, folder, name, maxBytesPerFile: LONGEST_RECORD, maxMessageSize: 0 };
  const damages = metadata === undefined ? [] : findMissing(options, found, unread, metadata);
  const inspected: InspectedFile[] = [];
  for (const number of found.data) {
    const path = `${folder}/${dataFileName(name, number)}`;
    const file = await inspectFile(files, path, number, metadata, number === found.data.at(-1));
    if (file === undefined) continue;
    inspected.push(file);
    if (file.damage !== undefined) damages.push(file.damage);
    onFile(file.size);
  }
  const hasMetadata = names.includes(metadataFileName(name));
  return { found, metadata, hasMetadata, files: inspected, damages };
}

/** Undefined if whoever has the queue open has removed it meanwhile. */
async function inspectFile(
  files: FileSystem,
  path: string,
  number: number,
  metadata: Metadata | undefined,
  isLast: boolean,
): Promise<InspectedFile | undefined> {
  try {
    const size = await files.size(path);
    const from = readOffsetIn(number, size, metadata);
    const known = knownEnd(number, isLast, metadata);
    const found = await examineFile(files, path, { from, known, longestRecord: LONGEST_RECORD });
    const consumed = await withFile(files, path, 'read', (file) =>
      walkRecords(file, 0, Math.min(from, size)),
    );
    return { ...found, number, path, size, consumed: consumed.records };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Where the first record is that is not consumed. */
export function readOffsetIn(number: number, size: number, metadata: Metadata | undefined): number {
  if (metadata === undefined || number > metadata.read.number) return 0;
  return number < metadata.read.number ? size : metadata.read.offset;
}
