import { HOUR_MS, MINUTE_MS, NANOS_PER_MS, SECOND_MS } from '../core/units.ts';

/* Durations, strings and times as Go prints them: asynq's tools show and read these. */

/** The longest duration of Go: 2^63 - 1 ns, about 292 years. */
const MAX_GO_MS = 2 ** 63 / NANOS_PER_MS;
const MAX_GO_TEXT = '2562047h47m16.854775807s';

const UNIT_MS = new Map([
  ['ns', 1 / NANOS_PER_MS],
  ['us', 1e-3],
  ['µs', 1e-3], // U+00B5, the micro sign
  ['μs', 1e-3], // U+03BC, the Greek letter
  ['ms', 1],
  ['s', SECOND_MS],
  ['m', MINUTE_MS],
  ['h', HOUR_MS],
]);

/** The point is between the digits, so that there is one way to split a number: a long one costs O(n). */
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/** Formats a duration as Go does: `1h30m0s`, `1.5s`, `300ms`, `0s`. Precise to 1 ns; at most the longest duration of Go. */
export function formatGoDuration(durationMs: number): string {
  if (durationMs < 0) return `-${formatGoDuration(-durationMs)}`;
  if (durationMs >= MAX_GO_MS) return MAX_GO_TEXT;
  let wholeMs = Math.floor(durationMs);
  let ns = Math.round((durationMs - wholeMs) * NANOS_PER_MS);
  if (ns === NANOS_PER_MS) [wholeMs, ns] = [wholeMs + 1, 0];
  return wholeMs < SECOND_MS ? formatShort(wholeMs * NANOS_PER_MS + ns) : formatLong(wholeMs, ns);
}

/** Parses a duration in milliseconds. Returns undefined if Go's `time.ParseDuration` rejects the text. */
export function parseGoDuration(text: string): number | undefined {
  const isNegative = text.startsWith('-');
  const rest = /^[+-]/.test(text) ? text.slice(1) : text;
  const ms = rest === '0' ? 0 : sumOfParts(rest);
  if (ms === undefined || ms > MAX_GO_MS) return undefined;
  return isNegative && ms > 0 ? -ms : ms;
}

function formatShort(ns: number): string {
  if (ns === 0) return '0s';
  if (ns < 1e3) return `${ns}ns`;
  return ns < NANOS_PER_MS ? `${ns / 1e3}µs` : `${ns / NANOS_PER_MS}ms`;
}

function formatLong(wholeMs: number, ns: number): string {
  const hours = Math.floor(wholeMs / HOUR_MS);
  const minutes = Math.floor((wholeMs % HOUR_MS) / MINUTE_MS);
  const seconds = Math.floor((wholeMs % MINUTE_MS) / SECOND_MS);
  const fraction = String((wholeMs % SECOND_MS) * NANOS_PER_MS + ns).padStart(9, '0');
  const point = `.${fraction}`.replace(/\.?0+$/, '');
  const before = hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m` : '';
  return `${before}${seconds}${point}s`;
}

function sumOfParts(text: string): number | undefined {
  if (text === '') return undefined;
  let ms = 0;
  PART.lastIndex = 0;
  for (let at = 0; at < text.length; at = PART.lastIndex) {
    const part = PART.exec(text);
    if (part === null) return undefined;
    ms += Number(part[1]) * (UNIT_MS.get(part[2] ?? '') ?? NaN);
  }
  // 1.1h is 3960000.0000000005 ms: digits beyond Go's nanoseconds are rounding errors.
  return Number.isInteger(ms) ? ms : Math.round(ms * NANOS_PER_MS) / NANOS_PER_MS;
}

const ESCAPES = new Map([
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
]);

/** What Go prints unescaped: letters, marks, numbers, punctuation, symbols, and U+0020. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Quotes a string as Go's `%q` does. */
export function quoteGoString(text: string): string {
  let quoted = '"';
  for (const character of text) quoted += ESCAPES.get(character) ?? escapeUnprintable(character);
  return `${quoted}"`;
}

function escapeUnprintable(character: string): string {
  if (PRINTABLE.test(character)) return character;
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x20 || code === 0x7f) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x1_0000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

/** Formats a time in Go's layout `time.UnixDate`, in UTC: `Sat Nov 21 13:57:21 UTC 2026`. Rounds up to a whole second. */
export function formatUnixDate(atMs: number): string {
  const date = new Date(Math.ceil(atMs / SECOND_MS) * SECOND_MS);
  const [day = '', dayOfMonth = '', month = '', year = '', time = ''] = date.toUTCString().split(/,? /); // Sat, 21 Nov 2026 13:57:21 GMT
  return `${day} ${month} ${dayOfMonth.replace(/^0/, ' ')} ${time} UTC ${year}`;
}
