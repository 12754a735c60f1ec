/** Every `code` an error of this package can carry. */
export type EscapementErrorCode =
  /** An argument has the wrong type (`TypeError`). */
  | 'ERR_INVALID_ARG_TYPE'
  /** An argument has the right type and a value that means nothing (`TypeError`). */
  | 'ERR_INVALID_ARG_VALUE'
  /** A number is outside its range (`RangeError`). */
  | 'ERR_OUT_OF_RANGE'
  /** An options object has a key that is not an option (`TypeError`). */
  | 'ERR_UNKNOWN_OPTION'
  /** A class without a public constructor was called with `new` (`TypeError`). */
  | 'ERR_ILLEGAL_CONSTRUCTOR'
  /** An option needs something that this runtime does not have. */
  | 'ERR_FEATURE_UNAVAILABLE'
  /** The timer is closed: it accepts no tasks, and pending sleeps reject. */
  | 'ERR_TIMER_CLOSED'
  /** The timer has as many pending tasks as it can hold: 66 million. */
  | 'ERR_TIMER_FULL'
  /** A clock returned something that is not a time: `NaN`, infinity, a negative number, a string. */
  | 'ERR_CLOCK_INVALID'
  /** Virtual time cannot advance, because a callback re-arms itself without a delay for ever. */
  | 'ERR_CLOCK_STALLED'
  /** The purgatory is closed: it watches no operations, and pending waits reject. */
  | 'ERR_PURGATORY_CLOSED'
  /** The operation is watched already, here or in another purgatory. */
  | 'ERR_ALREADY_WATCHED'
  /** The awaited condition did not hold in time. */
  | 'ERR_OPERATION_EXPIRED'
  /** The wait was cancelled with its key. */
  | 'ERR_OPERATION_CANCELLED'
  /** Checks trigger one another for ever without completing anything. */
  | 'ERR_CHECK_ENDLESS'
  /** `done()` was called for an item that is not being processed. */
  | 'ERR_NOT_PROCESSING'
  /** The queue has reached its maximum size. */
  | 'ERR_QUEUE_FULL'
  /** The queue is shut down: it accepts no items. */
  | 'ERR_QUEUE_SHUT_DOWN'
  /** The disk queue is open already, in this process or in another one. */
  | 'ERR_QUEUE_LOCKED'
  /** The disk queue is closed. */
  | 'ERR_QUEUE_CLOSED'
  /** The message is shorter or longer than the queue allows. */
  | 'ERR_MESSAGE_SIZE'
  /** A file operation failed; `cause` is the error of the file system. */
  | 'ERR_QUEUE_IO'
  /** The unique lock is held by a duplicate of the task. */
  | 'ERR_TASK_DUPLICATE'
  /** The queue has a task with this id, in any state. */
  | 'ERR_TASK_ID_CONFLICT'
  /** The queue has no task with this id. */
  | 'ERR_TASK_NOT_FOUND'
  /** The state of the task does not allow the operation. */
  | 'ERR_TASK_STATE'
  /** The awaited task is archived: its last attempt failed, or it was archived by hand. */
  | 'ERR_TASK_ARCHIVED'
  /** The payload does not match the schema of the task type, or a payload or result is not valid JSON. */
  | 'ERR_TASK_PAYLOAD'
  /** A run took longer than its timeout or deadline. */
  | 'ERR_TASK_TIMEOUT'
  /** The run was cancelled by `cancelProcessing`. */
  | 'ERR_TASK_CANCELLED'
  /** The lease of the run has expired: another worker may have the task. */
  | 'ERR_LEASE_LOST'
  /** No handler is registered for the task's type. */
  | 'ERR_HANDLER_NOT_FOUND'
  /** There is no queue with this name. */
  | 'ERR_QUEUE_NOT_FOUND'
  /** The queue cannot be removed, because it has tasks. */
  | 'ERR_QUEUE_NOT_EMPTY'
  /** The queue is paused already, or is not paused. */
  | 'ERR_QUEUE_STATE'
  /** The broker is closed. */
  | 'ERR_BROKER_CLOSED'
  /** The folder has a broker that is open. */
  | 'ERR_BROKER_LOCKED'
  /** The broker cannot be reached or has not replied: the operation may have taken effect. */
  | 'ERR_BROKER_UNAVAILABLE'
  /** The server of the broker refuses the request: it is not authorized or too large, or there is no API of tasks. */
  | 'ERR_BROKER_REFUSED'
  /** Stored data cannot be decoded, or a value cannot be encoded in the format of the broker; `cause` is the reason. */
  | 'ERR_WIRE_MESSAGE'
  /** The client is closed. */
  | 'ERR_CLIENT_CLOSED'
  /** The inspector is closed: pending waits reject. */
  | 'ERR_INSPECTOR_CLOSED'
  /** The server is shutting down or shut down: a run was interrupted, or `start` was called again. */
  | 'ERR_SERVER_CLOSED'
  /** The server is running already, or is not running yet. */
  | 'ERR_SERVER_STATE'
  /** The scheduler is running already, or is shut down. */
  | 'ERR_SCHEDULER_STATE'
  /** There is no schedule entry with this id, or there is one already. */
  | 'ERR_SCHEDULE_ENTRY'
  /** The tick of a schedule is ahead of the time of the broker: the clock of the scheduler is wrong. */
  | 'ERR_TICK_EARLY'
  /** The registry has a metric with this name and another type, other labels or other buckets. */
  | 'ERR_METRIC_CONFLICT'
  /** Reading a metric threw, or returned a value that is not a number. */
  | 'ERR_METRIC_READ';

/** Optional properties of an {@link EscapementError}. */
export interface EscapementErrorOptions {
  /** The operation that failed, as a user would write it: `SystemTimer.add`. */
  readonly op?: string | undefined;
  /** The error that caused this one, if there is one. */
  readonly cause?: unknown;
}

const BRAND = Symbol.for('escapement.error');

/**
 * The error class of the package: an operation was called correctly and failed.
 * Wrong arguments are a `TypeError` or `RangeError` with a `code` instead (see {@link ArgumentError}).
 *
 * `instanceof` checks a brand, so that it also holds for an error of another loaded copy of the package
 * (the ES module and the CommonJS build in one process).
 */
export class EscapementError extends Error {
  /** Stable, for programs; the message is for people and may change. */
  readonly code: EscapementErrorCode;
  /** The operation that failed, if it is known. */
  declare readonly op?: string;
  /** The error that caused this one, if there is one. The `lib` of ES2021 does not have it. */
  declare cause?: unknown;

  constructor(code: EscapementErrorCode, message: string, options: EscapementErrorOptions = {}) {
    super(message, options); // which reads the cause, if there is one
    this.code = code;
    if (options.op !== undefined) this.op = options.op;
  }

  static {
    Object.defineProperties(this.prototype, {
      name: { value: 'EscapementError', configurable: true, writable: true },
      [BRAND]: { value: true },
    });
  }

  /** Whether a value is an error of this class, of this or another loaded copy of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // A subclass inherits this method, and must not accept every error with the brand.
    if (this !== EscapementError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return (value as Readonly<Record<symbol, unknown>> | null | undefined)?.[BRAND] === true;
  }

  /**
   * Returns what `JSON.stringify` writes: `name`, `code`, `message`, and `op` and `cause` if there are any. The stack is left out:
   * it names files of the machine, and JSON is often an answer to a client. Loggers take it from the error itself.
   */
  toJSON(): Record<string, unknown> {
    return describe(this, []) as Record<string, unknown>;
  }
}

/** Whether a value is an error of the package with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly EscapementErrorCode[]): error is EscapementError {
  return error instanceof EscapementError && codes.includes(error.code);
}

/** Whether it is an error of the host. No instanceof: under Jest, its errors are of another realm than those of the program. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return typeof (error as { readonly syscall?: unknown } | null | undefined)?.syscall === 'string';
}

/**
 * `JSON.stringify` of a plain `Error` is `{}`, which would lose the cause from a log line.
 *
 * @param effects - the errors that it caused, which it may itself have as its cause: a circle is cut.
 */
function describe(error: unknown, effects: readonly unknown[]): unknown {
  if (effects.includes(error)) return undefined;
  if (!(error instanceof Error)) return error;
  const { name, code, message, op, cause } = error as EscapementError;
  if (!(error instanceof EscapementError)) return { name, message };
  return { name, code, message, op, cause: describe(cause, [...effects, error]) };
}

/** A `TypeError` or `RangeError` for an argument, with a `code` for programs. */
export type ArgumentError = (TypeError | RangeError) & {
  /** Stable, for programs. */
  readonly code: EscapementErrorCode;
};

/** A number outside its range: `RangeError` with code `ERR_OUT_OF_RANGE`. */
export function outOfRange(argument: string, requirement: string, value: unknown): ArgumentError {
  return withCode(new RangeError(explain(argument, requirement, value)), 'ERR_OUT_OF_RANGE');
}

/** An argument of the wrong type: `TypeError` with code `ERR_INVALID_ARG_TYPE`. */
export function wrongType(argument: string, requirement: string, value: unknown): ArgumentError {
  return withCode(new TypeError(explain(argument, requirement, value)), 'ERR_INVALID_ARG_TYPE');
}

/** An argument outside its set of values: `TypeError` with code `ERR_INVALID_ARG_VALUE`. */
export function wrongValue(argument: string, requirement: string, value: unknown): ArgumentError {
  return withCode(new TypeError(explain(argument, requirement, value)), 'ERR_INVALID_ARG_VALUE');
}

/** A class that a function makes, because that takes time: `TypeError` with code `ERR_ILLEGAL_CONSTRUCTOR`. */
export function illegalConstructor(name: string, instead: string): ArgumentError {
  const message = `${name} has no public constructor. Use ${instead}`;
  return withCode(new TypeError(message), 'ERR_ILLEGAL_CONSTRUCTOR');
}

export function withCode(error: TypeError | RangeError, code: EscapementErrorCode): ArgumentError {
  return Object.assign(error, { code });
}

function explain(argument: string, requirement: string, value: unknown): string {
  return `${argument} must be ${requirement}. Received ${show(value)}`;
}

/** Formats a key for a message. A key may be an object that cannot be converted to a string. */
export function nameOfKey(key: unknown): string {
  const isPlain = ['string', 'number', 'bigint', 'symbol'].includes(typeof key);
  return isPlain ? `key ${String(key)}` : 'an object as key';
}

/** Longest piece of a received string that a message repeats, in characters. */
const SHOWN_CHARACTERS = 60;

export function cutShort(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** The value as a person would name it: `NaN`, `'10'` (a string), `[function retry]`, `[object Map]`. */
function show(value: unknown): string {
  if (typeof value === 'string') return `'${cutShort(value)}' (a string)`;
  if (typeof value === 'bigint') return `${value}n (a bigint)`;
  if (typeof value === 'function') return `[function ${value.name || 'anonymous'}]`;
  if (typeof value === 'object' && value !== null) return Object.prototype.toString.call(value);
  return String(value);
}

/**
 * Returns a URL for messages, without the credentials in it. Everything before the last `@` may be part of a password that was not
 * encoded, and some clients accept a password in the query.
 */
export function withoutCredentials(url: string | URL): string {
  return String(url)
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/isu, '$1***@')
    .replace(/(password=)[^&#]*/giu, '$1***');
}
