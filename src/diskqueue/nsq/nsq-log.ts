import { Serial } from '../../core/serial.ts';
import { allOf, ifThere, isDiskFull, openUnlessRemoved, unlinkIfThere } from '../../log/file-system.ts';
import { AckRanges } from '../ack-ranges.ts';
import {
  MOST_SEGMENTS_SHOWN,
  type AppendResult,
  type CursorSnapshot,
  type MessageLog,
  type SegmentSnapshot,
  type StoredMessage,
} from '../message-log.ts';
import { Appender } from './appender.ts';
import { DataFiles, type DataFile, type NsqLogOptions } from './data-files.ts';
import { NOT_A_RECORD } from './examine-data-files.ts';
import { dataFileName, filesOfQueue, isSamePosition, START, type Position } from './format.ts';
import { MetadataFile } from './metadata-file.ts';
import { RecordReader, type ReadRecord } from './records.ts';

/**
 * NSQ's format: reads and writes the files of go-diskqueue, which can take over whenever the log is closed.
 *
 *                 ┌──── 7 ────┐┌──── 8 ────┐┌──── 9 ──
 *                 │ ✓ ✓ ✓ ✓ ✓ ││ ✓ ✓ . ✓ . ││ . . . .│◄── append: the write position
 *                 └───────────┘└─────▲───▲─┘└─────────
 *                       ▲            │   └ read               ✓ acknowledged
 *                       │            └ the read position: before the first that is not acknowledged
 *                       └ removed when the metadata on the disk has a later read position
 *
 * The format has no checksums, so damage inside of a message is not found; and one read position, so messages that were
 * acknowledged behind it are delivered again after a reopen. Within these limits nothing is lost:
 *
 * - Existing bytes are never written over, and files that the metadata lacks are read, too: see examine-data-files.ts.
 * - The order of syncs is: name of a data file, its bytes, the metadata, the removal of old files. So everything in the
 *   metadata is true whenever the power fails: see appender.ts.
 */
export class NsqLog implements MessageLog {
  readonly #options: NsqLogOptions;
  readonly #metadata: MetadataFile;
  readonly #files: DataFiles;
  readonly #appender: Appender;
  #reader: RecordReader<DataFile> | undefined;
  #readFrom: Position;
  readonly #inFlight = new InFlight();
  #isReading = false;
  /** Whether the last write was refused because the disk is full. */
  #isDiskFull = false;
  /** Appends, syncs and saves of acknowledgements share the metadata: one runs at a time. */
  readonly #serial = new Serial();

  private constructor(options: NsqLogOptions, metadata: MetadataFile, files: DataFiles) {
    this.#options = options;
    this.#metadata = metadata;
    this.#files = files;
    this.#appender = new Appender(options, metadata, files);
    this.#readFrom = files.readPosition;
  }

  /** Examines the files, cuts off a torn record, and reports damage. */
  static async open(options: NsqLogOptions): Promise<NsqLog> {
    const metadata = new MetadataFile(options.files, options.folder, options.name);
    return new NsqLog(options, metadata, await DataFiles.recover(options, await metadata.load()));
  }

  get depth(): number {
    return this.#files.depth;
  }

  get bytes(): number {
    return this.#files.bytes;
  }

  get hasUnsavedAcks(): boolean {
    return !isSamePosition(this.#savedPosition, this.#files.readPosition) || this.#removable().length > 0;
  }

  get segments(): readonly SegmentSnapshot[] {
    return this.#files.all
      .slice(-MOST_SEGMENTS_SHOWN)
      .map(({ path, end }) => ({ file: path, bytes: end, messages: undefined }));
  }

  /** Before the first message that is not acknowledged. */
  get cursor(): CursorSnapshot | undefined {
    const { number, offset } = this.#files.readPosition;
    const file = this.#files.all.find((each) => each.number === number);
    return file && { file: file.path, offset };
  }

  append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    return this.#serial.run(async () => {
      const result = await this.#append(messages);
      const mayTryAgain = this.#isDiskFull && result.appended === 0;
      return mayTryAgain && (await this.#freeSpace()) ? this.#append(messages) : result;
    });
  }

  sync(): Promise<void> {
    return this.#serial.run(() => this.#appender.sync());
  }

  async read(): Promise<StoredMessage[]> {
    this.#isReading = true;
    try {
      return await this.#read();
    } finally {
      this.#isReading = false;
    }
  }

  async #read(): Promise<StoredMessage[]> {
    for (;;) {
      const reader = await this.#openReader();
      if (reader === undefined) return [];
      const records = await reader.next();
      if (records === undefined) this.#passDamage(reader);
      else if (records.length > 0) return records.map((record) => this.#deliver(reader.file, record));
      else if (!(await this.#leave(reader))) return [];
    }
  }

  acknowledge({ sequence, data }: StoredMessage): void {
    if (!this.#inFlight.acknowledge(sequence)) return;
    this.#files.depth--;
    this.#files.bytes -= data.length;
    this.#moveReadPosition();
  }

  /** Writes only durably: metadata that is with the host alone could name bytes that are not on the disk either. */
  saveAcks(isDurable: boolean): Promise<void> {
    return this.#serial.run(async () => {
      if (this.#isDiskFull && this.#isDone) await this.#appender.leaveCurrent();
      await this.#leavePassed();
      if (!this.hasUnsavedAcks || (!isDurable && this.#removable(Infinity).length === 0)) return;
      await this.#appender.save();
      await this.#remove();
    });
  }

  /** Continues in a new file, as go-diskqueue. */
  async empty(): Promise<void> {
    const write = { number: this.#files.writePosition.number + 1, offset: 0 };
    this.#files.passAll(write.number);
    this.#readFrom = write;
    this.#inFlight.clear();
    await this.#closeReader().catch(() => undefined);
    await this.#appender.drop(write);
    await this.#remove().catch(() => undefined); // `saveAcks` tries again, and rejects
  }

  close(): Promise<void> {
    return allOf([
      () => this.#appender.sync(),
      async () => {
        if (!this.#appender.isSaved) await this.#appender.save();
      },
      () => this.#appender.close(),
      () => this.#closeReader(),
      () => this.#remove(),
    ]);
  }

  async remove(): Promise<void> {
    const { files, folder, name } = this.#options;
    const { data, temporary } = filesOfQueue(name, await files.list(folder));
    await unlinkIfThere(files, this.#metadata.path); // first: without metadata, files that are left are read; the other way round they are missing
    for (const number of data) await unlinkIfThere(files, `${folder}/${dataFileName(name, number)}`);
    for (const file of temporary) await unlinkIfThere(files, `${folder}/${file}`);
    await files.syncFolder(folder);
  }

  async #append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    const result = await this.#appender.append(messages);
    this.#isDiskFull = isDiskFull(result.error);
    return result;
  }

  /**
   * Removes acknowledged files; on a full disk also the current one, if all of it is acknowledged: there may be no other.
   * Returns whether the disk may have more space now.
   */
  async #freeSpace(): Promise<boolean> {
    try {
      if (this.#isDone) await this.#appender.leaveCurrent();
      await this.#leavePassed();
      return await this.#remove();
    } catch {
      return false;
    }
  }

  /** Whether the current file has messages, and all messages are acknowledged. */
  get #isDone(): boolean {
    const { current, readPosition, writePosition } = this.#files;
    return current !== undefined && current.end > 0 && isSamePosition(readPosition, writePosition);
  }

  async #openReader(): Promise<RecordReader<DataFile> | undefined> {
    if (this.#reader !== undefined) return this.#reader;
    const start = this.#files.firstBehind(this.#readFrom);
    if (start === undefined) return undefined;
    const { file, offset } = start;
    this.#reader = new RecordReader(file, await openUnlessRemoved(this.#options.files, file.path), offset);
    return this.#reader;
  }

  async #closeReader(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    await reader?.close();
  }

  #deliver(file: DataFile, { data, end }: ReadRecord): StoredMessage {
    file.unreadRecords--;
    file.unreadBytes -= data.length;
    return { sequence: this.#inFlight.add({ number: file.number, offset: end }), data };
  }

  /** Skips the rest of a file that another process has changed or removed since it was examined. */
  #passDamage(reader: RecordReader<DataFile>): void {
    const { file, offset } = reader;
    this.#files.addReadable(-file.unreadRecords, -file.unreadBytes);
    file.unreadRecords = 0;
    file.unreadBytes = 0;
    file.isDamaged = true;
    this.#inFlight.addDamage({ number: file.number, offset: file.end });
    reader.offset = file.end;
    this.#moveReadPosition();
    const bytes = file.end - offset;
    const reason = reader.isRemoved ? 'the file was removed' : NOT_A_RECORD;
    this.#options.onCorruption({ file: file.path, offset, bytes, reason });
  }

  /** Leaves a file that was read to its end. Returns whether there may be more to read. */
  async #leave(reader: RecordReader<DataFile>): Promise<boolean> {
    const { file, offset } = reader;
    if (offset < file.end) return true; // it has grown meanwhile
    if (file === this.#files.current) return false;
    this.#readFrom = { number: file.number, offset };
    await this.#closeReader();
    return true;
  }

  /** The host keeps the bytes of a removed file as long as it is open. */
  async #leavePassed(): Promise<void> {
    const reader = this.#reader;
    const isPassed = reader !== undefined && this.#files.passedBefore(Infinity).includes(reader.file);
    if (isPassed && !this.#isReading) await this.#leave(reader);
  }

  #moveReadPosition(): void {
    const done = this.#inFlight.takeDone();
    if (done !== undefined) this.#files.moveReadPosition(done.end, done.records);
  }

  /** Returns the files that are not needed when the read position on the disk is in the file of that number. */
  #removable(number = this.#savedPosition.number): DataFile[] {
    return this.#files.passedBefore(number).filter((file) => file !== this.#reader?.file);
  }

  get #savedPosition(): Position {
    return this.#metadata.durable?.read ?? START;
  }

  /** Returns whether there was a file to remove. */
  async #remove(): Promise<boolean> {
    const { files, folder } = this.#options;
    const removable = this.#removable();
    for (const file of removable) {
      if (file.isDamaged) await ifThere(files.rename(file.path, `${file.path}.bad`), undefined);
      else await unlinkIfThere(files, file.path);
      this.#files.forget(file);
    }
    if (removable.length > 0) await files.syncFolder(folder);
    return removable.length > 0;
  }
}

/** Records that the read position can move over. */
export interface DonePrefix {
  /** Where the last of them ends. */
  readonly end: Position;
  readonly records: number;
}

/**
 * The messages that were delivered, in order, from the first that is not acknowledged on.
 *
 *      sequence      5   6   7   8   9
 *                    .   ✓   ✓   .   ✓        takeDone: nothing, until 5 is acknowledged; then 5, 6 and 7
 *      end kept      5       7   8   9
 *
 * The format has one read position, so it can only move over the records before the first that is not acknowledged. The
 * memory used depends on how many messages are in flight, not on how many were acknowledged out of order.
 */
export class InFlight {
  readonly #acks = new AckRanges(1);
  #next = 1;
  #taken = 1;
  /** Where records end: of each message in flight, and of the last one of each acknowledged range. */
  readonly #ends = new Map<number, Position>();

  /** Adds a delivered message. Returns its sequence number. */
  add(end: Position): number {
    this.#ends.set(this.#next, end);
    return this.#next++;
  }

  /** Adds a damaged span, which needs no acknowledgement: it is passed with the message before it. */
  addDamage(end: Position): void {
    this.#ends.set(this.#next - 1, end);
  }

  /** Returns false if the message was acknowledged before. */
  acknowledge(sequence: number): boolean {
    if (this.#acks.add(sequence, sequence + 1, 0) === 0) return false;
    if (this.#acks.has(sequence - 1)) this.#ends.delete(sequence - 1);
    if (this.#acks.has(sequence + 1)) this.#ends.delete(sequence);
    return true;
  }

  /** Returns what was completed since the last call, up to the first message in flight; undefined if nothing was. */
  takeDone(): DonePrefix | undefined {
    const { prefix } = this.#acks;
    const end = this.#ends.get(prefix - 1);
    if (end === undefined) return undefined;
    this.#ends.delete(prefix - 1);
    const records = prefix - this.#taken;
    this.#taken = prefix;
    return { end, records };
  }

  /** Forgets all messages: acknowledging one of them has no effect any more. */
  clear(): void {
    this.#acks.add(this.#acks.prefix, this.#next, 0);
    this.#taken = this.#next;
    this.#ends.clear();
  }
}
