/* Moments and durations as the scripts take them: asynq counts in whole seconds. See wire-time.ts for those in messages. */

/** Nothing is due before its time, and no duration becomes 0. */
export function secondsUp(ms: number): number {
  return Math.ceil(ms / 1_000);
}

/** What is over by now is over. */
export function secondsDown(ms: number): number {
  return Math.floor(ms / 1_000);
}

/** Digits, as no number is so precise. */
export function nanosOf(ms: number): string {
  return `${Math.floor(ms)}000000`;
}

/** The last moment a `Date` knows, for what a Go program has put further away. */
const LAST_MS = 8_640_000_000_000_000;

/** The other way round. */
export function msOfSeconds(seconds: number): number {
  return Math.min(seconds * 1_000, LAST_MS);
}
