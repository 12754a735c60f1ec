/**
 * Where a key stands.
 *
 *      phase        add                  handed out   done
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

/** What a queue knows of one key. */
export class ItemEntry<T> {
  readonly key: unknown;
  /** How often it stands among the keys that became idle: see item-table.ts. */
  places = 0;
  /** What is handed out next: the newest object that was added. Nothing while idle. */
  item: T | undefined;
  phase: Phase = IDLE;
  /**
   * Which hand-out of its queue was the last of this entry, so that a holder cannot end the turn of the next. 0 since
   * it stands at the back of the queue.
   */
  handOut = 0;

  constructor(key: unknown) {
    this.key = key;
    this.item = undefined;
  }

  get isHeld(): boolean {
    return this.phase >= HELD;
  }
}
