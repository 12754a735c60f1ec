import { isMissing, type FileSystem } from '../../log/file-system.ts';
import type { CorruptionEvent } from '../message-log.ts';
import { QueueLock } from '../queue-lock.ts';
import type {
  ListedMessage,
  MessageSelection,
  OnProgress,
  QueueSummary,
  RepairPlan,
  StoredQueue,
  VerifyReport,
} from '../stored/stored-queue.ts';
import { dataFileName, metadataFileName, sortNames } from './file-names.ts';
import { inspectQueue, readOffsetIn, type InspectedFile, type InspectedQueue } from './inspect-queue.ts';
import { planRepair } from './plan-repair.ts';
import { RECORD_HEADER_BYTES } from './record.ts';
import { RecordReader } from './record-reader.ts';

/** A queue of go-diskqueue's format, as it lies on the disk. */
export class StoredNsqQueue implements StoredQueue {
  readonly name: string;
  readonly format = 'nsq';
  readonly #files: FileSystem;
  readonly #folder: string;

  constructor(files: FileSystem, folder: string, name: string) {
    this.#files = files;
    this.#folder = folder;
    this.name = name;
  }

  isOpen(): Promise<boolean> {
    return QueueLock.isHeld(this.#folder, this.name);
  }

  async size(): Promise<number> {
    const { data, temporary } = sortNames(this.name, await this.#files.list(this.#folder));
    const names = [...data.map((number) => dataFileName(this.name, number)), ...temporary];
    let bytes = 0;
    for (const name of [...names, metadataFileName(this.name)]) {
      bytes += await this.#files.size(`${this.#folder}/${name}`).catch(zeroIfMissing);
    }
    return bytes;
  }

  async summarize(): Promise<QueueSummary> {
    const { files } = await this.#inspect();
    return {
      files: files.map(({ number }) => dataFileName(this.name, number)),
      ...countsOf(files),
      bytes: await this.size(),
    };
  }

  async verify(onProgress: OnProgress): Promise<VerifyReport> {
    const total = await this.size();
    let done = 0;
    const queue = await this.#inspect((bytes) => {
      done += bytes;
      onProgress(done, total);
    });
    return {
      ...countsOf(queue.files),
      bytes: total,
      problems: [...queue.damages, ...this.#metadataProblems(queue)],
      notes: this.#notesOn(queue),
    };
  }

  async *messages({ isAll, from, onDamage }: MessageSelection): AsyncIterable<ListedMessage> {
    const queue = await this.#inspect();
    for (const { file, offset } of queue.damages) onDamage(file, offset);
    let sequence = 0;
    for (const file of queue.files) {
      const readOffset = readOffsetIn(file.number, file.size, queue.metadata);
      for await (const { data, end } of this.#recordsOf(file, readOffset)) {
        sequence++;
        const isAcknowledged = end - data.length - RECORD_HEADER_BYTES < readOffset;
        if (sequence >= from && (isAll || !isAcknowledged)) yield { sequence, isAcknowledged, data };
      }
    }
  }

  planRepair(onProgress: OnProgress): Promise<RepairPlan> {
    return planRepair(this.#files, this.#folder, this.name, onProgress);
  }

  async *#recordsOf(
    { path, number, end }: InspectedFile,
    readOffset: number,
  ): AsyncIterable<{ data: Buffer; end: number }> {
    const file = { number, path, end, unreadRecords: 0, unreadBytes: 0, isDamaged: false };
    const reader = await RecordReader.open(this.#files, file, 0);
    try {
      while (reader.offset < end) {
        const records = await reader.next();
        if (records === undefined || records.length === 0) {
          if (reader.offset >= readOffset) return;
          reader.skipTo(readOffset); // what is damaged was consumed
        } else yield* records;
      }
    } finally {
      await reader.close();
    }
  }

  #inspect(onFile?: (bytes: number) => void): Promise<InspectedQueue> {
    return inspectQueue(this.#files, this.#folder, this.name, onFile);
  }

  #metadataProblems({ metadata, hasMetadata }: InspectedQueue): CorruptionEvent[] {
    if (metadata !== undefined || !hasMetadata) return [];
    const file = `${this.#folder}/${metadataFileName(this.name)}`;
    return [{ file, offset: 0, bytes: 0, reason: 'the metadata is damaged' }];
  }

  #notesOn({ found, metadata, hasMetadata, files }: InspectedQueue): string[] {
    const path = `${this.#folder}/${metadataFileName(this.name)}`;
    const { unacknowledged } = countsOf(files);
    const notes = files
      .filter(({ isTorn }) => isTorn)
      .map(({ path: file, size, end }) => `${file}: ${size - end} bytes at ${end} are torn`);
    if (!hasMetadata && files.length > 0) notes.push(`${path}: is missing: every message comes again`);
    if (metadata !== undefined && metadata.depth !== unacknowledged) {
      notes.push(`${path}: says that ${metadata.depth} messages are left; there are ${unacknowledged}`);
    }
    for (const number of found.bad) {
      notes.push(`${this.#folder}/${dataFileName(this.name, number)}.bad: was put aside`);
    }
    for (const name of found.temporary) notes.push(`${this.#folder}/${name}: was being made`);
    return notes;
  }
}

function countsOf(files: readonly InspectedFile[]): { messages: number; unacknowledged: number } {
  const unacknowledged = files.reduce((sum, { records }) => sum + records, 0);
  const consumed = files.reduce((sum, file) => sum + file.consumed, 0);
  return { messages: unacknowledged + consumed, unacknowledged };
}

function zeroIfMissing(error: unknown): number {
  if (isMissing(error)) return 0;
  throw error;
}
