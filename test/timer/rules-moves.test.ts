import { describe, expect, test } from 'vitest';
import { SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { INTERNALS } from '../../src/timer/system-timer.ts';
import { HandClock } from './support/hand-clock.ts';

/** The start of a bucket of the third wheel, which spans 4 096 ms. */
const COARSE_MS = 8_192;

interface Opened {
  readonly clock: HandClock;
  readonly timer: SystemTimer;
  readonly ran: string[];
  readonly at: (name: string, deadlineMs: number) => ReturnType<SystemTimer['schedule']>;
}

/** A timer that moves a few entries a turn, with nine in one coarse bucket. */
function open(movesPerTurn = 2, maxTasksPerTurn = 10_000): Opened & { readonly ids: readonly number[] } {
  const clock = new HandClock();
  const timer = new SystemTimer({ clock, maxTasksPerTurn });
  timer[INTERNALS]().wheels.movesPerTurn = movesPerTurn;
  const ran: string[] = [];
  const at: Opened['at'] = (name, deadlineMs) =>
    timer.schedule(deadlineMs - clock.nowMs, (each) => ran.push(each), name);
  const ids = ['e', 'c', 'a', 'd', 'b', 'f', 'i', 'h', 'g'].map((name) =>
    at(name, COARSE_MS + 100 * (name.charCodeAt(0) - 'a'.charCodeAt(0))),
  );
  return { clock, timer, ran, at, ids };
}

/** Fires wake-ups until none is due. @returns how many. */
function fireAll(clock: HandClock, timer: SystemTimer): number {
  let turns = 0;
  while ((timer.nextExpirationMs() ?? Infinity) <= clock.nowMs) {
    clock.fire();
    checkTimer(timer);
    turns++;
  }
  return turns;
}

describe('a turn moves a bounded number of entries', () => {
  test('200 000 that come down from one bucket take several turns, and none runs early', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    let ran = 0;
    const count = (): void => {
      ran++;
    };
    for (let i = 0; i < 200_000; i++) timer.schedule(COARSE_MS + 1_000 + (i % 1_000), count, undefined);
    clock.nowMs = COARSE_MS;
    expect([fireAll(clock, timer), ran]).toEqual([4, 0]);
    clock.nowMs = COARSE_MS + 2_000;
    while (timer.size > 0) clock.fire();
    expect(ran).toBe(200_000);
  });

  test('so do 200 000 that expire together, with a limit for tasks that is higher', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, maxTasksPerTurn: 1_000_000 });
    const runs: number[] = [];
    let ran = 0;
    const count = (): void => {
      ran++;
    };
    for (let i = 0; i < 200_000; i++) timer.schedule(10, count, undefined);
    clock.nowMs = 10;
    while (timer.size > 0) {
      clock.fire();
      runs.push(ran);
    }
    expect(runs).toEqual([65_536, 131_072, 196_608, 200_000]);
  });

  test('without a limit for tasks there is none for moves', () => {
    const { clock, timer } = open(2, Infinity);
    clock.nowMs = COARSE_MS;
    expect(fireAll(clock, timer)).toBe(1);
  });

  test('poll and advanceClock move everything', async () => {
    for (const drive of [
      (timer: SystemTimer) => timer.poll(),
      (timer: SystemTimer) => timer.advanceClock(0),
    ]) {
      const { clock, timer, ran } = open();
      clock.nowMs = COARSE_MS;
      clock.fire();
      clock.nowMs = COARSE_MS + 1_000;
      await drive(timer);
      expect([ran.join(''), timer.size]).toEqual(['abcdefghi', 0]);
    }
  });

  test('calls between two turns move what is left of a turn, and no more', () => {
    const { clock, timer, at } = open(4);
    clock.nowMs = COARSE_MS + 4_095;
    const inBucket = (): number => timer.inspect().levels[2]?.buckets[0]?.size ?? 0;
    clock.fire();
    expect(inBucket()).toBe(5);
    for (let i = 0; i < 10; i++) at(`late ${i}`, clock.nowMs + 10_000);
    expect([inBucket(), timer.size]).toEqual([5, 9 - 1 + 10]);
    checkTimer(timer);
  });
});

describe('while a bucket is half empty', () => {
  function openHalf(): ReturnType<typeof open> {
    const opened = open();
    opened.clock.nowMs = COARSE_MS;
    opened.clock.fire();
    checkTimer(opened.timer);
    return opened;
  }

  test('the next turn is armed at once, and the snapshot adds up', () => {
    const { clock, timer, ran } = openHalf();
    expect([timer.nextExpirationMs(), clock.armed, ran]).toEqual([COARSE_MS, 1, []]);
    const { levels, dueNow, size, delayQueue } = timer.inspect();
    const sizes = levels.map(({ buckets }) => buckets.reduce((sum, bucket) => sum + bucket.size, 0));
    expect([sizes, dueNow, size]).toEqual([[0, 2, 7], 0, 9]);
    expect(delayQueue).toHaveLength(3);
  });

  test('entries on both sides are cancelled and moved', () => {
    const { clock, timer, ran, ids } = openHalf();
    const [moved, , , left, later] = ids as readonly Parameters<SystemTimer['cancel']>[0][];
    if (moved === undefined || left === undefined || later === undefined) throw new Error('too few');
    expect([timer.cancel(moved), timer.cancel(left), timer.reschedule(later, 50)]).toEqual([
      true,
      true,
      true,
    ]);
    checkTimer(timer);
    clock.nowMs = COARSE_MS + 2_000;
    fireAll(clock, timer);
    expect(ran.join('')).toBe('abcfghi');
  });

  test('what is added without a delay runs at the next turns, behind what is overdue, first in first out', () => {
    const { clock, timer, ran, at } = openHalf();
    clock.nowMs = COARSE_MS + 850;
    for (const name of ['x', 'y', 'z']) at(name, clock.nowMs);
    checkTimer(timer);
    fireAll(clock, timer);
    expect(ran.join('')).toBe('abcdefghixyz');
  });

  test('cancelling the rest of it disarms, or arms for what comes next', () => {
    const { clock, timer, ids } = openHalf();
    for (const id of ids.slice(2)) timer.cancel(id as Parameters<SystemTimer['cancel']>[0]);
    checkTimer(timer);
    expect(timer.nextExpirationMs()).toBeGreaterThan(COARSE_MS);
    for (const id of ids) timer.cancel(id as Parameters<SystemTimer['cancel']>[0]);
    expect([timer.size, clock.armed]).toEqual([0, 0]);
    checkTimer(timer);
  });

  test('close runs what waits in order of expiration', () => {
    const { timer, ran } = openHalf();
    timer.close({ pending: 'run' });
    expect(ran.join('')).toBe('abcdefghi');
    checkTimer(timer);
  });
});
