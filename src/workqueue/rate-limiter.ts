import { requireMethods } from '../core/validate.ts';

/**
 * Says how long an item has to wait before it is tried again.
 *
 * A queue with `keyOf` asks by the key, not by the item.
 */
export interface RateLimiter<T> {
  /** Milliseconds until the item may be tried: finite, 0 or more. Each call counts as one failure, or takes a slot. */
  when(item: T): number;
  /** The item has succeeded, or was given up: its failures are forgotten. */
  forget(item: T): void;
  /** How often the item has failed since it was last forgotten. */
  numRequeues(item: T): number;
}

const METHODS: readonly (keyof RateLimiter<unknown>)[] = ['when', 'forget', 'numRequeues'];

export function requireLimiter(argument: string, value: unknown): void {
  requireMethods(argument, 'a RateLimiter with when, forget and numRequeues', METHODS, value);
}

/** The longest delay that leaves a limiter, in milliseconds: 285 000 years, which a timer can still add up. */
const LONGEST_MS = Number.MAX_SAFE_INTEGER;

/** Returns a valid delay for what a limiter returned, which may be an overflow or a user's mistake. */
export function cleanDelay(delayMs: number): number {
  if (!(delayMs > 0)) return 0; // NaN too
  return Math.min(delayMs, LONGEST_MS);
}
