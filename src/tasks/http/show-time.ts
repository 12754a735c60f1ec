/** What Go shows in the place of a time that is not set. */
export const GO_ZERO_TIME = '0001-01-01T00:00:00Z';

/** A time by RFC 3339, in UTC; another text if there is none. */
export function showTime(time: Date | undefined, otherwise = ''): string {
  return time === undefined || Number.isNaN(time.getTime()) ? otherwise : time.toISOString();
}
