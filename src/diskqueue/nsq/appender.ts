import { EscapementError } from '../../core/errors.ts';
import { codeOf, ifThere, withFile } from '../../log/file-system.ts';
import type { AppendResult } from '../message-log.ts';
import type { DataFile, DataFiles, NsqLogOptions } from './data-files.ts';
import { DataWriter } from './data-writer.ts';
import { isSamePosition, LARGEST_NUMBER, START, type Position } from './format.ts';
import type { MetadataFile } from './metadata-file.ts';

/**
 * Writes at the end of the log, in one data file after the other, and syncs in this order:
 *
 *      name of the file ──► bytes of the file ──► torn records are cut off ──► metadata
 *
 * So the metadata is true whenever the power fails, and behind its write position only the last file can end in the
 * middle of a record.
 *
 *      what has failed      the messages of the call           the file
 *      write                rejected from there on: cut off    continues; if it cannot be cut, it ends here: torn
 *      sync of the file     taken back; at risk if readable    ends here: a second sync may succeed without the bytes
 *      metadata             taken back, unless readable        continues
 */
export class Appender {
  readonly #options: NsqLogOptions;
  readonly #metadata: MetadataFile;
  readonly #files: DataFiles;
  #writer: DataWriter | undefined;
  /** Files that must be cut at their end before a later file is created. */
  #torn: DataFile[] = [];
  /** Readable messages up to the file of that number may not be on the disk. */
  #possibleLoss: { readonly number: number; readonly error: unknown } | undefined;

  constructor(options: NsqLogOptions, metadata: MetadataFile, files: DataFiles) {
    this.#options = options;
    this.#metadata = metadata;
    this.#files = files;
  }

  /** Writes to one file only, so that the next `sync` succeeds or fails for all these messages. */
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

  /** Makes everything that was appended durable, and readable. */
  async sync(): Promise<void> {
    if (this.#isUnsaved) await this.#saveAt(this.#writer?.position ?? this.#files.writePosition);
    this.#throwPossibleLoss();
  }

  /** Makes everything that is readable durable, and saves the read position. */
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

  /** Abandons everything that was written. Resolves when that is in the metadata on the disk. */
  async drop(write: Position): Promise<void> {
    await this.close().catch(() => undefined);
    await this.#metadata.save({ depth: 0, read: write, write });
    this.#torn = [];
  }

  /** Continues in another file though this one is not full, because all of it is acknowledged. */
  async leaveCurrent(): Promise<void> {
    const writer = this.#writer;
    this.#endCurrent();
    await writer?.close().catch(() => undefined);
    await this.save();
  }

  /** Closes the file without a sync. */
  async close(): Promise<void> {
    const writer = this.#writer;
    this.#writer = undefined;
    await writer?.close();
  }

  /** Whether the metadata on the disk lacks the end of what was written. */
  get #isUnsaved(): boolean {
    if (this.#torn.length > 0 || this.#metadata.isUnsure) return true;
    const { write } = this.#metadata.durable ?? { write: START };
    return !isSamePosition(write, this.#writer?.position ?? this.#files.writePosition);
  }

  /**
   * Messages become readable at once, unless they must be on the disk first. So must an empty one at the end: it is four
   * zeros, which only the metadata distinguishes from a file that had grown when the power failed.
   */
  async #settle(writer: DataWriter, last: Uint8Array | undefined): Promise<void> {
    if (this.#options.isAlwaysDurable) return;
    if (last?.length === 0) await this.#saveAt(writer.position);
    else this.#publish(writer);
  }

  /** Makes everything that was written durable, and then readable. @param write - where writing will continue. */
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
      if (writer.isReadableUnsynced) this.#possibleLoss = { number: writer.file.number, error };
      await this.#abandon(writer);
      throw error;
    }
  }

  #publish(writer: DataWriter): void {
    const { pendingRecords, pendingBytes } = writer;
    writer.publish();
    this.#files.addReadable(pendingRecords, pendingBytes);
  }

  /** Rejects for messages of which an earlier sync has failed, until they are acknowledged: a second sync proves nothing. */
  #throwPossibleLoss(): void {
    if (this.#possibleLoss === undefined) return;
    if (this.#files.readPosition.number <= this.#possibleLoss.number) throw this.#possibleLoss.error;
    this.#possibleLoss = undefined;
  }

  async #writerFor(length: number): Promise<DataWriter> {
    if (this.#metadata.isUnsure) await this.save(); // a crash could leave the older version
    const writer = this.#writer ?? (await this.#resume());
    if (writer?.fits(length) === true && !writer.file.isDamaged) return writer;
    if (writer !== undefined) await this.#roll(writer);
    return this.#create();
  }

  async #resume(): Promise<DataWriter | undefined> {
    const { files, maxBytesPerFile } = this.#options;
    const { current } = this.#files;
    if (current === undefined) return undefined;
    this.#writer = new DataWriter(current, await files.open(current.path, 'write'), maxBytesPerFile);
    return this.#writer;
  }

  /** As go-diskqueue: the metadata names the next file before it exists. */
  async #roll(writer: DataWriter): Promise<void> {
    await this.#saveAt({ number: writer.file.number + 1, offset: 0 });
    this.#endCurrent();
    await writer.close().catch(() => undefined); // everything is on the disk
  }

  async #create(): Promise<DataWriter> {
    const { files, folder, name, maxBytesPerFile } = this.#options;
    await this.#cutTorn();
    if (this.#metadata.durable === undefined) await this.save(); // the disk may be full later
    for (;;) {
      const file = this.#files.next(folder, name);
      if (file.number > LARGEST_NUMBER) throw hasNoNumber(name);
      try {
        this.#writer = await DataWriter.create(files, folder, file, maxBytesPerFile);
        this.#files.begin(file);
        return this.#writer;
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error;
        this.#files.skipNumber(); // left by an earlier call that failed
      }
    }
  }

  /** Removes the messages that are not readable yet. */
  async #takeBack(): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined || writer.pendingRecords === 0) return;
    await writer.takeBack();
    if (writer.isTorn) await this.#abandon(writer);
    if (this.#metadata.isUnsure) await this.save().catch(() => undefined); // it may cover the removed messages
  }

  /** Ends the file; its messages that are not readable yet never become readable. */
  async #abandon(writer: DataWriter): Promise<void> {
    if (writer.isTorn || writer.pendingRecords > 0) this.#torn.push(writer.file);
    this.#endCurrent();
    await writer.close().catch(() => undefined);
    await this.#cutTorn().catch(() => undefined); // repeated before the next file and the next metadata
  }

  #endCurrent(): void {
    this.#writer = undefined;
    this.#files.endCurrent();
  }

  async #cutTorn(): Promise<void> {
    for (let file = this.#torn[0]; file !== undefined; file = this.#torn[0]) {
      const { path, end } = file;
      const cutting = withFile(this.#options.files, path, 'write', async (handle) => {
        await handle.truncate(end);
        await handle.sync();
      });
      await ifThere(cutting, undefined); // another program may have removed it
      this.#torn.shift();
    }
  }
}

function hasNoNumber(queue: string): EscapementError {
  const message = `queue '${queue}': a file has the number ${LARGEST_NUMBER}, and none can come behind it`;
  return new EscapementError('ERR_QUEUE_IO', message, { op: 'DiskQueue.put' });
}
