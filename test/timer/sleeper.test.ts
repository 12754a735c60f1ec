import { getEventListeners } from 'node:events';
import { EscapementError, ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';

describe('sleep', () => {
  test('resolves with its value after its delay, and not before', async () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const woken: unknown[] = [];
    const note = (value: unknown): void => {
      woken.push(value);
    };
    const value = { any: 'thing' };
    const sleeps = [
      timer.sleep(10, value).then(note),
      timer.sleep(5).then(note),
      timer.sleep(0, 0).then(note),
    ];
    await clock.advanceAsync(4);
    expect(woken).toEqual([0]);
    await clock.advanceAsync(6);
    await Promise.all(sleeps);
    expect(woken).toEqual([0, undefined, value]);
    expect(woken[2]).toBe(value);
  });

  test('waits for a value that is a promise', async () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const sleep = timer.sleep(1, Promise.resolve('inner'));
    clock.advance(1);
    expect(await sleep).toBe('inner');
  });

  test("rejects with the signal's own reason, at once", async () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const controller = new AbortController();
    const sleep = timer.sleep(10, undefined, { signal: controller.signal });
    const reason = { not: 'even an error' };
    controller.abort(reason);
    expect(timer.size).toBe(0);
    checkTimer(timer);
    expect(await sleep.catch((error: unknown) => error)).toBe(reason);
  });

  test('rejects with an AbortError when the signal has no reason of its own', async () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const controller = new AbortController();
    const sleep = timer.sleep(10, undefined, { signal: controller.signal });
    controller.abort();
    await expect(sleep).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('with a signal that was aborted before it never sleeps', async () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const reason = new Error('long ago');
    const signal = AbortSignal.abort(reason);
    const sleep = timer.sleep(10, undefined, { signal });
    expect(timer.size).toBe(0);
    expect(await sleep.catch((error: unknown) => error)).toBe(reason);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('an abort when it is due and has not run yet still wins', async () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock, autoStart: false });
    const controller = new AbortController();
    const sleep = timer.sleep(5, 'slept', { signal: controller.signal });
    clock.advance(10);
    controller.abort('too late');
    expect(timer.poll()).toBe(0);
    expect(await sleep.catch((error: unknown) => error)).toBe('too late');
  });

  test('an abort after it ended changes nothing', async () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const controller = new AbortController();
    const sleep = timer.sleep(5, 'slept', { signal: controller.signal });
    clock.advance(5);
    controller.abort();
    expect(await sleep).toBe('slept');
    checkTimer(timer);
  });

  test('one abort ends all that share the signal, and nobody else', async () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = [1, 2, 3].map((delayMs) => timer.sleep(delayMs, undefined, { signal }));
    const other = timer.sleep(2, 'other');
    controller.abort('stop');
    expect(timer.size).toBe(1);
    clock.advance(5);
    expect(await other).toBe('other');
    for (const sleep of aborted) await expect(sleep).rejects.toBe('stop');
  });

  test.each(['slept', 'aborted', 'closed'])('leaves no listener behind when it %s', async (end) => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const controller = new AbortController();
    const { signal } = controller;
    const sleeps = [5, 0, 1e9].map((delayMs) => timer.sleep(delayMs, undefined, { signal }));
    expect(getEventListeners(signal, 'abort')).toHaveLength(3);
    if (end === 'slept') clock.advance(2e9);
    if (end === 'aborted') controller.abort();
    if (end === 'closed') timer.close();
    await Promise.allSettled(sleeps);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(timer.size).toBe(0);
  });

  test('a listener that closes the timer while the signal fires', async () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const controller = new AbortController();
    controller.signal.addEventListener('abort', () => {
      timer.close();
    });
    const sleeps = [1, 2].map((delayMs) => timer.sleep(delayMs, undefined, { signal: controller.signal }));
    controller.abort('stop');
    for (const sleep of sleeps) await expect(sleep).rejects.toBeInstanceOf(EscapementError);
    expect(timer.size).toBe(0);
    checkTimer(timer);
  });

  test('does not throw: bad arguments and a closed timer reject', async () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    await expect(timer.sleep(NaN)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    timer.close();
    await expect(timer.sleep(1)).rejects.toMatchObject({ code: 'ERR_TIMER_CLOSED' });
  });
});
