import { hostFileSystem, type File, type FileSystem } from '../../../src/log/file-system.ts';

export type Operation = keyof FileSystem | keyof File;

/** Passes every call on to another file system: subclasses record calls, delay them or let them fail. */
export class WrappedFiles implements FileSystem {
  protected readonly files: FileSystem;

  constructor(files: FileSystem = hostFileSystem) {
    this.files = files;
  }

  open(path: string, mode: 'read' | 'write'): Promise<File> {
    return this.call('open', path, async () => this.wrap(path, await this.files.open(path, mode)));
  }

  create(path: string): Promise<File> {
    return this.call('create', path, async () => this.wrap(path, await this.files.create(path)));
  }

  list(folder: string): Promise<string[]> {
    return this.call('list', folder, () => this.files.list(folder));
  }

  size(path: string): Promise<number> {
    return this.call('size', path, () => this.files.size(path));
  }

  rename(from: string, to: string): Promise<void> {
    return this.call('rename', from, () => this.files.rename(from, to));
  }

  unlink(path: string): Promise<void> {
    return this.call('unlink', path, () => this.files.unlink(path));
  }

  makeFolder(path: string): Promise<void> {
    return this.call('makeFolder', path, () => this.files.makeFolder(path));
  }

  syncFolder(path: string): Promise<void> {
    return this.call('syncFolder', path, () => this.files.syncFolder(path));
  }

  /** Makes a call. */
  protected call<R>(_operation: Operation, _path: string, action: () => Promise<R>): Promise<R> {
    return action();
  }

  protected wrap(path: string, file: File): File {
    return {
      read: (buffer, position) => this.call('read', path, () => file.read(buffer, position)),
      write: (buffer, position) => this.call('write', path, () => file.write(buffer, position)),
      truncate: (length) => this.call('truncate', path, () => file.truncate(length)),
      sync: () => this.call('sync', path, () => file.sync()),
      close: () => this.call('close', path, () => file.close()),
    };
  }
}

/** Returns an error like one of the host. */
export function hostError(code: string, syscall: string, path = ''): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${syscall} '${path}'`), { code, syscall, path, errno: -1 });
}
