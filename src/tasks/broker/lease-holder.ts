import type { LeasedTask } from './broker-types.ts';

/** Options of a {@link LeaseHolder}. */
export interface LeaseHolderOptions {
  /** Queues of the tasks. */
  readonly queues: readonly string[];
  /** How many leases are held at a time, at most: they have the slots 0 … places - 1. */
  readonly places: number;
  /** How long a lease is, in milliseconds. It is renewed six times in that time. */
  readonly leaseMs: number;
  /** Called when renewing is impossible, and once each time it begins to fail. */
  readonly onError: (error: unknown) => void;
}

/**
 * Renews leases even while the event loop is blocked: a handler that computes for a minute keeps its task. The server renews
 * them too, and finds out which are lost, so a server without a holder only lacks that.
 */
export interface LeaseHolder {
  /**
   * From now on the lease in that slot is renewed, even if the event loop is blocked after this call. Takes less than a
   * microsecond. Never throws.
   *
   * @param untilWallMs - when renewing ends, in wall-clock milliseconds; 0 for never.
   */
  hold(place: number, task: LeasedTask, untilWallMs: number): void;
  /** Stops renewing the lease in a slot. */
  release(place: number): void;
  /** Until when the lease in a slot was renewed, in wall-clock milliseconds; 0 if it was not. */
  renewedUntilMs(place: number): number;
  /** Stops renewing. Idempotent. Never rejects. */
  close(): Promise<void>;
}
