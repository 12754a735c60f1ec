import { isKindOfError } from './kind-of-error.ts';

const BRAND = Symbol.for('escapement.skip-retry');

/** Thrown by a handler whose task cannot succeed: it is archived at once, whatever retries are left. Also as a `cause`. */
export class SkipRetry extends Error {
  constructor(message = 'skip retry for the task', options?: ErrorOptions) {
    super(message, options);
    this.name = 'SkipRetry';
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** Whether an error, or one that has caused it, is of this class, of this or another copy of the package. */
  static is(error: unknown): boolean {
    return isKindOfError(error, BRAND);
  }
}
