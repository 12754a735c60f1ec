import { randomInt } from 'node:crypto';
import {
  type File,
  type FileSystem,
  ifThere,
  isDiskFull,
  makeFile,
  withFile,
} from '../../log/file-system.ts';
import { decodeMetadata, encodeMetadata, metadataFileName, type Metadata } from './format.ts';

/** More than three lines of numbers can take, in bytes. */
const LONGEST = 128;
const RANDOM_BELOW = 2 ** 47;

/**
 * The metadata of one queue. It is replaced as a whole: another file is written, synced and renamed.
 *
 * A full disk has no space for another file. Then it is written over in place:
 *
 *      5\n0,0\n0,30\n                as it was
 *      5\n0,0\n0,30\n␠␠␠             made as long as it will be, if that is longer: bytes behind the lines are not read
 *      12\n0,130\n1,30\n             written over at once, in one sector of the disk
 *
 * go-diskqueue does not sync the folder after that. Here it is synced, and until it is, a power failure may leave either
 * of the two: see `isUnsure`.
 */
export class MetadataFile {
  readonly path: string;
  readonly #files: FileSystem;
  readonly #folder: string;
  /** The metadata that is on the disk for certain; undefined if it is missing or damaged. */
  durable: Metadata | undefined;
  /** Whether the file has newer metadata, which may or may not be there after a power failure. */
  isUnsure = false;

  constructor(files: FileSystem, folder: string, queue: string) {
    this.#files = files;
    this.#folder = folder;
    this.path = `${folder}/${metadataFileName(queue)}`;
  }

  /** Reads the file. Returns undefined if it is missing or damaged. */
  async load(): Promise<Metadata | undefined> {
    const bytes = Buffer.alloc(LONGEST);
    const reading = withFile(this.#files, this.path, 'read', (file) => file.read(bytes, 0));
    this.durable = decodeMetadata(bytes.subarray(0, await ifThere(reading, 0)));
    return this.durable;
  }

  /** Whether this metadata is on the disk. */
  holds(metadata: Metadata): boolean {
    if (this.durable === undefined || this.isUnsure) return false;
    return encodeMetadata(this.durable).equals(encodeMetadata(metadata));
  }

  /** Resolves when the metadata is on the disk, and the name of its file too. */
  async save(metadata: Metadata): Promise<void> {
    const temporary = `${this.path}.${randomInt(RANDOM_BELOW)}.tmp`;
    const bytes = encodeMetadata(metadata);
    try {
      await makeFile(this.#files, temporary, (file) => file.write(bytes, 0));
      await this.#files.rename(temporary, this.path);
    } catch (error) {
      await this.#files.unlink(temporary).catch(() => undefined);
      if (!isDiskFull(error) || this.durable === undefined) throw error;
      await withFile(this.#files, this.path, 'write', (file) => this.#overwrite(file, bytes));
    }
    this.isUnsure = true;
    await this.#files.syncFolder(this.#folder);
    this.isUnsure = false;
    this.durable = metadata;
  }

  async #overwrite(file: File, bytes: Buffer): Promise<void> {
    const size = await this.#files.size(this.path);
    if (bytes.length > size) {
      await file.write(Buffer.alloc(bytes.length - size, ' '), size);
      await file.sync();
    }
    await file.write(Buffer.concat([bytes, Buffer.alloc(Math.max(0, size - bytes.length), ' ')]), 0);
    await file.sync();
    await file.truncate(bytes.length).catch(() => undefined);
  }
}
