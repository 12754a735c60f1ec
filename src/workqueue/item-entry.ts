import type { KeyEntry } from '../core/key-table.ts';

/**
 * The phase of a key.
 *
 *      phase        add                  taken        done
 *      IDLE         → QUEUED             –            –
 *      QUEUED       · (newest object)    → HELD       –
 *      HELD         → HELD_AGAIN         –            → IDLE
 *      HELD_AGAIN   · (newest object)    –            → QUEUED, at the back
 *
 * client-go keeps two sets and a slice for this (dirty, processing, queue); one phase cannot contradict itself.
 */
export type Phase = typeof IDLE | typeof QUEUED | typeof HELD | typeof HELD_AGAIN;
export const IDLE = 0;
export const QUEUED = 1;
export const HELD = 2;
export const HELD_AGAIN = 3;

/** The state of one key. */
export class ItemEntry<T> implements KeyEntry {
  readonly key: unknown;
  /** See KeyEntry. */
  slot = 0;
  /** The newest object that was added, which is taken next; undefined while idle. */
  item: T | undefined;
  phase: Phase = IDLE;
  /** The number of its latest lease, so that a holder cannot end the lease of the next; 0 from when it is queued at the back. */
  lease = 0;

  constructor(key: unknown) {
    this.key = key;
  }

  get isIdle(): boolean {
    return this.phase === IDLE;
  }

  get isHeld(): boolean {
    return this.phase >= HELD;
  }
}
