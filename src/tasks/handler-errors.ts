import { inspect } from 'node:util';

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
