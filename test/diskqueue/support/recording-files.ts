import { hostFileSystem, type File, type FileSystem } from '../../../src/log/file-system.ts';

/** A call: its operation and its file. */
export interface FileCall {
  readonly operation: keyof FileSystem | keyof File;
  readonly path: string;
}

/** The file system of the host, with recorded calls, and the delays and errors that a test sets. */
export class RecordingFiles implements FileSystem {
  readonly calls: FileCall[] = [];
  /** Runs before every call, which waits for the returned promise, and rejects with an error that is thrown. */
  before: (call: FileCall) => Promise<void> | undefined = () => undefined;

  /** Returns the number of calls of an operation for files whose path contains a text. */
  count(operation: FileCall['operation'], part = ''): number {
    return this.calls.filter((call) => call.operation === operation && call.path.includes(part)).length;
  }

  async open(path: string, mode: 'read' | 'write'): Promise<File> {
    await this.#note('open', path);
    return this.#wrap(path, await hostFileSystem.open(path, mode));
  }

  async create(path: string): Promise<File> {
    await this.#note('create', path);
    return this.#wrap(path, await hostFileSystem.create(path));
  }

  async list(folder: string): Promise<string[]> {
    await this.#note('list', folder);
    return hostFileSystem.list(folder);
  }

  async size(path: string): Promise<number> {
    await this.#note('size', path);
    return hostFileSystem.size(path);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#note('rename', from);
    await hostFileSystem.rename(from, to);
  }

  async unlink(path: string): Promise<void> {
    await this.#note('unlink', path);
    await hostFileSystem.unlink(path);
  }

  async makeFolder(path: string): Promise<void> {
    await this.#note('makeFolder', path);
    await hostFileSystem.makeFolder(path);
  }

  async syncFolder(path: string): Promise<void> {
    await this.#note('syncFolder', path);
    await hostFileSystem.syncFolder(path);
  }

  async #note(operation: FileCall['operation'], path: string): Promise<void> {
    const call = { operation, path };
    this.calls.push(call);
    await this.before(call);
  }

  #wrap(path: string, file: File): File {
    const noted =
      <A extends unknown[], R>(operation: keyof File, method: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        await this.#note(operation, path);
        return method.apply(file, args);
      };
    return {
      read: noted('read', (buffer: Buffer, position: number) => file.read(buffer, position)),
      write: noted('write', (buffer: Buffer, position: number) => file.write(buffer, position)),
      truncate: noted('truncate', (length: number) => file.truncate(length)),
      sync: noted('sync', () => file.sync()),
      close: () => file.close(),
    };
  }
}

/** Returns an error like one of the host. */
export function hostError(code: string, syscall: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated, ${syscall}`), { code, syscall, errno: -1 });
}

/** A gate for `before`: calls wait at it until it is opened. */
export class Gate {
  /** Number of calls that wait. */
  waiting = 0;
  #isOpen = false;
  readonly #opened: Promise<void>;
  #open: () => void = () => undefined;

  constructor() {
    this.#opened = new Promise((resolve) => (this.#open = resolve));
  }

  async pass(): Promise<void> {
    if (this.#isOpen) return;
    this.waiting++;
    await this.#opened;
  }

  open(): void {
    this.#isOpen = true;
    this.#open();
  }
}
