import { defaultRetryDelayMs } from 'escapement/tasks';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { MessageTask } from '../../../src/tasks/server/run.ts';
import { retryDelayOf } from '../../../src/tasks/server/server-options.ts';

const task = new MessageTask({} as never, undefined);

afterEach(() => vi.restoreAllMocks());

/** asynq's own table, in seconds. */
const TABLE = [
  [0, 15, 44],
  [1, 16, 74],
  [2, 31, 118],
  [3, 96, 212],
  [4, 271, 416],
] as const;

describe('the default delay', () => {
  it.each(TABLE)('the delay after %d earlier failures is from %d to %d seconds', (retried, least, most) => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    expect(defaultRetryDelayMs(retried)).toBe(least * 1_000);
    vi.spyOn(Math, 'random').mockReturnValue(0.999_999);
    expect(defaultRetryDelayMs(retried)).toBe(most * 1_000);
  });

  it('the delay is limited, whatever maxRetry is', () => {
    expect(defaultRetryDelayMs(2 ** 31 - 1)).toBe(100 * 365 * 24 * 3_600_000);
  });
});

describe("a user's delay", () => {
  it('retryDelayMs receives the number of failures, the error and the task', () => {
    const asked = vi.fn(() => 250);
    const error = new Error('x');
    expect(retryDelayOf(asked, 3, error, task)).toBe(250);
    expect(asked).toHaveBeenCalledWith(3, error, task);
  });

  it.each([
    ['negative', -5, 0],
    ['endless', Infinity, 100 * 365 * 24 * 3_600_000],
  ])('a delay that is %s is replaced by the nearest valid one', (_what, delayMs, waitedMs) => {
    expect(retryDelayOf(() => delayMs, 0, undefined, task)).toBe(waitedMs);
  });

  it.each([NaN, 'soon', undefined])('the delay %s is not valid, so the default is used', (delay) => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    expect(retryDelayOf(() => delay as number, 1, undefined, task)).toBe(16_000);
  });
});
