/** Timers that have nothing to do: one deadline an hour away, or many that were all cancelled. */
import { performance } from 'node:perf_hooks';
import { SystemTimer, systemClock, TimerTask, type Clock, type ClockTimeout } from 'escapement';
import { TimerWheel } from 'timer-wheel';
import type { DelaySequence } from './delay-sequence.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';

const HOUR_MS = 3_600_000;
/** How often the package asks to be advanced. */
const PACKAGE_ADVANCE_MS = 1_000;

/** What an idle timer does to the process; `wakeups` where it can be counted. */
export interface Idler {
  wakeups?(): number;
  check(): string | undefined;
  close(): void;
}

/** The host's clock, with every wake-up counted that reaches its callback. */
class CountingClock implements Clock {
  wakeups = 0;

  now(): number {
    return systemClock.now();
  }

  wallNow(): number {
    return systemClock.wallNow();
  }

  setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    const counted = (): void => {
      this.wakeups++;
      callback();
    };
    return systemClock.setTimeout(counted, delayMs);
  }
}

class IdleTask extends TimerTask {
  run(): void {
    throw new Error('an idle task ran');
  }
}

class IdleEntry extends HeapEntry {
  expire(): void {
    throw new Error('an idle entry ran');
  }
}

function neverRuns(): void {
  throw new Error('an idle timeout ran');
}

export function nothing(): Idler {
  return { wakeups: () => 0, check: () => undefined, close: () => undefined };
}

function ourIdler(timer: SystemTimer, clock: CountingClock, expected: number): Idler {
  return {
    wakeups: () => clock.wakeups,
    check: () => (timer.size === expected ? undefined : `${timer.size} tasks wait, not ${expected}`),
    close: () => {
      timer.close();
    },
  };
}

function heapIdler(timer: HeapTimer, expected: number): Idler {
  return {
    wakeups: () => timer.wakeups,
    check: () => (timer.size === expected ? undefined : `${timer.size} entries wait, not ${expected}`),
    close: () => {
      timer.close();
    },
  };
}

export function oneOnHost(): Idler {
  const timeout = setTimeout(neverRuns, HOUR_MS);
  return {
    check: () => undefined,
    close: () => {
      clearTimeout(timeout);
    },
  };
}

export function oneOnHeap(): Idler {
  const timer = new HeapTimer(() => performance.now(), true);
  timer.add(new IdleEntry(), HOUR_MS);
  return heapIdler(timer, 1);
}

export function oneOnOurs(): Idler {
  const clock = new CountingClock();
  const timer = new SystemTimer({ clock });
  timer.add(new IdleTask(HOUR_MS));
  return ourIdler(timer, clock, 1);
}

export function cancelledOnHost(count: number, delays: DelaySequence): Idler {
  const timeouts = Array.from({ length: count }, () => setTimeout(neverRuns, delays.next()));
  timeouts.forEach(clearTimeout);
  return { check: () => undefined, close: () => undefined };
}

export function cancelledOnHeap(count: number, delays: DelaySequence): Idler {
  const timer = new HeapTimer(() => performance.now(), true);
  const entries = Array.from({ length: count }, () => new IdleEntry());
  for (const entry of entries) timer.add(entry, delays.next());
  for (const entry of entries) timer.cancel(entry);
  return heapIdler(timer, 0);
}

export function cancelledOnOurs(count: number, delays: DelaySequence): Idler {
  const clock = new CountingClock();
  const timer = new SystemTimer({ clock });
  const tasks = Array.from({ length: count }, () => new IdleTask(delays.next()));
  for (const task of tasks) timer.add(task);
  const missed = tasks.filter((task) => !task.cancel()).length;
  const idler = ourIdler(timer, clock, 0);
  return {
    ...idler,
    check: () => (missed === 0 ? idler.check() : `${missed} cancellations found nothing to cancel`),
  };
}

/** It has no wake-up of its own: somebody must call `advance` whether anything waits or not. */
function driven(wheel: TimerWheel<number>): Idler {
  let wakeups = 0;
  const interval = setInterval(() => {
    wakeups++;
    wheel.advance();
  }, PACKAGE_ADVANCE_MS);
  return {
    wakeups: () => wakeups,
    check: () => undefined,
    close: () => {
      clearInterval(interval);
    },
  };
}

export function oneOnPackage(): Idler {
  const wheel = new TimerWheel<number>();
  wheel.schedule(0, HOUR_MS);
  return driven(wheel);
}

export function cancelledOnPackage(count: number, delays: DelaySequence): Idler {
  const wheel = new TimerWheel<number>();
  const handles = Array.from({ length: count }, (_, index) => wheel.schedule(index, delays.next()));
  for (const handle of handles) handle.remove();
  return driven(wheel);
}
