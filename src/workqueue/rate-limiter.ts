import { requireMethods } from '../core/validate.ts';

/**
 * Computes the delay of an item before it is processed again.
 *
 * A queue with `keyOf` calls a limiter with the key instead of the item.
 */
export interface RateLimiter<T> {
  /** Returns the delay in milliseconds: finite, 0 or more. Each call counts as one failure, or reserves a slot. */
  when(item: T): number;
  /** Forgets the failures of an item, which succeeded or was dropped. */
  forget(item: T): void;
  /** Returns how often an item has failed since it was last forgotten. */
  numRequeues(item: T): number;
}

const METHODS: readonly (keyof RateLimiter<unknown>)[] = ['when', 'forget', 'numRequeues'];

export function requireLimiter(argument: string, value: unknown): void {
  requireMethods(argument, 'a RateLimiter with when, forget and numRequeues', METHODS, value);
}

/** The longest delay of a limiter, in milliseconds: 285 000 years. A timer can still add it to its clock. */
const LONGEST_MS = Number.MAX_SAFE_INTEGER;

/** Returns a valid delay for the result of a limiter, which may have overflowed or be a mistake of a user's limiter. */
export function cleanDelay(delayMs: number): number {
  if (!(delayMs > 0)) return 0; // NaN too
  return Math.min(delayMs, LONGEST_MS);
}
