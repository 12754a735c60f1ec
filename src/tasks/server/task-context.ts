import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { wrongValue } from '../../core/errors.ts';
import type { Broker, LeasedTask } from '../broker/broker.ts';
import { encodePayload } from '../payload.ts';
import { printFilled } from '../show-bytes.ts';

/** What a handler learns besides its task, and what it can say while it runs. */
export interface TaskContext {
  /**
   * Fires when the handler is to stop, with an `EscapementError`: `ERR_TASK_TIMEOUT`, `ERR_TASK_CANCELLED`, `ERR_LEASE_LOST`
   * or `ERR_SERVER_CLOSED`. It has the server's `graceMs` to settle then. Made when it is first asked for.
   */
  readonly signal: AbortSignal;
  /** Unique in its queue. */
  readonly taskId: string;
  /** Where the task is from. */
  readonly queue: string;
  /** Failures until now. */
  readonly retryCount: number;
  /** Failures that are tried again. */
  readonly maxRetry: number;
  /** When the run must be over: the earlier of its timeout and its deadline, in wall-clock milliseconds; 0 for never. */
  readonly deadlineMs: number;
  /** Counts the leases of the task: a fencing token for what the handler changes elsewhere. */
  readonly leaseEpoch: number;
  /** As of the task. */
  readonly headers: Readonly<Record<string, string>>;
  /** The server's `baseContext`, and what middleware has put there for this run. */
  readonly values: Record<string, unknown>;
  /**
   * Keeps what the run has to show; a later result replaces it. Wait for it, or a failure is dropped.
   *
   * @param result - bytes, or anything that JSON can say.
   * @throws TypeError `ERR_INVALID_ARG_VALUE` - JSON has no word for it.
   * @throws EscapementError `ERR_LEASE_LOST` - the run is over for the broker. `ERR_BROKER_UNAVAILABLE`.
   */
  writeResult(result: unknown): Promise<void>;
  /**
   * Says how far the run is. It need not be waited for: a failure that nobody waits for is dropped.
   *
   * @param value - anything that JSON can say.
   * @throws as of `writeResult`.
   */
  progress(value: unknown): Promise<void>;
}

/** What a context shows of its run. */
export interface ContextSource {
  readonly leased: LeasedTask;
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
}

export class RunContext implements TaskContext {
  /** As users know it: a console prints it. */
  static readonly name = 'TaskContext';
  readonly #source: ContextSource;
  readonly #broker: Broker;
  readonly #base: Readonly<Record<string, unknown>> | null;
  #values: Record<string, unknown> | undefined;

  constructor(source: ContextSource, broker: Broker, base: Readonly<Record<string, unknown>> | null) {
    this.#source = source;
    this.#broker = broker;
    this.#base = base;
  }

  get signal(): AbortSignal {
    return this.#source.signal;
  }

  get taskId(): string {
    return this.#source.leased.message.id;
  }

  get queue(): string {
    return this.#source.leased.message.queue;
  }

  get retryCount(): number {
    return this.#source.leased.message.retried;
  }

  get maxRetry(): number {
    return this.#source.leased.message.maxRetry;
  }

  get deadlineMs(): number {
    return this.#source.deadlineMs;
  }

  get leaseEpoch(): number {
    return this.#source.leased.epoch;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#source.leased.message.headers;
  }

  get values(): Record<string, unknown> {
    this.#values ??= Object.create(this.#base) as Record<string, unknown>;
    return this.#values;
  }

  writeResult(result: unknown): Promise<void> {
    return unwatched(this.#writeResult(result));
  }

  progress(value: unknown): Promise<void> {
    return unwatched(this.#writeProgress(value));
  }

  /** What a console prints. The signal is left out: reading it makes it. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ taskId: this.taskId, queue: this.queue, retryCount: this.retryCount, maxRetry: this.maxRetry },
      ...{ deadlineMs: this.deadlineMs, leaseEpoch: this.leaseEpoch, headers: printFilled(this.headers) },
    }));
  }

  async #writeResult(result: unknown): Promise<void> {
    await this.#broker.writeResult(this.#source.leased, encodePayload(result));
  }

  async #writeProgress(value: unknown): Promise<void> {
    if (value instanceof Uint8Array) throw wrongValue('value', 'something that JSON can say', value);
    await this.#broker.writeProgress(this.#source.leased, Buffer.from(encodePayload(value)).toString());
  }
}

/** A handler whose run was given up may be told so when it does not listen any more: that must not end the process. */
function unwatched(written: Promise<void>): Promise<void> {
  written.catch(() => undefined);
  return written;
}
