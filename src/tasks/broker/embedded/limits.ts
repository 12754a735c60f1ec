import type { LimitKind, Rate } from '../broker.ts';
import type { Limits } from '../broker-settings.ts';

/* What the limits of a queue, or of a key, allow: its active tasks are counted, and its rate has a bucket. */

/** The limit that allows no more runs now. */
export function limitReached(
  { concurrency, rate }: Limits,
  active: number,
  fullAtMs: number,
  nowMs: number,
): LimitKind | undefined {
  if (concurrency !== undefined && active >= concurrency) return 'concurrency';
  return tokenInMs(fullAtMs, rate, nowMs) === undefined ? undefined : 'rate';
}

/** Returns how many more tasks may start, and the limit that allows no more. */
export function leftUnder(
  { concurrency = Infinity, rate }: Limits,
  active: number,
  fullAtMs: number,
  nowMs: number,
): { readonly kind: LimitKind; readonly left: number } {
  const places = Math.max(concurrency - active, 0);
  const tokens = rate === undefined ? Infinity : tokensIn(fullAtMs, rate, nowMs);
  return tokens < places ? { kind: 'rate', left: tokens } : { kind: 'concurrency', left: places };
}

/*
 * The bucket of a rate, as one number: `fullAtMs`, when it will be full. That is the virtual scheduling of the generic cell rate
 * algorithm (ITU-T I.371).
 *
 *                        now
 *      full ──────────────┼────────────────►  fullAtMs <= now
 *      some tokens        ┼──────►            fullAtMs - now is the time of the tokens that are missing
 *      no token           ┼──────────────►    … of more than `burst - 1` tokens
 *
 * Taking a token moves it, and time fills the bucket: one that is idle costs nothing.
 */

/** Part of a token that may be missing: times are not exact. */
const TOLERANCE = 1e-6;

export const FULL = -Infinity;

/** How long until a bucket has a token, in milliseconds; undefined if it has one, or there is no rate. */
export function tokenInMs(fullAtMs: number, rate: Rate | undefined, nowMs: number): number | undefined {
  if (rate === undefined) return undefined;
  const inMs = nextTokenMs(fullAtMs, rate, nowMs) - nowMs;
  return inMs > (TOLERANCE * rate.perMs) / rate.tasks ? inMs : undefined;
}

/** Number of whole tokens in a bucket. */
function tokensIn(fullAtMs: number, { tasks, perMs, burst = tasks }: Rate, nowMs: number): number {
  const missing = (Math.max(fullAtMs - nowMs, 0) * tasks) / perMs;
  return Math.max(Math.floor(burst - missing + TOLERANCE), 0);
}

/** When a bucket has a token: at most `nowMs` if it has one. */
export function nextTokenMs(fullAtMs: number, { tasks, perMs, burst = tasks }: Rate, nowMs: number): number {
  return Math.max(fullAtMs, nowMs) - ((burst - 1) * perMs) / tasks;
}

/** When a bucket is full from which a token is taken now. */
export function fullAfter(fullAtMs: number, { tasks, perMs }: Rate, nowMs: number): number {
  return Math.max(fullAtMs, nowMs) + perMs / tasks;
}

/** When a bucket is full whose rate is this one from now on: at the latest when an empty one would be. Without a rate it is full. */
export function bounded(fullAtMs: number, rate: Rate | undefined, nowMs: number): number {
  if (rate === undefined) return FULL;
  const { tasks, perMs, burst = tasks } = rate;
  return Math.min(fullAtMs, nowMs + (burst * perMs) / tasks);
}
