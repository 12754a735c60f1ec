import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/units.ts';
const NS_PER_MS = 1e6;

/** The longest that Go can hold: 2^63 - 1 ns, some 292 years. */
const MAX_GO_MS = 2 ** 63 / NS_PER_MS;
const MAX_GO_TEXT = '2562047h47m16.854775807s';

const UNIT_MS = new Map([
  ['ns', 1 / NS_PER_MS],
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

/** A duration as Go writes it: `1h30m0s`, `1.5s`, `300ms`, `0s`. To the nanosecond; longer than Go can hold is the longest. */
export function formatGoDuration(durationMs: number): string {
  if (durationMs < 0) return `-${formatGoDuration(-durationMs)}`;
  if (durationMs >= MAX_GO_MS) return MAX_GO_TEXT;
  let wholeMs = Math.floor(durationMs);
  let ns = Math.round((durationMs - wholeMs) * NS_PER_MS);
  if (ns === NS_PER_MS) [wholeMs, ns] = [wholeMs + 1, 0];
  return wholeMs < SECOND_MS ? formatShort(wholeMs * NS_PER_MS + ns) : formatLong(wholeMs, ns);
}

/** @returns milliseconds; undefined for what Go's `time.ParseDuration` does not take. */
export function parseGoDuration(text: string): number | undefined {
  const isNegative = text.startsWith('-');
  const rest = /^[+-]/.test(text) ? text.slice(1) : text;
  const ms = rest === '0' ? 0 : sumOfParts(rest);
  if (ms === undefined || ms > MAX_GO_MS) return undefined;
  return isNegative && ms > 0 ? -ms : ms;
}

/** Below a second: one number, in the largest unit that leaves something before the point. */
function formatShort(ns: number): string {
  if (ns === 0) return '0s';
  if (ns < 1e3) return `${ns}ns`;
  return ns < NS_PER_MS ? `${ns / 1e3}µs` : `${ns / NS_PER_MS}ms`;
}

function formatLong(wholeMs: number, ns: number): string {
  const hours = Math.floor(wholeMs / HOUR_MS);
  const minutes = Math.floor((wholeMs % HOUR_MS) / MINUTE_MS);
  const seconds = Math.floor((wholeMs % MINUTE_MS) / SECOND_MS);
  const fraction = String((wholeMs % SECOND_MS) * NS_PER_MS + ns).padStart(9, '0');
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
  // 1.1h is 3960000.0000000005 ms: what is finer than Go's nanoseconds is ours.
  return Number.isInteger(ms) ? ms : Math.round(ms * NS_PER_MS) / NS_PER_MS;
}
