import { hostError, WrappedFiles, type Operation } from './wrapped-files.ts';

/** A call: its operation and its file. */
export interface FileCall {
  readonly operation: Operation;
  readonly path: string;
}

/** The file system of the host, with recorded calls, and the delays and errors that a test sets. */
export class RecordingFiles extends WrappedFiles {
  /** All calls, except those that close a file. */
  readonly calls: FileCall[] = [];
  /** Runs before each of these calls, which waits for the returned promise, and rejects with an error that is thrown. */
  before: (call: FileCall) => Promise<void> | undefined = () => undefined;

  /** Returns the number of calls of an operation for files whose path contains a text. */
  count(operation: Operation, part = ''): number {
    return this.calls.filter((call) => call.operation === operation && call.path.includes(part)).length;
  }

  /** Makes calls of an operation for such files wait at a gate. */
  hold(operation: Operation, part = ''): Gate {
    const gate = new Gate();
    this.before = (call) =>
      call.operation === operation && call.path.includes(part) ? gate.pass() : undefined;
    return gate;
  }

  /** Makes calls of an operation for such files fail, from the first or a later one on, until `heal`. */
  fail(operation: Operation, { part = '', code = 'EIO', after = 0, times = Infinity } = {}): void {
    let seen = 0;
    this.before = (call) => {
      if (call.operation !== operation || !call.path.includes(part)) return undefined;
      seen++;
      if (seen > after && seen <= after + times) throw hostError(code, operation);
      return undefined;
    };
  }

  /** Ends what `hold` or `fail` has begun; calls at the gate still wait. */
  heal(): void {
    this.before = () => undefined;
  }

  protected override async call<R>(operation: Operation, path: string, action: () => Promise<R>): Promise<R> {
    if (operation !== 'close') {
      this.calls.push({ operation, path });
      await this.before({ operation, path });
    }
    return action();
  }
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
