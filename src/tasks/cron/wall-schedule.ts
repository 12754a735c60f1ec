import { Cron } from 'croner';
import { DAY_MS } from '../../core/units.ts';
import type { CronFields } from './cron-fields.ts';
import type { TimeZone } from './time-zone.ts';

/**
 * When five fields come to pass in a time zone.
 *
 * HOW. The fields are matched on a calendar that knows no zones (croner, in UTC, as a calculator), so a match is a time on
 * the wall; which moment that is, is worked out here, from one change of the clocks to the next:
 *
 *      moments   ───────────────┬───────────────────────►     clocks go forward: 2:30 is not there, and does not run
 *      wall      … 1:58  1:59   │ 3:00  3:01 …
 *
 *      moments   ───────────────┬───────────────────────►     clocks go back: 2:30 is there twice
 *      wall      … 2:58  2:59   │ 2:00  2:01 …
 *
 * A time that is there twice runs the first time only, if the hour was chosen (`30 2 * * *`): a nightly task runs once.
 * If the hour was left open (`0/5 * * * *`), it means the passing of time and goes on: once only would be an hour of silence.
 *
 * WHY not croner's own zones: it runs a skipped time as soon as the clocks have gone forward, and takes `30 2,14 * * *` and
 * `30 2 * * *` for things of different kinds.
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
      // Nothing until then. Far away is another offset, but none is more than a day: go near, and look again.
      fromMs = changeMs ?? Math.max(untilMs, wallMs - DAY_MS);
    }
  }

  /** Croner gives up in the year 3000, after some milliseconds, when there is no such day. */
  #nextOnWall(afterMs: number): number | undefined {
    return this.#calendar.nextRun(new Date(afterMs))?.getTime();
  }

  /** Whether the clocks have shown that time before. */
  #isSecondTime(atMs: number): boolean {
    const offset = this.#zone.offsetAt(atMs);
    const before = this.#zone.offsetAt(atMs - DAY_MS);
    return before > offset && this.#zone.offsetAt(atMs + offset - before) === before;
  }
}
