import type { Rate } from '../broker.ts';

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

export function hasToken(fullAtMs: number, rate: Rate, nowMs: number): boolean {
  return nextTokenMs(fullAtMs, rate, nowMs) <= nowMs + (TOLERANCE * rate.perMs) / rate.tasks;
}

/** Number of whole tokens in a bucket. */
export function tokensIn(fullAtMs: number, { tasks, perMs, burst = tasks }: Rate, nowMs: number): number {
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
