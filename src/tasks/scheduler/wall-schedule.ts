import { Cron } from 'croner';
import { wrongValue } from '../../core/errors.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/units.ts';

/** Five fields as numbers and commas, or `*`. */
export interface CronFields {
  readonly text: string;
  /** Whether the hour is `*`: then the spec means every hour, also when the clocks are changed. */
  readonly isEveryHour: boolean;
}

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
    let atMs = this.#nextTime(Math.floor(afterMs));
    while (this.#runsOnce && atMs !== undefined && this.#isSecondTime(atMs)) atMs = this.#nextTime(atMs);
    return atMs;
  }

  #nextTime(afterMs: number): number | undefined {
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

  /** Returns the next match of the fields. Croner ends in the year 3000, after some milliseconds, if there is none. */
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

/** The offsets of a time zone, from the host's table of time zones. */
export class TimeZone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat | undefined;

  /** @throws TypeError `ERR_INVALID_ARG_VALUE` - the host has no such zone. */
  constructor(argument: string, name: string) {
    this.name = name;
    try {
      this.#format = name === 'UTC' ? undefined : formatOf(name);
    } catch {
      throw wrongValue(argument, "a time zone, such as 'UTC' or 'Europe/Berlin'", name);
    }
  }

  /** Returns how far local time is ahead of UTC, in milliseconds. */
  offsetAt(atMs: number): number {
    return this.#format === undefined ? 0 : offsetIn(this.#format.format(atMs));
  }

  /**
   * Returns when the offset changes, `fromMs` excluded, if it is not the same at both ends of a span. Two changes in it that cancel
   * each other are not found: no zone has had that within a day.
   */
  changeIn(fromMs: number, untilMs: number): number | undefined {
    const before = this.offsetAt(fromMs);
    if (this.offsetAt(untilMs) === before) return undefined;
    let same = Math.floor(fromMs / SECOND_MS);
    let changed = Math.ceil(untilMs / SECOND_MS);
    while (changed - same > 1) {
      const middle = Math.floor((same + changed) / 2);
      if (this.offsetAt(middle * SECOND_MS) === before) same = middle;
      else changed = middle;
    }
    return changed * SECOND_MS;
  }
}

/**
 * Formats by names of zones, in lower case because the host ignores the case: at most as many as there are zones. Each takes tens of
 * kilobytes, and thousands of entries have the same few zones.
 */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(name: string): Intl.DateTimeFormat {
  const key = name.toLowerCase();
  const format = formats.get(key) ?? makeFormat(name);
  formats.set(key, format);
  return format;
}

function makeFormat(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', { timeZone, numberingSystem: 'latn', timeZoneName: 'longOffset' });
}

/** Reads the offset at the end of a formatted date: `GMT`, `GMT+05:30`, and with seconds before zones were standardized. */
function offsetIn(text: string): number {
  const [, sign = '', hours = '0', minutes = '0', seconds = '0'] = OFFSET.exec(text) ?? [];
  const ms = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS + Number(seconds) * SECOND_MS;
  return sign === '-' ? -ms : ms;
}

const OFFSET = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/;
