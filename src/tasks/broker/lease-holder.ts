import type { LeasedTask } from './broker-types.ts';

/** For whom leases are held. */
export interface LeaseHolderOptions {
  /** Tasks are from these. */
  readonly queues: readonly string[];
  /** How many are held at a time: they have the places 0 … places - 1. */
  readonly places: number;
  /** How long a lease is, in milliseconds. It is renewed six times in that time. */
  readonly leaseMs: number;
  /** Told when it cannot be done, or not any more; and, once each time it begins to fail, when it does not work now. */
  readonly onError: (error: unknown) => void;
}

/**
 * Renews leases whatever the event loop does: a handler that computes for a minute keeps its task. Besides the one who asks
 * for it, who renews them too, and finds out which are lost; so nothing is worse without it.
 */
export interface LeaseHolder {
  /**
   * From now on the lease in that place is renewed, also if nothing of the event loop runs after this call. Takes less than
   * a microsecond. Never throws.
   *
   * @param untilWallMs - when that ends by itself, in wall-clock milliseconds; 0 for never.
   */
  hold(place: number, task: LeasedTask, untilWallMs: number): void;
  /** Not any more: the place is free. */
  release(place: number): void;
  /** Until when the lease in that place was renewed, in wall-clock milliseconds; 0 if it was not. */
  renewedUntilMs(place: number): number;
  /** Renews nothing more. Idempotent. Never rejects. */
  close(): Promise<void>;
}
