import { isKindOfError } from './kind-of-error.ts';

const BRAND = Symbol.for('escapement.revoke-task');

/**
 * Thrown by a handler whose task is not wanted any more: the task is removed at once, whatever its retention, and counts as
 * processed. Also as a `cause`.
 */
export class RevokeTask extends Error {
  constructor(message = 'revoke task', options?: ErrorOptions) {
    super(message, options);
    this.name = 'RevokeTask';
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** Whether an error, or one that has caused it, is of this class, of this or another copy of the package. */
  static is(error: unknown): boolean {
    return isKindOfError(error, BRAND);
  }
}
