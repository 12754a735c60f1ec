import { withFile, type File, type FileSystem } from '../../log/file-system.ts';
import { zerosAtEnd } from '../../log/find-end.ts';
import type { CorruptionEvent } from '../message-log.ts';
import {
  dataFileName,
  filesOfQueue,
  LENGTH_BYTES,
  type Metadata,
  type Position,
  type QueueFiles,
} from './format.ts';
import { countRecords, type RecordCount } from './records.ts';

/*
 * What the files of a queue hold: the one examination that opening, verifying and repairing stand on. It changes nothing.
 *
 * The files are the truth. The metadata only adds how much of them is consumed, and up to where they were complete when
 * the metadata was written. Without metadata all files are read from their first byte on: twice is better than never.
 *
 *      0        from              known              size
 *      ├─ consumed ─┼── promised ────┼── beyond ───────┤
 *
 * Up to `known` the metadata promises records, and that they are on the disk: what cannot be read there is damage. Beyond
 * it are the bytes written since, as far as they got. The last record may be torn; or it may be zeros, if the file had
 * grown when the power failed and its bytes had not arrived. No put had resolved for these.
 *
 * Four zeros are also an empty message. Zeros at the end of `beyond` are taken for torn. To keep empty messages all the
 * same, the log saves the metadata behind one (see appender.ts).
 *
 * The depth in the metadata may be wrong, so every record is counted. That reads headers only, which is everything where
 * messages are small.
 */

export const NOT_A_RECORD = 'no record begins here';

export interface ExaminedFile {
  readonly number: number;
  readonly path: string;
  readonly size: number;
  /** Where the first record begins that is not consumed. */
  readonly from: number;
  /** How long the file is according to the metadata, at least. */
  readonly known: number;
  /** Where the last intact record ends. */
  readonly end: number;
  readonly records: number;
  /** Bytes of their messages. */
  readonly bytes: number;
  /** `torn`: the bytes behind `end` were being written. `damaged`: they are not records. `short`: the file lacks some. */
  readonly state: 'whole' | 'torn' | 'damaged' | 'short';
  /** Undefined if no message is lost. */
  readonly damage: CorruptionEvent | undefined;
}

export interface ExaminedDataFiles {
  readonly metadata: Metadata | undefined;
  readonly names: QueueFiles;
  /** All data files, ascending. */
  readonly files: readonly ExaminedFile[];
  readonly damages: readonly CorruptionEvent[];
}

/**
 * @param longestRecord - the longest record that can have been in the middle of being written.
 * @param onFile - called with the size of each file.
 * @throws `ENOENT` - another process has removed a file meanwhile.
 */
export async function examineDataFiles(
  files: FileSystem,
  folder: string,
  name: string,
  metadata: Metadata | undefined,
  longestRecord: number,
  onFile?: (bytes: number) => void,
): Promise<ExaminedDataFiles> {
  const names = filesOfQueue(name, await files.list(folder));
  const damages = metadata === undefined ? [] : missingFiles(folder, name, names, metadata);
  const examined: ExaminedFile[] = [];
  for (const number of names.data) {
    const path = `${folder}/${dataFileName(name, number)}`;
    const known = knownEnd(number, number === names.data.at(-1), metadata);
    const file = await examineFile(files, number, path, metadata?.read, known, longestRecord);
    examined.push(file);
    if (file.damage !== undefined) damages.push(file.damage);
    onFile?.(file.size);
  }
  return { metadata, names, files: examined, damages };
}

/** Up to where a file is known to be on the disk; undefined if to its end, which is synced before the next file is made. */
function knownEnd(number: number, isLast: boolean, metadata: Metadata | undefined): number | undefined {
  if (number === metadata?.write.number) return metadata.write.offset;
  return isLast && number > (metadata?.write.number ?? -1) ? 0 : undefined;
}

async function examineFile(
  files: FileSystem,
  number: number,
  path: string,
  read: Position | undefined,
  knownLength: number | undefined,
  longestRecord: number,
): Promise<ExaminedFile> {
  const size = await files.size(path);
  const from = consumedIn(number, size, read);
  const known = Math.max(knownLength ?? size, from);
  const part = { number, path, size, from, known };
  const content = await withFile(files, path, 'read', (file) => examineContent(file, part, longestRecord));
  return { ...part, ...content };
}

/** Returns where the first record begins that is not consumed. */
function consumedIn(number: number, size: number, read: Position | undefined): number {
  if (read === undefined || number > read.number) return 0;
  return number < read.number ? size : read.offset;
}

type Content = Pick<ExaminedFile, 'end' | 'records' | 'bytes' | 'state' | 'damage'>;

async function examineContent(
  file: File,
  { path, size, from, known }: Omit<ExaminedFile, keyof Content>,
  longestRecord: number,
): Promise<Content> {
  const promisedEnd = Math.min(known, size);
  const promised = await countRecords(file, Math.min(from, size), promisedEnd);
  const { end, records, bytes } = promised;
  if (end < promisedEnd) return { end, records, bytes, ...damaged(path, end, size) };
  if (size < known) {
    const damage = { file: path, offset: end, bytes: known - end, reason: 'the file is shorter than it was' };
    return { end, records, bytes, state: 'short', damage: known > from ? damage : undefined };
  }
  const beyond = await countRecords(file, known, size);
  const all = { records: records + beyond.records, bytes: bytes + beyond.bytes, damage: undefined };
  const { lastEmptyFrom, lastEmpty } = beyond;
  if (lastEmptyFrom < size && (await zerosAtEnd(file, lastEmptyFrom, size)) === lastEmptyFrom) {
    return { ...all, end: lastEmptyFrom, records: all.records - lastEmpty, state: 'torn' };
  }
  if (beyond.end === size) return { ...all, end: size, state: 'whole' };
  if (canBeTorn(beyond, longestRecord)) return { ...all, end: beyond.end, state: 'torn' };
  return { ...all, end: beyond.end, ...damaged(path, beyond.end, size) };
}

function damaged(path: string, end: number, size: number): Pick<Content, 'state' | 'damage'> {
  const damage = { file: path, offset: end, bytes: size - end, reason: NOT_A_RECORD };
  return { state: 'damaged', damage };
}

/** A length that no record can have was not being written. */
function canBeTorn({ nextLength }: RecordCount, longestRecord: number): boolean {
  if (nextLength === undefined) return true;
  return nextLength >= 0 && nextLength + LENGTH_BYTES <= longestRecord;
}

/**
 * Returns an event for each gap between the files that the metadata covers. If go-diskqueue was killed after it had deleted
 * a consumed file and before it wrote that to the metadata, its first file looks missing, too.
 */
function missingFiles(
  folder: string,
  name: string,
  names: QueueFiles,
  metadata: Metadata,
): CorruptionEvent[] {
  const { depth, read, write } = metadata;
  const hasUnread = depth > 0 || (read.number === write.number && read.offset < write.offset);
  const unread = names.data.filter((number) => number >= read.number);
  const offsetIn = (number: number): number => (number === read.number ? read.offset : 0);
  const wasWritten = write.offset > offsetIn(write.number); // if not, the last file may not exist yet
  const end = wasWritten ? write.number + 1 : write.number;
  let expected = hasUnread ? read.number : (unread[0] ?? Infinity);
  const there = [...unread, ...names.bad].filter((number) => number >= expected && number < end);
  const damages: CorruptionEvent[] = [];
  for (const number of [...there.sort((a, b) => a - b), end]) {
    const missing = number - expected;
    if (missing > 0) {
      const file = `${folder}/${dataFileName(name, expected)}`;
      const offset = offsetIn(expected);
      const bytes = expected === write.number ? write.offset - offset : 0;
      const reason = missing === 1 ? 'the file is missing' : `${missing} files are missing`;
      damages.push({ file, offset, bytes, reason });
    }
    expected = number + 1;
  }
  return damages;
}
