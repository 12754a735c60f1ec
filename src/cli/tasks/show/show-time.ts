const SECOND_MS = 1_000;

/** From large to small, in seconds. */
const UNITS: readonly (readonly [letter: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
];

/** `2026-11-21 16:43:59 UTC`. */
export function showTime(date: Date): string {
  if (Number.isNaN(date.getTime())) return '-';
  const [day = '', time = ''] = date.toISOString().split('T');
  return `${day} ${time.slice(0, 'hh:mm:ss'.length)} UTC`;
}

/** `1d 2h`, `5m 3s`, `250ms`: no more than two units. */
export function showDuration(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)}ms`;
  let seconds = Math.round(ms / SECOND_MS);
  const at = UNITS.findIndex(([, unit]) => seconds >= unit);
  const parts: string[] = [];
  for (const [letter, unit] of UNITS.slice(at, at + 2)) {
    const count = Math.floor(seconds / unit);
    seconds -= count * unit;
    if (count > 0) parts.push(`${count}${letter}`);
  }
  return parts.join(' ');
}

/** `in 5m`, `2d 3h ago`, `now`. */
export function showRelative(date: Date | undefined, nowMs: number): string {
  if (date === undefined || Number.isNaN(date.getTime())) return '-';
  const ms = date.getTime() - nowMs;
  if (Math.abs(ms) < SECOND_MS) return 'now';
  return ms > 0 ? `in ${showDuration(ms)}` : `${showDuration(-ms)} ago`;
}
