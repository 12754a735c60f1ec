import { type FileSystem, withFile } from '../../log/file-system.ts';
import type { AppendResult } from '../message-log.ts';
import type { DataFile } from './data-file.ts';
import type { DataFiles } from './data-files.ts';
import { DataWriter } from './data-writer.ts';
import type { MetadataFile } from './metadata-file.ts';
import { isSamePosition, START, type Position } from './metadata.ts';

export interface AppenderOptions {
  readonly files: FileSystem;
  readonly folder: string;
  readonly name: string;
  readonly maxBytesPerFile: number;
  /** Whether a message is readable only when it is on the disk. */
  readonly isAlwaysDurable: boolean;
}

/**
 * Writes at the end of the log, in one data file after the other, and brings it to the disk in this order:
 *
 *      name of the file ──► bytes of the file ──► what is torn is cut off ──► metadata
 *
 * Whenever the power fails, everything that the metadata says is true then, and behind its write position only the last
 * file can end in the midst of a record.
 *
 *      what has failed      the messages of the call           the file
 *      write                refused from there on: cut off     goes on; if it could not be cut, it ends here: torn
 *      sync of the file     taken back; in doubt if readable   ends here: asked again, the host may say that all is well
 *      metadata             taken back, unless readable        goes on
 */
export class Appender {
  readonly #options: AppenderOptions;
  readonly #metadata: MetadataFile;
  readonly #files: DataFiles;
  readonly #onReadable: (records: number, bytes: number) => void;
  #writer: DataWriter | undefined;
  /** Files whose end is to be cut off before there is a later one. */
  #torn: DataFile[] = [];
  /** Messages in the file of that number, and before it, may be not on the disk. */
  #doubt: { readonly number: number; readonly error: unknown } | undefined;

  /** @param onReadable - told of messages, and of their bytes. */
  constructor(
    options: AppenderOptions,
    metadata: MetadataFile,
    files: DataFiles,
    onReadable: (records: number, bytes: number) => void,
  ) {
    this.#options = options;
    this.#metadata = metadata;
    this.#files = files;
    this.#onReadable = onReadable;
  }

  /** Into one file, so that a `sync` that fails then loses all that it was for, and nothing else. */
  async append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    try {
      const writer = await this.#writerFor((messages[0] as Uint8Array).length);
      const result = await writer.append(messages);
      await this.#settle(writer, messages[result.appended - 1]);
      if (!writer.isTorn) return result;
      const isTakenBack = writer.pendingRecords > 0;
      await this.#abandon(writer);
      return isTakenBack ? { ...result, appended: 0 } : result;
    } catch (error) {
      return { appended: 0, error };
    }
  }

  /** Makes all that was appended durable, and readable. */
  async sync(): Promise<void> {
    if (this.#isUnsaved) await this.#saveAt(this.#writer?.position ?? this.#files.writePosition);
    this.#throwDoubt();
  }

  /** Makes all that is readable durable, and saves where its reader is. */
  async save(): Promise<void> {
    if (this.#writer?.isReadableUnsynced === true) await this.#flush(this.#writer);
    await this.#cutTorn();
    await this.#metadata.save(this.#files.metadataAt(this.#files.writePosition, 0));
  }

  /** Whether `save` would change nothing. */
  get isSaved(): boolean {
    if (this.#torn.length > 0) return false;
    return this.#metadata.holds(this.#files.metadataAt(this.#files.writePosition, 0));
  }

  /** Nothing that was written matters any more, as soon as the metadata on the disk says so. */
  async drop(write: Position): Promise<void> {
    await this.close().catch(() => undefined);
    await this.#metadata.save({ depth: 0, read: write, write });
    this.#torn = [];
  }

  /** Goes on in another file, though there is room in this one: all of it is acknowledged. */
  async leaveCurrent(): Promise<void> {
    const writer = this.#writer;
    this.#endCurrent();
    await writer?.close().catch(() => undefined);
    await this.save();
  }

  /** What is not on the disk is left as it is. */
  async close(): Promise<void> {
    const writer = this.#writer;
    this.#writer = undefined;
    await writer?.close();
  }

  /** Whether the metadata on the disk does not know the end of what was written. */
  get #isUnsaved(): boolean {
    if (this.#torn.length > 0 || this.#metadata.isUnsure) return true;
    const { write } = this.#metadata.durable ?? { write: START };
    return !isSamePosition(write, this.#writer?.position ?? this.#files.writePosition);
  }

  /**
   * Messages are readable at once, unless they have to be on the disk first. So has an empty one at the end: it is four
   * zeros, which only the metadata tells from a file that had grown when the power failed.
   */
  async #settle(writer: DataWriter, last: Uint8Array | undefined): Promise<void> {
    if (this.#options.isAlwaysDurable) return;
    if (last?.length === 0) await this.#saveAt(writer.position);
    else this.#publish(writer);
  }

  /** Everything that was written is durable then, and readable. @param write - where writing will go on. */
  async #saveAt(write: Position): Promise<void> {
    const writer = this.#writer;
    try {
      if (writer !== undefined) await this.#flush(writer);
      await this.#cutTorn();
      await this.#metadata.save(this.#files.metadataAt(write, writer?.pendingRecords ?? 0));
    } catch (error) {
      await this.#takeBack();
      throw error;
    }
    if (writer !== undefined) this.#publish(writer);
  }

  async #flush(writer: DataWriter): Promise<void> {
    try {
      await writer.sync();
    } catch (error) {
      if (writer.isReadableUnsynced) this.#doubt = { number: writer.file.number, error };
      await this.#abandon(writer);
      throw error;
    }
  }

  #publish(writer: DataWriter): void {
    const { pendingRecords, pendingBytes } = writer;
    if (pendingRecords === 0) return;
    writer.publish();
    this.#files.addRecords(pendingRecords);
    this.#onReadable(pendingRecords, pendingBytes);
  }

  /** What could not be brought to the disk is not brought there by asking again. */
  #throwDoubt(): void {
    if (this.#doubt === undefined) return;
    if (this.#files.readPosition.number <= this.#doubt.number) throw this.#doubt.error;
    this.#doubt = undefined;
  }

  async #writerFor(length: number): Promise<DataWriter> {
    if (this.#metadata.isUnsure) await this.save(); // it may know nothing of what is about to be written
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
    await this.#saveAt({ number: writer.file.number + 1, offset: 0 });
    this.#endCurrent();
    await writer.close().catch(() => undefined); // it is all on the disk
  }

  async #create(): Promise<DataWriter> {
    const { files, folder, name, maxBytesPerFile } = this.#options;
    await this.#cutTorn();
    if (this.#metadata.durable === undefined) await this.save(); // there may be no room for it later
    for (;;) {
      const file = this.#files.next(folder, name);
      try {
        this.#writer = await DataWriter.create(files, folder, file, maxBytesPerFile);
        this.#files.begin(file);
        return this.#writer;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        this.#files.skipNumber(); // one that could not be made, nor removed: nothing is written over
      }
    }
  }

  /** Nothing is readable that was not yet. */
  async #takeBack(): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined || writer.pendingRecords === 0) return;
    await writer.takeBack();
    if (writer.isTorn) await this.#abandon(writer);
    if (this.#metadata.isUnsure) await this.save().catch(() => undefined); // it may know what was taken back
  }

  /** The file is not written any more, and what is not readable in it never will be. */
  async #abandon(writer: DataWriter): Promise<void> {
    if (writer.isTorn || writer.pendingRecords > 0) this.#torn.push(writer.file);
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
      const { path, end } = file;
      await withFile(this.#options.files, path, 'write', async (handle) => {
        await handle.truncate(end);
        await handle.sync();
      });
      this.#torn.shift();
    }
  }
}
