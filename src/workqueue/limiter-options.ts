import { outOfRange } from '../core/errors.ts';
import { requireFiniteNumber, requireIntegerAtLeast, requireMethods } from '../core/validate.ts';
import type { RateLimiter } from './rate-limiter.ts';

const LIMITER_METHODS: readonly (keyof RateLimiter<unknown>)[] = ['when', 'forget', 'numRequeues'];

export function requireLimiter(argument: string, value: unknown): void {
  requireMethods(argument, 'a RateLimiter with when, forget and numRequeues', LIMITER_METHODS, value);
}

export function requireDelay(argument: string, value: unknown): void {
  requireFiniteNumber(argument, value);
  if (value < 0) throw outOfRange(argument, 'at least 0', value);
}

/** Two, because there are two generations. */
export function requireFailureBound(maxItems: unknown): void {
  if (maxItems !== Infinity) requireIntegerAtLeast('maxItems', 2, maxItems);
}
