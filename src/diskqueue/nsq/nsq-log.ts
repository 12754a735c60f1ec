import { Serial } from '../../core/serial.ts';
import { allOf, unlinkIfThere, isOutOfRoom, type FileSystem } from '../../log/file-system.ts';
import type { AppendResult, CorruptionEvent, MessageLog, StoredMessage } from '../message-log.ts';
import { Appender } from './appender.ts';
import type { DataFile } from './data-file.ts';
import { DataFiles } from './data-files.ts';
import { sortNames, dataFileName } from './file-names.ts';
import { HandedOut } from './handed-out.ts';
import { MetadataFile } from './metadata-file.ts';
import { isSamePosition, START, type Position } from './metadata.ts';
import { RecordReader, type ReadRecord } from './record-reader.ts';
import { recoverQueue, type RecoveredQueue } from './recover-queue.ts';

/** What a log is made from. */
export interface NsqLogOptions {
  readonly files: FileSystem;
  readonly folder: string;
  readonly name: string;
  readonly maxBytesPerFile: number;
  /** Only to tell a record that is torn from one that is damaged: what is stored is read, however long it is. */
  readonly maxMessageSize: number;
  /** Whether a message is readable only when it is on the disk. */
  readonly isAlwaysDurable: boolean;
  readonly onCorruption: (event: CorruptionEvent) => void;
}

/**
 * NSQ's format: go-diskqueue's files, which it reads and writes, one after the other with this.
 *
 *                 ┌──── 7 ────┐┌──── 8 ────┐┌──── 9 ──
 *                 │ ✓ ✓ ✓ ✓ ✓ ││ ✓ ✓ . ✓ . ││ . . . .│◄── append: the write position
 *                 └───────────┘└─────▲───▲─┘└─────────
 *                       ▲            │   └ read               ✓ acknowledged
 *                       │            └ the read position: before the first that is not acknowledged
 *                       └ goes when the metadata that says so is on the disk
 *
 * The format has no checksums, so what is damaged inside of a message is not found; and one read position, so what was
 * acknowledged behind it comes again after a reopen. What it can keep is kept:
 *
 * - Nothing that exists is written over, or read only if the metadata knows of it: see recover-queue.ts.
 * - What is to be durable is, in this order: the name of a data file, its bytes, the metadata, the end of old files.
 *   Then everything that the metadata says is true, whenever the power fails: see appender.ts.
 */
export class NsqLog implements MessageLog {
  readonly #options: NsqLogOptions;
  readonly #metadata: MetadataFile;
  readonly #files: DataFiles;
  readonly #appender: Appender;
  #reader: RecordReader | undefined;
  /** Where the next reader begins. */
  #readFrom: Position;
  readonly #handedOut = new HandedOut();
  #depth = 0;
  #bytes = 0;
  #writtenOff = 0;
  #isReading = false;
  /** A write was refused because the disk is full, and none has succeeded since. */
  #lacksRoom = false;
  /** What changes the files runs one after the other. */
  readonly #serial = new Serial();

  private constructor(options: NsqLogOptions, metadata: MetadataFile, found: RecoveredQueue) {
    this.#options = options;
    this.#metadata = metadata;
    this.#files = new DataFiles(found);
    this.#appender = new Appender(options, metadata, this.#files, (records, bytes) => {
      this.#depth += records;
      this.#bytes += bytes;
    });
    this.#depth = this.#files.records;
    for (const { unreadBytes } of found.files) this.#bytes += unreadBytes;
    this.#readFrom = this.#files.readPosition;
  }

  /** Finds out what is there, cuts off what is torn, and reports what is damaged. */
  static async open(options: NsqLogOptions): Promise<NsqLog> {
    const metadata = new MetadataFile(options.files, options.folder, options.name);
    const found = await recoverQueue(options, await metadata.load());
    for (const damage of found.damages) options.onCorruption(damage);
    return new NsqLog(options, metadata, found);
  }

  get depth(): number {
    return this.#depth;
  }

  get bytes(): number {
    return this.#bytes;
  }

  takeWrittenOff(): number {
    const bytes = this.#writtenOff;
    this.#writtenOff = 0;
    return bytes;
  }

  get hasUnsavedAcks(): boolean {
    return !isSamePosition(this.#savedPosition, this.#files.readPosition) || this.#removable().length > 0;
  }

  append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    return this.#serial.run(async () => {
      const result = await this.#append(messages);
      const mayTryAgain = this.#lacksRoom && result.appended === 0;
      return mayTryAgain && (await this.#makeRoom()) ? this.#append(messages) : result;
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
      const reader = await this.#readerOf();
      if (reader === undefined) return [];
      const records = await reader.next();
      if (records === undefined) this.#passDamage(reader);
      else if (records.length > 0) return records.map((record) => this.#handOut(reader.file, record));
      else if (!(await this.#leave(reader))) return [];
    }
  }

  acknowledge({ sequence, data }: StoredMessage): void {
    if (!this.#handedOut.acknowledge(sequence)) return;
    this.#depth--;
    this.#bytes -= data.length;
    this.#moveReadPosition();
  }

  /** With the host alone nothing is saved: metadata that is not on the disk could name bytes that are not either. */
  saveAcks(isDurable: boolean): Promise<void> {
    return this.#serial.run(async () => {
      const mustLeave = this.#lacksRoom && this.#isDone;
      if (mustLeave) await this.#appender.leaveCurrent();
      await this.#leavePassed();
      if (!this.hasUnsavedAcks || (!isDurable && this.#removable(Infinity).length === 0)) return;
      await this.#appender.save();
      await this.#remove();
    });
  }

  /** As the original does it, in a new file. */
  empty(): Promise<void> {
    return this.#serial.run(async () => {
      const write = { number: this.#files.writePosition.number + 1, offset: 0 };
      const reader = this.#forgetAll(write);
      await reader?.close().catch(() => undefined);
      await this.#appender.drop(write);
      await this.#remove().catch(() => undefined); // still to be removed: `saveAcks` will try again, and tell
    });
  }

  close(): Promise<void> {
    return this.#serial.run(() =>
      allOf([
        () => this.#appender.sync(),
        async () => {
          if (!this.#appender.isSaved) await this.#appender.save();
        },
        () => this.#appender.close(),
        async () => this.#takeReader()?.close(),
        () => this.#remove(),
      ]),
    );
  }

  async remove(): Promise<void> {
    const { files, folder, name } = this.#options;
    const { data, temporary } = sortNames(name, await files.list(folder));
    await this.#metadata.remove(); // files without it are read from the start; without files it would miss them
    for (const number of data) await unlinkIfThere(files, `${folder}/${dataFileName(name, number)}`);
    for (const file of temporary) await unlinkIfThere(files, `${folder}/${file}`);
    await files.syncFolder(folder);
  }

  // Writing.

  async #append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    const result = await this.#appender.append(messages);
    this.#lacksRoom = isOutOfRoom(result.error);
    return result;
  }

  /**
   * On a full disk the file that is being written goes, too, if all of it is acknowledged: there may be no other one.
   *
   * @returns whether there may be more room now.
   */
  async #makeRoom(): Promise<boolean> {
    try {
      if (this.#isDone) await this.#appender.leaveCurrent();
      await this.#leavePassed();
      return await this.#remove();
    } catch {
      return false;
    }
  }

  /** Whether all that was written is acknowledged, and something was. */
  get #isDone(): boolean {
    const { current, readPosition, writePosition } = this.#files;
    return current !== undefined && current.end > 0 && isSamePosition(readPosition, writePosition);
  }

  // Reading.

  async #readerOf(): Promise<RecordReader | undefined> {
    if (this.#reader !== undefined) return this.#reader;
    const start = this.#files.firstBehind(this.#readFrom);
    if (start === undefined) return undefined;
    this.#reader = await RecordReader.open(this.#options.files, start.file, start.offset);
    return this.#reader;
  }

  #handOut(file: DataFile, { data, end }: ReadRecord): StoredMessage {
    file.unreadRecords--;
    file.unreadBytes -= data.length;
    return { sequence: this.#handedOut.add({ number: file.number, offset: end }), data };
  }

  /** Somebody else has changed the file since it was opened. Where it ends, a record ends. */
  #passDamage(reader: RecordReader): void {
    const { file, offset } = reader;
    const bytes = file.end - offset;
    this.#depth -= file.unreadRecords;
    this.#files.addRecords(-file.unreadRecords);
    this.#bytes -= file.unreadBytes;
    this.#writtenOff += file.unreadBytes;
    file.unreadRecords = 0;
    file.unreadBytes = 0;
    file.isDamaged = true;
    this.#handedOut.addDamage({ number: file.number, offset: file.end });
    reader.skipTo(file.end);
    this.#moveReadPosition();
    this.#options.onCorruption({ file: file.path, offset, bytes, reason: 'no record begins here' });
  }

  /** The file was read to its end. @returns whether there may be more to read. */
  async #leave(reader: RecordReader): Promise<boolean> {
    const { file, offset } = reader;
    if (offset < file.end) return true; // it has grown meanwhile
    if (file === this.#files.current) return false;
    this.#readFrom = { number: file.number, offset };
    this.#reader = undefined;
    await reader.close();
    return true;
  }

  /** As long as a file is open, its room is not given back. */
  async #leavePassed(): Promise<void> {
    const reader = this.#reader;
    const isPassed = reader !== undefined && this.#files.passedBefore(Infinity).includes(reader.file);
    if (isPassed && !this.#isReading) await this.#leave(reader);
  }

  // Acknowledging.

  #moveReadPosition(): void {
    const done = this.#handedOut.takeDone();
    if (done !== undefined) this.#files.moveReadPosition(done.end, done.records);
  }

  /** Files that nobody needs when the read position on the disk is in the file of that number. */
  #removable(number = this.#savedPosition.number): DataFile[] {
    return this.#files.passedBefore(number).filter((file) => file !== this.#reader?.file);
  }

  get #savedPosition(): Position {
    return this.#metadata.durable?.read ?? START;
  }

  /** @returns whether there was something to remove. */
  async #remove(): Promise<boolean> {
    const { files, folder } = this.#options;
    const gone = this.#removable();
    for (const file of gone) {
      if (file.isDamaged) await files.rename(file.path, `${file.path}.bad`);
      else await unlinkIfThere(files, file.path);
      this.#files.forget(file);
    }
    if (gone.length > 0) await files.syncFolder(folder);
    return gone.length > 0;
  }

  /** @returns who is to be closed. */
  #forgetAll(write: Position): RecordReader | undefined {
    this.#files.passAll(write.number);
    this.#readFrom = write;
    this.#handedOut.clear();
    this.#depth = this.#bytes = this.#writtenOff = 0;
    return this.#takeReader();
  }

  #takeReader(): RecordReader | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }
}
