import { MINUTE_MS, SECOND_MS } from '../core/units.ts';

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const WRITTEN =
  /^(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat) (\w{3}) [ \d](\d) (\d\d):(\d\d):(\d\d) (UTC|GMT|Z|[+-]\d\d(?:\d\d)?) (\d{4,6})$/;

/** A moment as Go's `time.UnixDate` layout writes it, in UTC: `Sat Nov 21 13:57:21 UTC 2026`. Whole seconds, rounded up. */
export function formatUnixDate(atMs: number): string {
  const date = new Date(Math.ceil(atMs / SECOND_MS) * SECOND_MS);
  const day = DAYS[date.getUTCDay()] ?? '';
  const month = MONTHS[date.getUTCMonth()] ?? '';
  const dayOfMonth = String(date.getUTCDate()).padStart(2, ' ');
  const time = date.toISOString().slice(-'13:57:21.000Z'.length, -'.000Z'.length);
  return `${day} ${month} ${dayOfMonth} ${time} UTC ${date.getUTCFullYear()}`;
}

/** @returns undefined if it is none, or its time zone is an abbreviation that may mean several: `CST`. */
export function parseUnixDate(text: string): number | undefined {
  const found = WRITTEN.exec(text);
  if (found === null) return undefined;
  const [, monthName = '', , hour, minute, second, zone = '', year] = found;
  const month = MONTHS.indexOf(monthName);
  const dayOfMonth = Number(text.slice(8, 10));
  if (month === -1) return undefined;
  const wallMs = Date.UTC(Number(year), month, dayOfMonth, Number(hour), Number(minute), Number(second));
  return wallMs - offsetOf(zone);
}

function offsetOf(zone: string): number {
  const [, sign, hours, minutes = '0'] = /^([+-])(\d\d)(\d\d)?$/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  const ms = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
  return sign === '-' ? -ms : ms;
}
