import { reportUncaught } from '../../core/report-uncaught.ts';
import type { ReceivedTask } from './received-task.ts';

/**
 * How long to wait, in milliseconds, before a task is tried again that has failed `retried` times before. The parameters have the
 * order of asynq's `RetryDelayFunc`.
 */
export type RetryDelay = (retried: number, error: unknown, task: ReceivedTask) => number;

const MS_PER_S = 1_000;
/** Spreads tasks that have failed together. */
const SPREAD_S = 30;
/** The least that is waited for, in seconds. */
const LEAST_S = 15;
/** A hundred years: no task is tried again after that, and a date can still say when. */
const LONGEST_MS = 100 * 365 * 24 * 3_600_000;

/**
 * asynq's delays, in milliseconds: n⁴ + 15 + (0 … 29) · (n + 1) seconds. 15 to 44 s at first, and about 20 days over all of
 * the default 25 retries.
 */
export function defaultRetryDelayMs(retried: number): number {
  const spread = Math.floor(Math.random() * SPREAD_S) * (retried + 1);
  return Math.min((retried ** 4 + LEAST_S + spread) * MS_PER_S, LONGEST_MS);
}

/** What a user's function says, or asynq's delay if it throws or does not say a time that can be waited for. */
export function retryDelayOf(delay: RetryDelay, retried: number, error: unknown, task: ReceivedTask): number {
  try {
    const delayMs: unknown = delay(retried, error, task);
    if (typeof delayMs === 'number' && delayMs >= 0) return Math.min(delayMs, LONGEST_MS);
    if (typeof delayMs === 'number' && delayMs < 0) return 0;
  } catch (thrown) {
    reportUncaught(thrown);
  }
  return defaultRetryDelayMs(retried);
}
