import {
  unlinkIfThere,
  freeName,
  keepCopy,
  type FileSystem,
  makeFile,
  withFile,
} from '../../log/file-system.ts';
import type { OnProgress, RepairPlan, RepairStep } from '../stored/stored-queue.ts';
import { dataFileName, metadataFileName } from './file-names.ts';
import { inspectQueue, type InspectedFile, type InspectedQueue } from './inspect-queue.ts';
import { MetadataFile } from './metadata-file.ts';
import { encodeMetadata, type Metadata, type Position } from './metadata.ts';

/**
 * What has to be done for a queue of NSQ's format to be as a clean end leaves it.
 *
 * A record says where the next one begins, and nothing else does: so a file is good up to its first damage. There it is
 * cut, and kept as it was under another name. Then the metadata is written to fit. Whenever the machine stops between
 * two steps, the queue can be opened, and repaired.
 */
export async function planRepair(
  files: FileSystem,
  folder: string,
  name: string,
  onProgress: OnProgress,
): Promise<RepairPlan> {
  const names = await files.list(folder);
  let done = 0;
  const queue = await inspectQueue(files, folder, name, (bytes) => {
    done += bytes;
    onProgress(done, done);
  });
  const taken = new Set(names.map((file) => `${folder}/${file}`));
  const steps = [
    ...queue.found.temporary.map((file) => removal(files, folder, `${folder}/${file}`)),
    ...queue.files.filter(isCut).map((file) => cut(files, folder, file, freeName(file.path, taken))),
    ...missingNumbers(queue).map((number) =>
      emptyFile(files, folder, `${folder}/${dataFileName(name, number)}`),
    ),
    ...newMetadata(files, folder, name, queue),
  ];
  return { steps, lost: queue.damages.map((damage) => ({ ...damage, messages: undefined })) };
}

function removal(files: FileSystem, folder: string, file: string): RepairStep {
  const run = async (): Promise<void> => {
    await unlinkIfThere(files, file);
    await files.syncFolder(folder);
  };
  return { action: 'remove', file, detail: 'it was being made when a process ended', run };
}

function isCut({ end, size }: InspectedFile): boolean {
  return end < size;
}

function cut(files: FileSystem, folder: string, found: InspectedFile, keptAs: string): RepairStep {
  const { path, end, size, isTorn } = found;
  const why = isTorn ? 'its last record is torn' : 'what comes then is no record';
  return {
    ...{ action: isTorn ? 'seal' : 'rewrite', file: path, keptAs },
    detail: `it ends at ${end}: ${why}; ${size - end} bytes are cut off`,
    run: async () => {
      await keepCopy(files, folder, path, keptAs);
      await withFile(files, path, 'write', async (file) => {
        await file.truncate(end);
        await file.sync();
      });
    },
  };
}

/** Of files between the first one that is not consumed and the last. A reader would stumble over them. */
function missingNumbers({ found, metadata }: InspectedQueue): number[] {
  const first = Math.max(metadata?.read.number ?? 0, found.data[0] ?? 0);
  const missing: number[] = [];
  for (const [i, number] of found.data.entries()) {
    const before = found.data[i - 1];
    if (before === undefined || before < first) continue;
    for (let n = before + 1; n < number; n++) if (!found.bad.includes(n)) missing.push(n);
  }
  return missing;
}

function emptyFile(files: FileSystem, folder: string, file: string): RepairStep {
  const run = async (): Promise<void> => {
    await makeFile(files, file, () => Promise.resolve());
    await files.syncFolder(folder);
  };
  return { action: 'make', file, detail: 'it is missing: an empty one takes its place', run };
}

function newMetadata(files: FileSystem, folder: string, name: string, queue: InspectedQueue): RepairStep[] {
  const wanted = metadataFor(queue);
  const { metadata, hasMetadata } = queue;
  const isNeeded = hasMetadata || queue.files.length > 0;
  if (!isNeeded || (metadata !== undefined && encodeMetadata(metadata).equals(encodeMetadata(wanted))))
    return [];
  const run = (): Promise<void> => new MetadataFile(files, folder, name).save(wanted);
  const file = `${folder}/${metadataFileName(name)}`;
  return [{ action: 'write cursor', file, detail: describeMetadata(queue, wanted), run }];
}

function describeMetadata({ metadata, hasMetadata }: InspectedQueue, { depth }: Metadata): string {
  if (metadata !== undefined) return `it does not say what the files do: ${depth} messages are not consumed`;
  const what = hasMetadata ? 'it is damaged' : 'it is missing';
  return `${what}: all ${depth} messages come again`;
}

/** What the metadata has to say. */
function metadataFor(queue: InspectedQueue): Metadata {
  const { metadata, files } = queue;
  const unread = files.filter(({ records }) => records > 0);
  const depth = unread.reduce((sum, { records }) => sum + records, 0);
  const write = writePosition(queue);
  const [first] = unread;
  if (first === undefined) return { depth, read: write, write };
  const offset = first.number === metadata?.read.number ? metadata.read.offset : 0;
  return { depth, read: { number: first.number, offset }, write };
}

/** Where it was, if the files end there; else the file after the last one. */
function writePosition({ metadata, files, found }: InspectedQueue): Position {
  const last = files.at(-1);
  const unused = Math.max(last?.number ?? -1, ...found.bad) + 1;
  if (metadata === undefined) return { number: unused, offset: 0 };
  const { write } = metadata;
  if (last === undefined)
    return { number: Math.max(unused, write.number + Math.sign(write.offset)), offset: 0 };
  const isThere = last.number === write.number && last.end === write.offset;
  return isThere || (write.number === unused && write.offset === 0) ? write : { number: unused, offset: 0 };
}
