import type { File, FileSystem } from '../../src/log/file-system.ts';
import { hostError, WrappedFiles } from './support/wrapped-files.ts';

const BLOCK_BYTES = 4_096;

interface Inode {
  blocks: number;
  handles: number;
  isNamed: boolean;
}

/**
 * A disk that is full when its blocks are used up, as ext4 and tmpfs have it: a file has a block for each 4 KiB of it,
 * writing over bytes that are there takes none, and those of a file are given back when it has no name and is not open.
 */
export class SmallDisk extends WrappedFiles {
  /** In bytes. Other programs take it, and give it back. */
  capacity: number;
  readonly #inodes = new Map<string, Inode>();
  #used = 0;

  constructor(files: FileSystem, capacity: number) {
    super(files);
    this.capacity = capacity;
  }

  get usedBytes(): number {
    return this.#used * BLOCK_BYTES;
  }

  /** Leaves no byte free. */
  fill(): void {
    this.capacity = this.usedBytes;
  }

  override async create(path: string): Promise<File> {
    const file = await this.files.create(path);
    this.#inodes.set(path, { blocks: 0, handles: 0, isNamed: true });
    return this.wrap(path, file);
  }

  override async rename(from: string, to: string): Promise<void> {
    await super.rename(from, to);
    this.#forget(to);
    this.#inodes.set(to, this.#inode(from));
    this.#inodes.delete(from);
  }

  override async unlink(path: string): Promise<void> {
    await super.unlink(path);
    this.#forget(path);
  }

  #inode(path: string): Inode {
    const inode = this.#inodes.get(path);
    if (inode === undefined) throw new Error(`${path} was not made on this disk`);
    return inode;
  }

  #forget(path: string): void {
    const inode = this.#inodes.get(path);
    if (inode === undefined) return;
    this.#inodes.delete(path);
    inode.isNamed = false;
    this.#giveBack(inode);
  }

  #giveBack(inode: Inode): void {
    if (!inode.isNamed && inode.handles === 0) this.#resize(inode, 0);
  }

  #resize(inode: Inode, blocks: number): void {
    this.#used += blocks - inode.blocks;
    inode.blocks = blocks;
  }

  protected override wrap(path: string, file: File): File {
    const inode = this.#inode(path);
    inode.handles++;
    return {
      ...super.wrap(path, file),
      write: async (buffer, position) => {
        const wanted = Math.max(inode.blocks, Math.ceil((position + buffer.length) / BLOCK_BYTES));
        const free = Math.max(0, Math.floor(this.capacity / BLOCK_BYTES) - this.#used);
        const blocks = Math.min(wanted, inode.blocks + free);
        this.#resize(inode, blocks);
        const fits = Math.min(buffer.length, blocks * BLOCK_BYTES - position);
        if (fits > 0) await file.write(buffer.subarray(0, fits), position);
        if (blocks < wanted) throw hostError('ENOSPC', 'write', path);
      },
      truncate: async (length) => {
        await file.truncate(length);
        this.#resize(inode, Math.min(inode.blocks, Math.ceil(length / BLOCK_BYTES)));
      },
      close: async () => {
        await file.close();
        inode.handles--;
        this.#giveBack(inode);
      },
    };
  }
}
