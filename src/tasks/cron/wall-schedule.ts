import { Cron } from 'croner';
import { DAY_MS } from '../../core/units.ts';
import type { CronFields } from './cron-fields.ts';
import type { TimeZone } from './time-zone.ts';

/**
 * Computes the ticks of five fields in a time zone.
 *
 * HOW. The fields are matched on a calendar without zones (croner, in UTC), so a match is a local time; which timestamp it has is
 * computed here, from one change of the clocks to the next:
 *
 *      UTC       ───────────────┬───────────────────────►     clocks go forward: 2:30 does not exist, and has no tick
 *      local     … 1:58  1:59   │ 3:00  3:01 …
 *
 *      UTC       ───────────────┬───────────────────────►     clocks go back: 2:30 exists twice
 *      local     … 2:58  2:59   │ 2:00  2:01 …
 *
 * A time that exists twice has a tick at the first time only, if the hour is given (`30 2 * * *`): a nightly task runs once. If the
 * hour is `*` (`0/5 * * * *`), it has ticks at both times: otherwise there would be none for an hour.
 *
 * WHY not croner's own zones: it runs a skipped time as soon as the clocks have gone forward, and treats `30 2,14 * * *` and
 * `30 2 * * *` differently.
 */
export class WallSchedule {
  readonly #calendar: Cron;
  readonly #zone: TimeZone;
  readonly #runsOnce: boolean;

  constructor(fields: CronFields, zone: TimeZone) {
    this.#calendar = new Cron(fields.text, { mode: '5-part', utcOffset: 0 });
    this.#zone = zone;
    this.#runsOnce = !fields.isEveryHour;
  }

  next(afterMs: number): number | undefined {
    let atMs = this.#nextMoment(Math.floor(afterMs));
    while (this.#runsOnce && atMs !== undefined && this.#isSecondTime(atMs)) atMs = this.#nextMoment(atMs);
    return atMs;
  }

  #nextMoment(afterMs: number): number | undefined {
    for (let fromMs = afterMs + 1; ;) {
      const offset = this.#zone.offsetAt(fromMs);
      const wallMs = this.#nextOnWall(fromMs - 1 + offset);
      if (wallMs === undefined) return undefined;
      const atMs = wallMs - offset;
      const untilMs = fromMs + DAY_MS;
      const changeMs = this.#zone.changeIn(fromMs, untilMs);
      if (atMs < (changeMs ?? untilMs)) return atMs;
      // No tick until then. A later time may have another offset, but none is more than a day: continue a day before it.
      fromMs = changeMs ?? Math.max(untilMs, wallMs - DAY_MS);
    }
  }

  /** Croner ends in the year 3000, after some milliseconds, if there is no such day. */
  #nextOnWall(afterMs: number): number | undefined {
    return this.#calendar.nextRun(new Date(afterMs))?.getTime();
  }

  /** Whether the local time of `atMs` existed before. */
  #isSecondTime(atMs: number): boolean {
    const offset = this.#zone.offsetAt(atMs);
    const before = this.#zone.offsetAt(atMs - DAY_MS);
    return before > offset && this.#zone.offsetAt(atMs + offset - before) === before;
  }
}
