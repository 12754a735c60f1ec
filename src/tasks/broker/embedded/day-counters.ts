import { DAY_MS, utcDay } from '../../../core/units.ts';
/** asynq's. */
const DAYS_KEPT = 90;

/** What was processed on one day, by UTC. */
export interface DayCount {
  processed: number;
  failed: number;
}

const NOTHING: Readonly<DayCount> = Object.freeze({ processed: 0, failed: 0 });

/** Counts what a queue has processed, by day and in all. Counting is O(1); days beyond the last 90 are forgotten. */
export class DayCounters {
  processedTotal = 0;
  failedTotal = 0;
  readonly #days = new Map<number, DayCount>();
  #today = NaN;
  #todayCount: DayCount = NOTHING;

  count(wallNowMs: number, hasFailed: boolean): void {
    const today = this.#countOfDay(wallNowMs);
    today.processed++;
    this.processedTotal++;
    if (!hasFailed) return;
    today.failed++;
    this.failedTotal++;
  }

  /** Of the day that is `daysAgo` before today. */
  of(wallNowMs: number, daysAgo: number): Readonly<DayCount> {
    return this.#days.get(dayOf(wallNowMs) - daysAgo) ?? NOTHING;
  }

  /** Days that are kept. */
  get size(): number {
    return this.#days.size;
  }

  #countOfDay(wallNowMs: number): DayCount {
    const day = dayOf(wallNowMs);
    if (day === this.#today) return this.#todayCount;
    const count = this.#days.get(day) ?? { processed: 0, failed: 0 };
    this.#days.set(day, count);
    this.#today = day;
    this.#todayCount = count;
    for (const old of this.#days.keys()) if (old <= day - DAYS_KEPT) this.#days.delete(old);
    return count;
  }
}

/** Returns the day that is `daysAgo` before today, as `2026-11-21`. */
export function dateOf(wallNowMs: number, daysAgo: number): string {
  return utcDay(wallNowMs - daysAgo * DAY_MS);
}

function dayOf(wallMs: number): number {
  return Math.floor(wallMs / DAY_MS);
}
