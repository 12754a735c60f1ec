import { DAY_MS } from '../../../core/units.ts';
import { EVENTS_KEPT, HISTORY_DAYS, HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { EnqueueEvent } from '../broker.ts';

/* What inspectors read of the past: the runs of each day, and what schedule entries have enqueued. */

interface DayCount {
  processed: number;
  failed: number;
}

const NOTHING: Readonly<DayCount> = Object.freeze({ processed: 0, failed: 0 });

/** Counts of a queue: of each day the number of runs, and of those that failed. */
export interface StoredDays {
  readonly days: readonly (readonly [day: number, processed: number, failed: number])[];
  readonly processedTotal: number;
  readonly failedTotal: number;
}

/** Counts the runs of a queue, by day and in total. Counting is O(1); older days than HISTORY_DAYS are removed. */
export class DayCounters {
  processedTotal = 0;
  failedTotal = 0;
  readonly #days = new Map<number, DayCount>();

  count(wallNowMs: number, hasFailed: boolean): void {
    const today = this.#countOf(dayOf(wallNowMs));
    today.processed++;
    this.processedTotal++;
    if (!hasFailed) return;
    today.failed++;
    this.failedTotal++;
  }

  /** Returns the counts of the day that is `daysAgo` before today. */
  of(wallNowMs: number, daysAgo: number): Readonly<DayCount> {
    return this.#days.get(dayOf(wallNowMs) - daysAgo) ?? NOTHING;
  }

  get size(): number {
    return this.#days.size;
  }

  /** All counts, for {@link DayCounters.restore}. */
  get all(): StoredDays {
    const days = [...this.#days].map(([day, { processed, failed }]) => [day, processed, failed] as const);
    return { days, processedTotal: this.processedTotal, failedTotal: this.failedTotal };
  }

  restore({ days, processedTotal, failedTotal }: StoredDays): void {
    this.processedTotal = processedTotal;
    this.failedTotal = failedTotal;
    this.#days.clear();
    for (const [day, processed, failed] of days) this.#days.set(day, { processed, failed });
  }

  #countOf(day: number): DayCount {
    let count = this.#days.get(day);
    if (count === undefined) {
      count = { processed: 0, failed: 0 };
      this.#days.set(day, count);
      for (const old of this.#days.keys()) if (old <= day - HISTORY_DAYS) this.#days.delete(old);
    }
    return count;
  }
}

function dayOf(wallMs: number): number {
  return Math.floor(wallMs / DAY_MS);
}

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
