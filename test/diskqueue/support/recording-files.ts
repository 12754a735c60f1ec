import { hostFileSystem, type File, type FileSystem } from '../../../src/log/file-system.ts';

/** One call: what, and of which file. */
export interface FileCall {
  readonly operation: keyof FileSystem | keyof File;
  readonly path: string;
}

/** The host's file system, which counts, waits and fails as a test says. */
export class RecordingFiles implements FileSystem {
  readonly calls: FileCall[] = [];
  /** Called before every call; what it throws is what the call rejects with, and what it returns is waited for. */
  before: (call: FileCall) => Promise<void> | undefined = () => undefined;

  /** How often something was called for files whose path holds a text. */
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

/** An error as the host makes them. */
export function hostError(code: string, syscall: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated, ${syscall}`), { code, syscall, errno: -1 });
}

/** A gate for `before`: holds the calls that it is for until it is opened. */
export class Gate {
  /** How many wait at it. */
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
