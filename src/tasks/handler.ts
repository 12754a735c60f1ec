import { inspect } from 'node:util';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType, wrongValue } from '../core/errors.ts';
import { requireFunction, requireObject, requireString } from '../core/validate.ts';
import { requireText } from './argument-checks.ts';
import { isTaskType, type TaskType } from './task.ts';

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

/* Which handler a task has. */

/**
 * Finds the handler of a task by its type: the one that is registered for exactly that type, else the one with the longest pattern
 * that the type begins with.
 *
 * @example
 * ```ts
 * const mux = new ServeMux();
 * mux.use(logged);
 * mux.handle('email:welcome', sendWelcome);
 * mux.handle('image:', resizeOrConvert); // every type that begins with it
 * await server.start(mux);
 * ```
 */
export class ServeMux {
  /** Handlers by pattern, in the order of registration, without middleware. */
  readonly #handlers = new Map<string, Handler>();
  #middleware: readonly Middleware[] = [];
  /** The same with their middleware: wrapped at their first use, and again after `use`. `undefined` is the pattern of other types. */
  readonly #wrapped = new Map<string | undefined, Handler>();
  /** Patterns that other types begin with, the longest first. */
  #prefixes: string[] = [];

  /** The mux as a handler: a server or another mux calls it. */
  readonly handler: Handler = (task, context) => this.#find(task.type)(task, context);

  /**
   * Registers a handler for a type, and for every type that begins with it and has no handler of a longer pattern. With a
   * {@link TaskType}, for exactly that type: `task.data` is the parsed payload, and a task whose payload its schema rejects is
   * archived.
   *
   * @throws TypeError - the pattern is blank or has a handler already, or the handler is not a function or a mux.
   */
  handle<Input, Output>(taskType: TaskType<Input, Output>, handler: Handler<Output>): this;
  handle(pattern: string, handler: Handler | ServeMux): this;
  handle<Output>(target: string | TaskType<unknown, Output>, handler: Handler<Output> | ServeMux): this {
    const taskType = isTaskType(target) ? target : undefined;
    const pattern: unknown = taskType === undefined ? target : taskType.type;
    requireText('pattern', pattern);
    if (this.#handlers.has(pattern))
      throw wrongValue('pattern', 'a pattern that has no handler yet', pattern);
    const called = callable(handler);
    this.#handlers.set(pattern, taskType === undefined ? (called as Handler) : checked(taskType, called));
    if (taskType === undefined)
      this.#prefixes = [...this.#prefixes, pattern].sort((a, b) => b.length - a.length);
    return this;
  }

  /** Wraps every handler in middleware, and also the error if there is no handler; the first middleware is outermost. */
  use(...middleware: readonly Middleware[]): this {
    for (const one of middleware) requireFunction('middleware', one);
    this.#middleware = [...this.#middleware, ...middleware];
    this.#wrapped.clear();
    return this;
  }

  /** Processes a task with its handler. @throws EscapementError `ERR_HANDLER_NOT_FOUND` - there is no handler for its type. */
  async process(context: TaskContext, task: ReceivedTask): Promise<void> {
    requireObject('context', context);
    requireObject('task', task);
    requireString('task.type', task.type);
    await this.handler(task, context);
  }

  /** @internal Printed by a console. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      handler: undefined,
      patterns: [...this.#handlers.keys()],
      middleware: this.#middleware.length,
    }));
  }

  #find(type: string): Handler {
    const exact = this.#wrapped.get(type);
    if (exact !== undefined) return exact;
    const pattern = this.#handlers.has(type)
      ? type
      : this.#prefixes.find((prefix) => type.startsWith(prefix));
    return this.#wrapped.get(pattern) ?? this.#wrap(pattern);
  }

  #wrap(pattern: string | undefined): Handler {
    const handler = pattern === undefined ? undefined : this.#handlers.get(pattern);
    const wrapped = this.#middleware.reduceRight<Handler>((next, middleware) => {
      const outer = middleware(next);
      requireFunction('the result of middleware', outer);
      return outer;
    }, handler ?? notFound);
    this.#wrapped.set(pattern, wrapped);
    return wrapped;
  }
}

export function callable<P>(handler: Handler<P> | ServeMux): Handler<P> {
  if (typeof handler === 'function') return handler;
  const mux = handler as Partial<ServeMux> | null | undefined; // of this or of another loaded copy of the package
  if (typeof mux?.handler === 'function') return mux.handler;
  throw wrongType('handler', 'a function or a ServeMux', handler);
}

const notFound: Handler = ({ type }) => {
  const message = `handler not found for task ${JSON.stringify(type)}`;
  throw new EscapementError('ERR_HANDLER_NOT_FOUND', message, { op: 'ServeMux.process' });
};

/** A payload that is wrong now is wrong at every retry. */
function checked<Output>(taskType: TaskType<unknown, Output>, handler: Handler<Output>): Handler {
  return async (task, context) => {
    let data: Output;
    try {
      data = await taskType.read(task);
    } catch (error) {
      throw new SkipRetry(errorText(error), { cause: error });
    }
    return handler(task.withData(data), context);
  };
}
