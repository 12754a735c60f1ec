import { expect, test } from 'vitest';
import { BackOff } from '../../src/core/back-off.ts';

test('a back-off doubles up to ten seconds, spread over the upper half, and starts anew after a success', () => {
  const backOff = new BackOff();
  for (let i = 0; i < 20; i++) {
    const mostMs = Math.min(100 * 2 ** i, 10_000);
    const waitMs = backOff.next();
    expect(waitMs).toBeGreaterThanOrEqual(mostMs / 2);
    expect(waitMs).toBeLessThanOrEqual(mostMs);
  }
  backOff.reset();
  expect(backOff.next()).toBeLessThanOrEqual(100);
});

test('a back-off without jitter waits exactly twice as long after each failure', () => {
  const backOff = new BackOff({ firstMs: 250, longestMs: 700, jitter: 0 });
  expect([backOff.next(), backOff.next(), backOff.next(), backOff.next()]).toEqual([250, 500, 700, 700]);
});
