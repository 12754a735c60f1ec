import { wrongValue } from '../../core/errors.ts';
import { SECOND_MS } from '../../core/units.ts';

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
    if (this.#format === undefined) return 0;
    const wholeMs = Math.floor(atMs / SECOND_MS) * SECOND_MS;
    return wallOf(this.#format, wholeMs) - wholeMs;
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
  return new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}

/** Returns the local time as if it were UTC. */
function wallOf(format: Intl.DateTimeFormat, atMs: number): number {
  const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of format.formatToParts(atMs)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
