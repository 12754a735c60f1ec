import { HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { EnqueueEvent } from '../broker.ts';

/** Events of one schedule entry; asynq's. */
const EVENTS_KEPT = 1_000;

/** Schedule entries whose events are kept; one more replaces the entry that has been quiet for longest. */
const ENTRIES_KEPT = 1_000;

/** What schedule entries have enqueued, the oldest first. The entries are in order of their latest event. */
export class EnqueueEvents {
  readonly #byEntry = new Map<string, EnqueueEvent[]>();

  of(entryId: string): readonly EnqueueEvent[] {
    return this.#byEntry.get(entryId) ?? [];
  }

  add(entryId: string, event: EnqueueEvent): void {
    const events = this.#byEntry.get(entryId) ?? [];
    events.push(event);
    if (events.length > EVENTS_KEPT) events.shift();
    this.replace(entryId, events);
    for (const [quietest, { length, [length - 1]: last }] of this.#byEntry) {
      const isOld = last !== undefined && last.atMs < event.atMs - HISTORY_KEPT_MS;
      if (!isOld && this.#byEntry.size <= ENTRIES_KEPT) return;
      this.#byEntry.delete(quietest);
    }
  }

  /** Replaces the events of an entry, which becomes the last one. */
  replace(entryId: string, events: EnqueueEvent[]): void {
    this.#byEntry.delete(entryId);
    this.#byEntry.set(entryId, events);
  }

  [Symbol.iterator](): Iterator<readonly [entryId: string, events: readonly EnqueueEvent[]]> {
    return this.#byEntry[Symbol.iterator]();
  }
}
