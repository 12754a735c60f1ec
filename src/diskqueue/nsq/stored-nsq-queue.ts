import { freeName, ifThere, keepCopy, makeFile, withFile } from '../../log/file-system.ts';
import {
  removalOf,
  StoredQueue,
  untilNothingIsRemoved,
  type ListedMessage,
  type MessageSelection,
  type OnProgress,
  type QueueSummary,
  type RepairPlan,
  type RepairStep,
  type VerifyReport,
} from '../stored/stored-queue.ts';
import { examineDataFiles, type ExaminedFile, type ExaminedDataFiles } from './examine-data-files.ts';
import {
  dataFileName,
  encodeMetadata,
  filesOfQueue,
  metadataFileName,
  LENGTH_BYTES,
  type Metadata,
  type Position,
} from './format.ts';
import { MetadataFile } from './metadata-file.ts';
import { countRecords, RecordReader } from './records.ts';

/** The longest record that is taken for a torn one, in bytes: the default size of a file. */
const LONGEST_RECORD = 100 * 1024 * 1024;

/** A queue of go-diskqueue's format, as it is on the disk. */
export class StoredNsqQueue extends StoredQueue {
  readonly format = 'nsq';

  async summarize(): Promise<QueueSummary> {
    const { files } = await this.#examine();
    return {
      files: files.map(({ number }) => dataFileName(this.name, number)),
      ...(await this.#count(files)),
      bytes: await this.size(),
    };
  }

  async verify(onProgress: OnProgress): Promise<VerifyReport> {
    const bytes = await this.size();
    const queue = await this.#examine(onProgress);
    const counts = await this.#count(queue.files);
    const { damages, metadata, names } = queue;
    const reason = 'the metadata is damaged';
    const isDamaged = metadata === undefined && names.hasMetadata;
    const ofMetadata = isDamaged ? [{ file: this.#metadataPath, offset: 0, bytes: 0, reason }] : [];
    const notes = this.#notes(queue, counts.unacknowledged);
    return { ...counts, bytes, problems: [...damages, ...ofMetadata], notes };
  }

  async *messages({ isAll, from, onDamage }: MessageSelection): AsyncIterable<ListedMessage> {
    const queue = await this.#examine();
    for (const { file, offset } of queue.damages) onDamage(file, offset);
    let sequence = 0;
    for (const file of queue.files) {
      for await (const { data, end } of this.#recordsOf(file)) {
        sequence++;
        const isAcknowledged = end - data.length - LENGTH_BYTES < file.from;
        if (sequence >= from && (isAll || !isAcknowledged)) yield { sequence, isAcknowledged, data };
      }
    }
  }

  /**
   * A record begins where the one before it ends, and nothing else marks it: so a file is good up to its first damage.
   * There it is cut, and a copy of it is kept. Then the metadata is written to match. Whenever the machine stops between
   * two steps, the queue can be opened, and repaired.
   */
  async planRepair(onProgress: OnProgress): Promise<RepairPlan> {
    const queue = await this.#examine(onProgress);
    const taken = new Set((await this.files.list(this.folder)).map((file) => this.pathOf(file)));
    const steps = [
      ...queue.names.temporary.map((file) => removalOf(this.files, this.folder, this.pathOf(file))),
      ...queue.files
        .filter(({ end, size }) => end < size)
        .map((file) => this.#cut(file, freeName(file.path, taken))),
      ...missingNumbers(queue).map((number) => this.#emptyFile(this.pathOf(dataFileName(this.name, number)))),
      ...this.#newMetadata(queue),
    ];
    return { steps, lost: queue.damages.map((damage) => ({ ...damage, messages: undefined })) };
  }

  protected override owns(name: string): boolean {
    const { data, temporary, hasMetadata } = filesOfQueue(this.name, [name]);
    return data.length > 0 || temporary.length > 0 || hasMetadata;
  }

  async #examine(onProgress?: OnProgress): Promise<ExaminedDataFiles> {
    const { files, folder, name } = this;
    const total = onProgress === undefined ? 0 : await this.size();
    return untilNothingIsRemoved(async () => {
      let done = 0;
      const onFile = (bytes: number): void => {
        done += bytes;
        onProgress?.(done, total);
      };
      const metadata = await new MetadataFile(files, folder, name).load();
      return examineDataFiles(files, folder, name, metadata, LONGEST_RECORD, onFile);
    });
  }

  /** Counts the messages that are still in the files: consumed ones are, until the whole file is removed. */
  async #count(files: readonly ExaminedFile[]): Promise<{ messages: number; unacknowledged: number }> {
    const unacknowledged = unconsumed(files);
    let messages = unacknowledged;
    for (const { path, size, from } of files) {
      if (from === 0) continue;
      const end = Math.min(from, size);
      const counting = withFile(this.files, path, 'read', async (file) => {
        return (await countRecords(file, 0, end)).records;
      });
      messages += await ifThere(counting, 0);
    }
    return { messages, unacknowledged };
  }

  async *#recordsOf(examined: ExaminedFile): AsyncIterable<{ data: Buffer; end: number }> {
    const { from, end } = examined;
    const reader = new RecordReader(examined, await this.files.open(examined.path, 'read'), 0);
    try {
      while (reader.offset < end) {
        const records = await reader.next();
        if (records === undefined || records.length === 0) {
          if (reader.offset >= from) return;
          reader.offset = from; // the damaged part was consumed
        } else yield* records;
      }
    } finally {
      await reader.close();
    }
  }

  #notes({ names, metadata, files }: ExaminedDataFiles, unacknowledged: number): string[] {
    const path = this.#metadataPath;
    const notes = files
      .filter(({ state }) => state === 'torn')
      .map(({ path: file, size, end }) => `${file}: ${size - end} bytes at ${end} are torn`);
    if (!names.hasMetadata && files.length > 0)
      notes.push(`${path}: missing; every message is delivered again`);
    if (metadata !== undefined && metadata.depth !== unacknowledged) {
      notes.push(`${path}: its depth is ${metadata.depth}; the files have ${unacknowledged} messages left`);
    }
    for (const number of names.bad) {
      notes.push(`${this.pathOf(dataFileName(this.name, number))}.bad: set aside because of damage`);
    }
    for (const name of names.temporary) notes.push(`${this.pathOf(name)}: left by an interrupted write`);
    return notes;
  }

  get #metadataPath(): string {
    return this.pathOf(metadataFileName(this.name));
  }

  #cut({ path, end, size, state }: ExaminedFile, keptAs: string): RepairStep {
    const isTorn = state === 'torn';
    const why = isTorn ? 'its last record is torn' : 'what follows is not a record';
    return {
      ...{ action: isTorn ? 'seal' : 'rewrite', file: path, keptAs },
      detail: `it ends at ${end}: ${why}; ${size - end} bytes are cut off`,
      run: async () => {
        await keepCopy(this.files, this.folder, path, keptAs);
        await withFile(this.files, path, 'write', async (file) => {
          await file.truncate(end);
          await file.sync();
        });
      },
    };
  }

  #emptyFile(file: string): RepairStep {
    const run = async (): Promise<void> => {
      await makeFile(this.files, file, () => Promise.resolve());
      await this.files.syncFolder(this.folder);
    };
    return { action: 'make', file, detail: 'it is missing; an empty file replaces it', run };
  }

  #newMetadata(queue: ExaminedDataFiles): RepairStep[] {
    const { metadata, names, files } = queue;
    const isNeeded = names.hasMetadata || files.length > 0;
    const wanted = metadataFor(queue);
    const isRight = metadata !== undefined && encodeMetadata(metadata).equals(encodeMetadata(wanted));
    if (!isNeeded || isRight) return [];
    const run = (): Promise<void> => new MetadataFile(this.files, this.folder, this.name).save(wanted);
    return [{ action: 'write cursor', file: this.#metadataPath, detail: describe(queue, wanted), run }];
  }
}

function unconsumed(files: readonly ExaminedFile[]): number {
  return files.reduce((sum, { records }) => sum + records, 0);
}

/** Returns the missing files between the first one with unconsumed records and the last: go-diskqueue needs them. */
function missingNumbers({ names, metadata }: ExaminedDataFiles): number[] {
  const first = Math.max(metadata?.read.number ?? 0, names.data[0] ?? 0);
  const missing: number[] = [];
  for (const [i, number] of names.data.entries()) {
    const before = names.data[i - 1];
    if (before === undefined || before < first) continue;
    for (let n = before + 1; n < number; n++) if (!names.bad.includes(n)) missing.push(n);
  }
  return missing;
}

function describe({ metadata, names }: ExaminedDataFiles, { depth }: Metadata): string {
  if (metadata !== undefined) return `does not match the files; ${depth} messages are not consumed`;
  return `${names.hasMetadata ? 'damaged' : 'missing'}; all ${depth} messages are delivered again`;
}

function metadataFor(queue: ExaminedDataFiles): Metadata {
  const unread = queue.files.filter(({ records }) => records > 0);
  const depth = unconsumed(unread);
  const write = writePosition(queue);
  const [first] = unread;
  const read = first === undefined ? write : { number: first.number, offset: first.from };
  return { depth, read, write };
}

/** Returns the write position of the metadata if the files end there; else the beginning of the next file. */
function writePosition({ metadata, files, names }: ExaminedDataFiles): Position {
  const last = files.at(-1);
  const unused = Math.max(last?.number ?? -1, ...names.bad) + 1;
  if (metadata === undefined) return { number: unused, offset: 0 };
  const { write } = metadata;
  if (last === undefined)
    return { number: Math.max(unused, write.number + Math.sign(write.offset)), offset: 0 };
  const isThere = last.number === write.number && last.end === write.offset;
  return isThere || (write.number === unused && write.offset === 0) ? write : { number: unused, offset: 0 };
}
