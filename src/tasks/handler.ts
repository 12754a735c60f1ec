import { inspect } from 'node:util';

/**
 * Processes a task. The task is done when the handler returns, or when the promise it returns resolves; it has failed when the
 * handler throws or rejects.
 *
 * @typeParam P - type of `task.data`: see {@link ReceivedTask}.
 */
export type Handler<P = unknown> = (task: ReceivedTask<P>, context: TaskContext) => unknown;

/** Wraps a handler: it may inspect or replace task, context and result, or not call `next` at all. */
export type Middleware = (next: Handler) => Handler;

/** A task as its handler receives it. Immutable. @typeParam P - type of `data`. */
export interface ReceivedTask<P = unknown> {
  /** Type of the task: selects its handler. */
  readonly type: string;
  /** A copy of the payload, made at the first read; empty if the task has none. */
  readonly payload: Uint8Array;
  /** Headers, as they were enqueued. */
  readonly headers: Readonly<Record<string, string>>;
  /** The payload as parsed by the schema of its task type. Undefined if the handler was registered for a pattern. */
  readonly data: P;
  /** Returns the payload, parsed as JSON. @throws EscapementError `ERR_TASK_PAYLOAD` - the payload is empty, or not JSON in UTF-8. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller states the type it expects
  json<T = unknown>(): T;
  /** Returns the same task with other data. */
  withData<D>(data: D): ReceivedTask<D>;
}

/** Information about a run, and the operations a handler can call while it runs. */
export interface TaskContext {
  /**
   * Fires when the handler must stop, with an `EscapementError` as its reason: `ERR_TASK_TIMEOUT`, `ERR_TASK_CANCELLED`,
   * `ERR_LEASE_LOST` or `ERR_SERVER_CLOSED`. The handler then has the server's `graceMs` to settle. Created at the first read.
   */
  readonly signal: AbortSignal;
  /** Id of the task, unique in its queue. */
  readonly taskId: string;
  /** Queue of the task. */
  readonly queue: string;
  /** Customer or tenant of the task; empty without a key. */
  readonly key: string;
  /** Number of failures so far. */
  readonly retryCount: number;
  /** How often the task may be retried: its failure after that many retries archives it. */
  readonly maxRetry: number;
  /** When the run must end: the earlier of its timeout and its deadline, in wall-clock milliseconds; 0 if it has neither. */
  readonly deadlineMs: number;
  /** Counts the leases of the task: a fencing token for what the handler changes elsewhere. */
  readonly leaseEpoch: number;
  /** Headers of the task. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of this run, set by middleware; inherits from the server's `baseContext`. */
  readonly values: Record<string, unknown>;
  /**
   * Stores the result of the run; a later result replaces it. Await it, or its failure is ignored.
   *
   * @param result - a Uint8Array or a JSON-serializable value.
   * @throws TypeError `ERR_INVALID_ARG_VALUE` - the value is not JSON-serializable.
   * @throws EscapementError `ERR_LEASE_LOST` - the broker has ended the run. `ERR_BROKER_UNAVAILABLE`.
   */
  readonly writeResult: (result: unknown) => Promise<void>;
  /**
   * Reports the progress of the run. It need not be awaited: a failure is then ignored.
   *
   * @param value - a JSON-serializable value.
   * @throws the errors of `writeResult`.
   */
  readonly progress: (value: unknown) => Promise<void>;
}

/* What a handler throws: errors that decide the outcome of the run, and the text that is stored for an error. */

const SKIP_RETRY = Symbol.for('escapement.skip-retry');
const REVOKE_TASK = Symbol.for('escapement.revoke-task');

/** Longest chain of causes that is followed: a chain may be a circle. */
const MAX_DEPTH = 32;

/** Longest error that is stored with a task, in characters: it is shown in tables. */
const MOST_CHARACTERS = 8_192;

/** Thrown by a handler whose task cannot succeed: the task is archived at once, even if it has retries left. Also as a `cause`. */
export class SkipRetry extends Error {
  constructor(message = 'skip retry for the task', options?: ErrorOptions) {
    super(message, options);
    this.name = 'SkipRetry';
    Object.defineProperty(this, SKIP_RETRY, { value: true });
  }

  /** Returns whether an error, or one of its causes, is a `SkipRetry` of this or of another copy of the package. */
  static is(error: unknown): boolean {
    return hasBrand(error, SKIP_RETRY);
  }
}

/**
 * Thrown by a handler whose task is no longer wanted: the task is removed at once, whatever its retention, and counts as
 * processed. Also as a `cause`.
 */
export class RevokeTask extends Error {
  constructor(message = 'revoke task', options?: ErrorOptions) {
    super(message, options);
    this.name = 'RevokeTask';
    Object.defineProperty(this, REVOKE_TASK, { value: true });
  }

  /** Returns whether an error, or one of its causes, is a `RevokeTask` of this or of another copy of the package. */
  static is(error: unknown): boolean {
    return hasBrand(error, REVOKE_TASK);
  }
}

/** As Go's `errors.Is`. Never throws: a thrown value may itself throw when its properties are read. */
function hasBrand(error: unknown, brand: symbol): boolean {
  let one = error;
  try {
    for (let depth = 0; depth < MAX_DEPTH && typeof one === 'object' && one !== null; depth++) {
      if (brand in one) return true;
      one = (one as { cause?: unknown }).cause;
    }
  } catch {
    return false;
  }
  return false;
}

/** Returns the text that is stored for a thrown value: never blank, well-formed Unicode, and of bounded length. */
export function errorText(error: unknown): string {
  const text = describe(error);
  const cut = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
  return cut.toWellFormed();
}

/** A thrown value may itself throw when its properties are read. */
function describe(error: unknown): string {
  try {
    if (typeof error === 'string' && error.trim() !== '') return error;
    if (!(error instanceof Error)) return `thrown: ${inspect(error, { depth: 1 })}`;
    const { message, name } = error as { message: unknown; name: unknown };
    if (typeof message === 'string' && message.trim() !== '') return message;
    return typeof name === 'string' && name.trim() !== '' ? name : 'unknown error';
  } catch {
    return 'unknown error: it cannot be read';
  }
}
