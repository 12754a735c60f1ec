/*
 * Spans of time in milliseconds, and dates by UTC. One place, so that no file has to be checked for a missing zero.
 */

export const NANOS_PER_MS = 1_000_000;
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const UNITS = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['m', MINUTE_MS],
  ['s', SECOND_MS],
] as const;

/** Returns the two largest units of a span, such as one day and two hours; the smaller one only if it is not 0. A span below a second has none. */
export function largestUnits(ms: number): readonly (readonly [count: number, unit: 'd' | 'h' | 'm' | 's'])[] {
  const at = UNITS.findIndex(([, step]) => ms >= step);
  let restMs = ms;
  const counts = UNITS.slice(at < 0 ? UNITS.length : at, at + 2).map(([unit, step]) => {
    const count = Math.floor(restMs / step);
    restMs -= count * step;
    return [count, unit] as const;
  });
  return counts.filter(([count]) => count > 0);
}

/** The last time that a `Date` can hold, in milliseconds since the epoch: in the year 275760. */
export const LAST_DATE_MS = 8_640_000_000_000_000;

/** Returns the day of a time by UTC, as `2026-11-21`. For the years 0 to 9999. */
export function utcDay(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 'YYYY-MM-DD'.length);
}
