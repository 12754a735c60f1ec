import { describe, expect, it } from 'vitest';
import { ManualClock, type Clock } from 'escapement';
import { MAX_HOST_TIMEOUT_MS } from '../../src/core/clock.ts';
import { Wakeup } from '../../src/core/wakeup.ts';

interface Armed {
  readonly delayMs: number;
  readonly fire: () => void;
  isCancelled: boolean;
  hasRef: boolean;
}

/** A clock whose time and wake-ups the test moves by hand, so that they may be early, late or wrong. */
class HandClock implements Clock {
  nowMs = 0;
  readonly armed: Armed[] = [];

  now(): number {
    return this.nowMs;
  }

  wallNow(): number {
    return 0;
  }

  setTimeout(callback: () => void, delayMs: number): ReturnType<Clock['setTimeout']> {
    const armed: Armed = { delayMs, fire: callback, isCancelled: false, hasRef: true };
    this.armed.push(armed);
    return {
      cancel: () => (armed.isCancelled = true),
      ref: () => (armed.hasRef = true),
      unref: () => (armed.hasRef = false),
    };
  }

  get last(): Armed {
    const last = this.armed.at(-1);
    if (last === undefined) throw new Error('nothing was armed');
    return last;
  }
}

describe('Wakeup', () => {
  it('wakes at its deadline, once, with the time', () => {
    const clock = new ManualClock();
    const wokenAt: number[] = [];
    const wakeup = new Wakeup(clock, (nowMs) => wokenAt.push(nowMs));
    wakeup.moveTo(10);
    expect(wakeup.deadlineMs).toBe(10);
    clock.advance(100);
    expect(wokenAt).toEqual([10]);
    expect(wakeup.deadlineMs).toBe(Infinity);
  });

  it('is moved, and disarmed with Infinity; a move to where it is does nothing', () => {
    const clock = new HandClock();
    const wakeup = new Wakeup(clock, () => undefined);
    wakeup.moveTo(10);
    wakeup.moveTo(10);
    expect(clock.armed).toHaveLength(1);
    wakeup.moveTo(5);
    expect(clock.armed.map(({ delayMs, isCancelled }) => [delayMs, isCancelled])).toEqual([
      [10, true],
      [5, false],
    ]);
    wakeup.moveTo(Infinity);
    expect(clock.last.isCancelled).toBe(true);
    expect(clock.armed).toHaveLength(2);
  });

  it('re-arms silently when it is woken early', () => {
    const clock = new HandClock();
    const wokenAt: number[] = [];
    const wakeup = new Wakeup(clock, (nowMs) => wokenAt.push(nowMs));
    wakeup.moveTo(10);
    clock.nowMs = 9.25;
    clock.last.fire();
    expect(wokenAt).toEqual([]);
    expect(clock.last.delayMs).toBe(0.75);
    clock.nowMs = 14;
    clock.last.fire();
    expect(wokenAt).toEqual([14]);
  });

  it('reaches beyond the longest timeout of a host', () => {
    const clock = new HandClock();
    let woken = 0;
    const wakeup = new Wakeup(clock, () => woken++);
    wakeup.moveTo(MAX_HOST_TIMEOUT_MS + 5);
    expect(clock.last.delayMs).toBe(MAX_HOST_TIMEOUT_MS);
    clock.nowMs = MAX_HOST_TIMEOUT_MS;
    clock.last.fire();
    expect(woken).toBe(0);
    expect(clock.last.delayMs).toBe(5);
  });

  it('asks for no negative delay when the deadline has passed', () => {
    const clock = new HandClock();
    clock.nowMs = 100;
    new Wakeup(clock, () => undefined).moveTo(10);
    expect(clock.last.delayMs).toBe(0);
  });

  it('does not wake when the clock calls back after it was disarmed', () => {
    const clock = new HandClock();
    let woken = 0;
    const wakeup = new Wakeup(clock, () => woken++);
    wakeup.moveTo(10);
    const stale = clock.last;
    wakeup.moveTo(Infinity);
    clock.nowMs = 20;
    stale.fire();
    expect(woken).toBe(0);
  });

  it('keeps its ref state over moves', () => {
    const clock = new HandClock();
    const wakeup = new Wakeup(clock, () => undefined);
    wakeup.setRef(false);
    wakeup.moveTo(10);
    expect([wakeup.hasRef, clock.last.hasRef]).toEqual([false, false]);
    wakeup.moveTo(5);
    expect(clock.last.hasRef).toBe(false);
    wakeup.setRef(true);
    expect([wakeup.hasRef, clock.last.hasRef]).toEqual([true, true]);
  });
});
