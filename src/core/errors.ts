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
  /** The timer was closed: nothing can be added to it, and what slept in it is rejected. */
  | 'ERR_TIMER_CLOSED'
  /** A clock returned something that is not a time: `NaN`, infinity, a negative number, a string. */
  | 'ERR_CLOCK_INVALID'
  /** Virtual time cannot advance, because something re-arms itself without a delay for ever. */
  | 'ERR_CLOCK_STALLED'
  /** The purgatory was closed: nothing can be watched in it, and who waited in it is rejected. */
  | 'ERR_PURGATORY_CLOSED'
  /** An operation is watched already, here or elsewhere, and can only be in one place. */
  | 'ERR_ALREADY_WATCHED'
  /** What was waited for did not happen in time. */
  | 'ERR_OPERATION_EXPIRED'
  /** What was waited for was cancelled with its key. */
  | 'ERR_OPERATION_CANCELLED'
  /** Checks trigger one another for ever without completing anything. */
  | 'ERR_CHECK_ENDLESS'
  /** An item was said to be done that nobody holds. */
  | 'ERR_NOT_PROCESSING'
  /** A queue of limited size has no room for another item. */
  | 'ERR_QUEUE_FULL'
  /** The queue was shut down: it takes no more items. */
  | 'ERR_QUEUE_SHUT_DOWN'
  /** The queue on disk is open already: in this process or in another one. */
  | 'ERR_QUEUE_LOCKED'
  /** The queue on disk is closed. */
  | 'ERR_QUEUE_CLOSED'
  /** A message is shorter or longer than the queue takes. */
  | 'ERR_MESSAGE_SIZE'
  /** The disk, or the file system, has refused; `cause` is its error. */
  | 'ERR_QUEUE_IO'
  /** Another task holds the lock: one like it waits or runs. */
  | 'ERR_TASK_DUPLICATE'
  /** The queue has a task of that id, in whatever state. */
  | 'ERR_TASK_ID_CONFLICT'
  /** The queue has no task of that id. */
  | 'ERR_TASK_NOT_FOUND'
  /** The task's state does not allow what was asked for. */
  | 'ERR_TASK_STATE'
  /** The task that was waited for is archived: it failed for the last time, or somebody has archived it. */
  | 'ERR_TASK_ARCHIVED'
  /** The payload is not what the task's schema asks for; or it, or the result, is read as JSON and is not. */
  | 'ERR_TASK_PAYLOAD'
  /** A run took longer than its timeout or deadline. */
  | 'ERR_TASK_TIMEOUT'
  /** A run was cancelled from outside. */
  | 'ERR_TASK_CANCELLED'
  /** The lease of a run is over, and somebody else may have the task. */
  | 'ERR_LEASE_LOST'
  /** No handler is registered for the task's type. */
  | 'ERR_HANDLER_NOT_FOUND'
  /** There is no queue of that name. */
  | 'ERR_QUEUE_NOT_FOUND'
  /** A queue that is to be removed has tasks. */
  | 'ERR_QUEUE_NOT_EMPTY'
  /** The queue is paused already, or is not. */
  | 'ERR_QUEUE_STATE'
  /** The broker was closed. */
  | 'ERR_BROKER_CLOSED'
  /** The broker cannot be reached, or has not answered: what was asked for may have happened. */
  | 'ERR_BROKER_UNAVAILABLE'
  /** What a broker keeps is not what it should be, is cut off, or cannot be said in its format; `cause` tells why. */
  | 'ERR_WIRE_MESSAGE'
  /** The client was closed. */
  | 'ERR_CLIENT_CLOSED'
  /** The inspector was closed: nothing can be waited for with it. */
  | 'ERR_INSPECTOR_CLOSED'
  /** The server shuts down, or has: a run was interrupted by it, or somebody wanted to start it again. */
  | 'ERR_SERVER_CLOSED'
  /** The server runs already, or does not yet. */
  | 'ERR_SERVER_STATE'
  /** The scheduler runs already, or was shut down. */
  | 'ERR_SCHEDULER_STATE'
  /** There is no schedule entry of that id, or there is one already. */
  | 'ERR_SCHEDULE_ENTRY'
  /** The tick of a schedule is ahead of the broker's time: the scheduler's clock is wrong. */
  | 'ERR_TICK_EARLY'
  /** The registry has a metric of that name already, of another type, with other labels or with other buckets. */
  | 'ERR_METRIC_CONFLICT'
  /** What is measured threw when it was read, or gave something that is no number. */
  | 'ERR_METRIC_READ';

/** What an {@link EscapementError} is made from besides its message. */
export interface EscapementErrorOptions {
  /** The operation that failed, as a user would write it: `SystemTimer.add`. */
  readonly op?: string;
  /** The error underneath, when there is one. */
  readonly cause?: unknown;
}

const BRAND = Symbol.for('escapement.error');

/**
 * The one error class of the package: an operation that was called correctly and could not be carried out.
 * Wrong arguments are a `TypeError` or `RangeError` with a `code` instead (see {@link ArgumentError}).
 *
 * `instanceof` looks at a brand, so it also holds for an error made by another loaded copy of the package
 * (the ES module and the CommonJS build in one process).
 */
export class EscapementError extends Error {
  /** Stable, for programs; the message is for people and may change. */
  readonly code: EscapementErrorCode;
  /** The operation that failed, if it is known. */
  declare readonly op?: string;

  constructor(code: EscapementErrorCode, message: string, options: EscapementErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    if (options.op !== undefined) this.op = options.op;
  }

  static {
    Object.defineProperty(this.prototype, 'name', {
      value: 'EscapementError',
      configurable: true,
      writable: true,
    });
    Object.defineProperty(this.prototype, BRAND, { value: true });
  }

  /** Whether a value is an error of this class, of this or another loaded copy of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // A subclass inherits this method, and asks about itself rather than about the brand.
    if (this !== EscapementError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && BRAND in value;
  }

  /**
   * Returns what `JSON.stringify` writes: `name`, `code`, `message`, and `op` and `cause` if there are any. The stack is left out:
   * it names files of the machine, and JSON is often an answer to a client. Loggers take it from the error itself.
   */
  toJSON(): Record<string, unknown> {
    const { name, code, message, op, cause } = this;
    return {
      name,
      code,
      message,
      ...(op === undefined ? {} : { op }),
      ...(cause === undefined ? {} : { cause: cause instanceof Error ? describeCause(cause) : cause }),
    };
  }
}

/** `JSON.stringify` of a plain `Error` is `{}`, which would lose the cause from a log line. */
function describeCause(cause: Error): unknown {
  if (cause instanceof EscapementError) return cause.toJSON();
  return { name: cause.name, message: cause.message };
}

/** A `TypeError` or `RangeError` about an argument: its `code` tells programs which. */
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

/** Longest piece of a received string that a message repeats, in characters. */
const SHOWN_CHARACTERS = 60;

export function cutShort(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** The value as a person would name it: `NaN`, `'10'` (a string), `[function retry]`, `[object Map]`. */
function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${cutShort(value)}' (a string)`;
    case 'bigint':
      return `${String(value)}n (a bigint)`;
    case 'function':
      return `[function ${value.name || 'anonymous'}]`;
    case 'object':
      return value === null ? 'null' : Object.prototype.toString.call(value);
    case 'number':
    case 'boolean':
    case 'undefined':
    case 'symbol':
      return String(value);
  }
}
