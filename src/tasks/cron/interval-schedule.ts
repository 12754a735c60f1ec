import { LAST_DATE_MS, SECOND_MS } from '../../core/units.ts';

/**
 * Every so often: at the multiples of a whole number of seconds since the epoch, by UTC. So whoever schedules it, and
 * whenever they began, they agree on the ticks, also after a restart. (asynq counts from the start of each scheduler.)
 */
export class IntervalSchedule {
  readonly intervalMs: number;

  /** @param durationMs - is rounded down to seconds, and one at least, as in asynq. */
  constructor(durationMs: number) {
    this.intervalMs = Math.max(Math.floor(durationMs / SECOND_MS), 1) * SECOND_MS;
  }

  next(afterMs: number): number | undefined {
    const nextMs = (Math.floor(afterMs / this.intervalMs) + 1) * this.intervalMs;
    return nextMs <= LAST_DATE_MS ? nextMs : undefined;
  }
}
