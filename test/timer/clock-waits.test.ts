import { describe, expect, test } from 'vitest';
import { ClockWaits } from '../../src/timer/clock-waits.ts';

describe('the callers of advanceClock', () => {
  test('nobody waits at first', () => {
    const waits = new ClockWaits();
    expect([waits.isEmpty, waits.earliestDeadlineMs]).toEqual([true, Infinity]);
    waits.settleAll(true);
    waits.settleExpired(Infinity);
    expect(waits.isEmpty).toBe(true);
  });

  test('all are answered when a bucket falls due', async () => {
    const waits = new ClockWaits();
    const answers = [waits.add(50), waits.add(20), waits.add(Infinity)];
    expect([waits.isEmpty, waits.earliestDeadlineMs]).toEqual([false, 20]);
    waits.settleAll(true);
    expect(waits.isEmpty).toBe(true);
    expect(await Promise.all(answers)).toEqual([true, true, true]);
  });

  test('those whose time is up are answered alone', async () => {
    const waits = new ClockWaits();
    const answers = [waits.add(50), waits.add(20), waits.add(20.5)];
    waits.settleExpired(19.9);
    expect(waits.earliestDeadlineMs).toBe(20);
    waits.settleExpired(20);
    expect(await answers[1]).toBe(false);
    expect(waits.earliestDeadlineMs).toBe(20.5);
    waits.settleExpired(100);
    expect([await answers[0], await answers[2], waits.isEmpty]).toEqual([false, false, true]);
  });

  test('a caller that asks again at once waits anew', async () => {
    const waits = new ClockWaits();
    const again = waits.add(10).then(() => waits.add(20));
    waits.settleAll(true);
    await Promise.resolve();
    expect(waits.earliestDeadlineMs).toBe(20);
    waits.settleAll(false);
    expect(await again).toBe(false);
  });
});
