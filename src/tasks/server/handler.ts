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
