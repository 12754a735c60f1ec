import { unlinkIfThere } from '../missing-files.ts';
import type { FileSystem } from '../file-system.ts';
import type { AppendResult, CorruptionEvent, MessageLog, StoredMessage } from '../message-log.ts';
import type { DataFile } from './data-file.ts';
import { DataFiles } from './data-files.ts';
import { DataWriter } from './data-writer.ts';
import { sortNames, dataFileName } from './file-names.ts';
import { HandedOut } from './handed-out.ts';
import { MetadataFile } from './metadata-file.ts';
import { isSamePosition, type Position } from './metadata.ts';
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

/** Of a queue that has no metadata. */
const START: Position = { number: 0, offset: 0 };

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
 *   Then everything that the metadata says is true, whenever the power fails.
 * - What a failed write or sync has left is cut off before the metadata goes on to another file.
 */
export class NsqLog implements MessageLog {
  readonly #options: NsqLogOptions;
  readonly #metadata: MetadataFile;
  readonly #files: DataFiles;
  #writer: DataWriter | undefined;
  #reader: RecordReader | undefined;
  /** Where the next reader begins. */
  #readFrom: Position;
  readonly #handedOut = new HandedOut();
  #depth = 0;
  #bytes = 0;
  #writtenOff = 0;
  /** Files whose end is to be cut off before the metadata names a later one. */
  #torn: DataFile[] = [];
  /** Records that were appended and will never be readable, since the log was opened. */
  #dropped = 0;
  /** Why something is lost that nobody was told of yet. */
  #lost: { readonly error: unknown } | undefined;
  /** What changes the files runs one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(options: NsqLogOptions, metadata: MetadataFile, found: RecoveredQueue) {
    this.#options = options;
    this.#metadata = metadata;
    this.#files = new DataFiles(found);
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
    return this.#alone(() => this.#append(messages));
  }

  sync(): Promise<void> {
    return this.#alone(() => this.#sync());
  }

  async read(): Promise<StoredMessage[]> {
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
    return this.#alone(async () => {
      if (!this.hasUnsavedAcks || (!isDurable && this.#removable(Infinity).length === 0)) return;
      await this.#save();
      await this.#remove();
    });
  }

  /** As the original does it, in a new file. */
  empty(): Promise<void> {
    return this.#alone(async () => {
      const write = { number: this.#files.writePosition.number + 1, offset: 0 };
      await this.#metadata.save({ depth: 0, read: write, write });
      await this.#closeFiles().catch(() => undefined);
      this.#forgetAll(write);
      await this.#remove().catch(() => undefined); // still to be removed: `saveAcks` will try again, and tell
    });
  }

  close(): Promise<void> {
    return this.#alone(async () => {
      try {
        await this.#sync();
      } finally {
        await this.#saveLast();
      }
    });
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
    const dropped = this.#dropped;
    const lost = this.#lost;
    let result: AppendResult = { appended: 0 };
    while (result.appended < messages.length && result.error === undefined) {
      result = await this.#appendSome(messages, result.appended);
    }
    const gone = this.#dropped - dropped;
    if (gone > 0 && gone <= result.appended) this.#lost = lost; // all of it from this call, whose caller is told
    if (result.error === undefined) await this.#keepLastEmpty(messages.at(-1));
    return { ...result, appended: Math.max(result.appended - gone, 0) };
  }

  async #appendSome(messages: readonly Uint8Array[], first: number): Promise<AppendResult> {
    try {
      const writer = await this.#writerFor((messages[first] as Uint8Array).length);
      const { appended, error } = await writer.append(messages, first);
      if (!this.#options.isAlwaysDurable) this.#publish(writer);
      if (writer.isTorn) await this.#abandon(writer, error, false);
      return { appended: first + appended, error };
    } catch (error) {
      return { appended: first, error };
    }
  }

  /** An empty message is four zeros, which only the metadata tells from a file that had grown when the power failed. */
  async #keepLastEmpty(last: Uint8Array | undefined): Promise<void> {
    if (this.#options.isAlwaysDurable || last?.length !== 0) return;
    try {
      await this.#sync();
    } catch (error) {
      this.#lost = { error };
    }
  }

  async #sync(): Promise<void> {
    try {
      if (this.#lost !== undefined) throw this.#lost.error;
      const writer = this.#writer;
      if (writer?.isUnsaved !== true && this.#torn.length === 0) return;
      if (writer === undefined) await this.#save();
      else await this.#saveWritten(writer, { number: writer.file.number, offset: writer.written });
    } catch (error) {
      this.#lost = undefined;
      if (this.#writer !== undefined) await this.#takeBack(this.#writer, error);
      throw error;
    }
  }

  /** Makes all that was written durable and readable. @param write - where writing will go on. */
  async #saveWritten(writer: DataWriter, write: Position): Promise<void> {
    await this.#flush(writer);
    await this.#saveState(write, writer.pendingRecords);
    writer.markSaved();
    this.#publish(writer);
  }

  async #flush(writer: DataWriter): Promise<void> {
    try {
      await writer.sync();
    } catch (error) {
      await this.#abandon(writer, error, true);
      throw error;
    }
  }

  #publish(writer: DataWriter): void {
    this.#depth += writer.pendingRecords;
    this.#files.addRecords(writer.pendingRecords);
    this.#bytes += writer.pendingBytes;
    writer.publish();
  }

  async #writerFor(length: number): Promise<DataWriter> {
    if (this.#metadata.isUnsure) await this.#save(); // it may know nothing of what is about to be written
    const writer = this.#writer ?? (await this.#resume());
    if (writer?.hasRoomFor(length) === true && !writer.file.isDamaged) return writer;
    if (writer !== undefined) await this.#roll(writer);
    return this.#create();
  }

  async #resume(): Promise<DataWriter | undefined> {
    const { files, maxBytesPerFile } = this.#options;
    const { current } = this.#files;
    if (current === undefined) return undefined;
    this.#writer = await DataWriter.resume(files, current, maxBytesPerFile);
    return this.#writer;
  }

  /** As the original does it: the metadata names the next file before there is one. */
  async #roll(writer: DataWriter): Promise<void> {
    await this.#saveWritten(writer, { number: writer.file.number + 1, offset: 0 });
    this.#endCurrent();
    await writer.close().catch(() => undefined); // it is all on the disk
  }

  async #create(): Promise<DataWriter> {
    const { files, folder, name, maxBytesPerFile } = this.#options;
    const file = this.#files.next(folder, name);
    try {
      this.#writer = await DataWriter.create(files, folder, file, maxBytesPerFile);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') this.#files.skipNumber();
      throw error;
    }
    this.#files.begin(file);
    return this.#writer;
  }

  /** Nothing is readable that was not yet. */
  async #takeBack(writer: DataWriter, error: unknown): Promise<void> {
    if (writer.pendingRecords === 0) return;
    await writer.takeBack();
    if (writer.isTorn) await this.#abandon(writer, error, false);
    if (this.#metadata.isUnsure) await this.#save().catch(() => undefined); // it may know what was taken back
  }

  /** The file is not written any more. */
  async #abandon(writer: DataWriter, error: unknown, isSyncLost: boolean): Promise<void> {
    const { file, pendingRecords } = writer;
    if (writer.written > file.end || writer.isTorn) this.#torn.push(file);
    if (isSyncLost || pendingRecords > 0) this.#lost = { error };
    this.#dropped += pendingRecords;
    this.#endCurrent();
    await writer.close().catch(() => undefined);
    await this.#cutTorn().catch(() => undefined); // it is tried again before anything depends on it
  }

  #endCurrent(): void {
    this.#writer = undefined;
    this.#files.endCurrent();
  }

  async #cutTorn(): Promise<void> {
    for (let file = this.#torn[0]; file !== undefined; file = this.#torn[0]) {
      const handle = await this.#options.files.open(file.path, 'write');
      try {
        await handle.truncate(file.end);
        await handle.sync();
      } finally {
        await handle.close();
      }
      this.#torn.shift();
    }
  }

  // Metadata.

  async #save(): Promise<void> {
    const { isAlwaysDurable } = this.#options;
    if (!isAlwaysDurable && this.#writer !== undefined)
      await this.#saveWritten(this.#writer, this.#files.writePosition);
    else await this.#saveState(this.#files.writePosition, 0);
  }

  async #saveState(write: Position, pending: number): Promise<void> {
    await this.#cutTorn();
    await this.#metadata.save(this.#files.metadataAt(write, pending));
  }

  async #saveLast(): Promise<void> {
    try {
      const state = this.#files.metadataAt(this.#files.writePosition, 0);
      if (this.#torn.length > 0 || !this.#metadata.holds(state)) await this.#save();
      await this.#closeFiles();
      await this.#remove();
    } finally {
      await this.#closeFiles();
    }
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
    return { sequence: this.#handedOut.add(end), data };
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
    this.#handedOut.addDamage(file.end);
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

  // Acknowledging.

  #moveReadPosition(): void {
    for (let done = this.#handedOut.takeDone(); done !== undefined; done = this.#handedOut.takeDone()) {
      this.#files.moveReadPosition(done.end, done.records);
    }
  }

  /** Files that nobody needs when the read position on the disk is in the file of that number. */
  #removable(number = this.#savedPosition.number): DataFile[] {
    return this.#files.passedBefore(number).filter((file) => file !== this.#reader?.file);
  }

  get #savedPosition(): Position {
    return this.#metadata.durable?.read ?? START;
  }

  async #remove(): Promise<void> {
    const { files, folder } = this.#options;
    const gone = this.#removable();
    for (const file of gone) {
      if (file.isDamaged) await files.rename(file.path, `${file.path}.bad`);
      else await unlinkIfThere(files, file.path);
      this.#files.forget(file);
    }
    if (gone.length > 0) await files.syncFolder(folder);
  }

  #forgetAll(write: Position): void {
    this.#files.passAll(write.number);
    this.#torn.length = 0;
    this.#readFrom = write;
    this.#handedOut.clear();
    this.#depth = this.#bytes = this.#writtenOff = 0;
    this.#lost = undefined;
  }

  async #closeFiles(): Promise<void> {
    const reader = this.#reader;
    const writer = this.#writer;
    this.#reader = undefined;
    this.#writer = undefined;
    try {
      await reader?.close();
    } finally {
      await writer?.close();
    }
  }

  #alone<R>(action: () => Promise<R>): Promise<R> {
    const result = this.#queue.then(action);
    this.#queue = result.catch(() => undefined);
    return result;
  }
}
