import { randomInt } from 'node:crypto';
import {
  isMissing,
  unlinkIfThere,
  isOutOfRoom,
  type File,
  type FileSystem,
  withFile,
} from '../../log/file-system.ts';
import { metadataFileName } from './file-names.ts';
import { decodeMetadata, encodeMetadata, type Metadata } from './metadata.ts';

/** More than three lines of numbers can take, in bytes. */
const LONGEST = 128;
const RANDOM_BELOW = 2 ** 47;

/**
 * The metadata of one queue: replaced as a whole, by a file of another name that is renamed when it is on the disk.
 *
 * On a disk that is full there may be no other file. Then it is written over in place, which takes no room:
 *
 *      5\n0,0\n0,30\n                as it was
 *      5\n0,0\n0,30\n␠␠␠             made as long as it will be, if that is longer: what follows the lines is not read
 *      12\n0,130\n1,30\n             written over at once, in one sector of the disk
 *
 * The original does not sync the folder after that. Here it is synced, and until it is, nobody knows which of the two
 * a power failure would leave: see `isUnsure`.
 */
export class MetadataFile {
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #path: string;
  #durable: Metadata | undefined;
  #isUnsure = false;

  constructor(files: FileSystem, folder: string, queue: string) {
    this.#files = files;
    this.#folder = folder;
    this.#path = `${folder}/${metadataFileName(queue)}`;
  }

  /** What is surely on the disk; undefined if nothing is, or nothing that can be believed. */
  get durable(): Metadata | undefined {
    return this.#durable;
  }

  /** Whether something newer than that can be seen, and may be what is left after a crash. */
  get isUnsure(): boolean {
    return this.#isUnsure;
  }

  async load(): Promise<Metadata | undefined> {
    try {
      const file = await this.#files.open(this.#path, 'read');
      try {
        const bytes = Buffer.alloc(LONGEST);
        this.#durable = decodeMetadata(bytes.subarray(0, await file.read(bytes, 0)));
      } finally {
        await file.close();
      }
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    return this.#durable;
  }

  /** Whether this is what is on the disk. */
  holds(metadata: Metadata): boolean {
    const { durable } = this;
    if (durable === undefined || this.#isUnsure) return false;
    return encodeMetadata(durable).equals(encodeMetadata(metadata));
  }

  /** When it resolves, it is on the disk, and will be found there. */
  async save(metadata: Metadata): Promise<void> {
    const temporary = `${this.#path}.${randomInt(RANDOM_BELOW)}.tmp`;
    try {
      await this.#write(temporary, encodeMetadata(metadata));
      await this.#files.rename(temporary, this.#path);
    } catch (error) {
      await this.#files.unlink(temporary).catch(() => undefined);
      if (!isOutOfRoom(error) || this.#durable === undefined) throw error;
      await withFile(this.#files, this.#path, 'write', (file) =>
        this.#overwrite(file, encodeMetadata(metadata)),
      );
    }
    this.#isUnsure = true;
    await this.#files.syncFolder(this.#folder);
    this.#isUnsure = false;
    this.#durable = metadata;
  }

  async remove(): Promise<void> {
    await unlinkIfThere(this.#files, this.#path);
  }

  async #overwrite(file: File, bytes: Buffer): Promise<void> {
    const size = await this.#files.size(this.#path);
    if (bytes.length > size) {
      await file.write(Buffer.alloc(bytes.length - size, ' '), size);
      await file.sync();
    }
    await file.write(Buffer.concat([bytes, Buffer.alloc(Math.max(0, size - bytes.length), ' ')]), 0);
    await file.sync();
    await file.truncate(bytes.length).catch(() => undefined);
  }

  async #write(path: string, bytes: Buffer): Promise<void> {
    const file = await this.#files.create(path);
    try {
      await file.write(bytes, 0);
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
