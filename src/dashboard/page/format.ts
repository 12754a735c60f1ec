import { largestUnits, LAST_DATE_MS } from '../../core/units.ts';

/** How numbers, sizes and times are written. */

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});

/** `12 345`: with a narrow space, which no reader takes for a decimal point. */
export function count(value: number): string {
  return whole.format(value).replaceAll(',', '\u202f');
}

/** `1.2M`, for where there is no room. */
export function compact(value: number): string {
  return value < 10_000 ? count(value) : short.format(value);
}

/** `0.4`, `12`, `1.2K`: of events a second. */
export function rate(value: number | undefined): string {
  if (value === undefined) return '–';
  if (value === 0) return '0';
  if (value < 0.05) return '<0.1';
  return value < 10 ? value.toFixed(1).replace(/\.0$/, '') : compact(value);
}

export function bytes(value: number): string {
  let amount = value;
  let unit = 0;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${unit === 0 || amount >= 100 ? whole.format(amount) : amount.toFixed(1)} ${units[unit] ?? ''}`;
}

/** The two largest units: `3 h 12 min`, `850 ms`. */
export function durationText(ms: number): string {
  const amount = Math.abs(ms);
  if (amount < 1_000)
    return `${amount > 0 && amount < 10 ? Number(amount.toFixed(1)) : Math.round(amount)} ms`;
  if (amount < 10_000) return `${Number((amount / 1_000).toFixed(1))} s`;
  const units = largestUnits(amount);
  const [[largest] = [0]] = units;
  return units
    .slice(0, largest < 100 ? 2 : 1)
    .map(([number, unit]) => `${number} ${unit === 'm' ? 'min' : unit}`)
    .join(' ');
}

/** `in 5 s`, `3 min ago`, `now`. */
export function relative(atMs: number, nowMs: number): string {
  const ahead = atMs - nowMs;
  if (Math.abs(ahead) < 1_000) return 'now';
  const text = durationText(Math.abs(ahead) < 10_000 ? Math.round(ahead / 1_000) * 1_000 : ahead);
  return ahead > 0 ? `in ${text}` : `${text} ago`;
}

/** The whole of it, in the reader's zone. */
export function exactTime(atMs: number): string {
  return isDate(atMs) ? exact.format(atMs) : String(atMs);
}

export function clockTime(atMs: number): string {
  return isDate(atMs) ? clock.format(atMs) : String(atMs);
}

/** Whether a Date can hold it: a task may come from anywhere. */
export function isDate(atMs: number): boolean {
  return Number.isFinite(atMs) && Math.abs(atMs) <= LAST_DATE_MS;
}

export function plural(amount: number, one: string, many = `${one}s`): string {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}

export function percent(part: number, all: number): string {
  return all === 0 ? '–' : `${Number(((100 * part) / all).toFixed(1))} %`;
}

/** Controls, formats, and letters without a shape; but not what joins the parts of an emoji. */
const UNSEEN =
  /(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d|(?!\u200d)[\p{Cc}\p{Cf}\u2028\u2029\u115f\u1160\u3164\uffa0]/gu;

/** Names the characters that a reader would not see, or that would turn the text around, unless they are `kept`. */
export function visible(text: string, kept = ''): string {
  return text.replace(UNSEEN, (character) => {
    if (kept.includes(character)) return character;
    const code = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
    return code.length > 4 ? `\\u{${code}}` : `\\u${code}`;
  });
}

/** The beginning of a text of many lines on one. */
export function oneLine(text: string, most: number): string {
  return visible(clipped(text.slice(0, 10 * most).replaceAll(/\s+/g, ' '), most));
}

/** A text with its lines and tabs. */
export function manyLines(text: string): string {
  return visible(text, '\t\r\n');
}

/** The beginning of a text that may be of any length, for an attribute. */
export function clipped(text: string, most = 300): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}
