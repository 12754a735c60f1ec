import { HostTimeout, systemClock, type Clock } from '../core/clock.ts';
import { hostFunction, hostWallNow, isFaked, original } from '../core/host.ts';
import { inOwnTurn } from '../core/own-turn.ts';
import { SystemTimer } from '../timer/system-timer.ts';

/*
 * The one timer of the functions of this folder. It is made when the first timeout is set, so that importing
 * them costs nothing, and never closed: without timeouts it keeps nothing alive.
 *
 * Under a test runner's fake timers another timer is used. Their time begins anew, and for a timer whose clock jumps back
 * everything would be due. Timeouts that were set before stay in the real one, on the real time.
 *
 * The real one calls the host's own functions, as `node:timers` does: a function that wraps the global one may wrap ours.
 */

/** The name of the method that runs a timeout whose delay is over. */
export const RUN: unique symbol = Symbol('escapement.timers.run');

/** A timeout that can be due. */
interface DueTimeout {
  [RUN](): void;
}

/**
 * The timeouts whose delay is over: first in, first out, each in a turn of the host's event loop of its own.
 *
 * HOW and WHY. The host runs `process.nextTick` callbacks and microtasks between two callbacks of timeouts, and reports the
 * error of one before it calls the next. No public function does that, but the host does it between two turns, too:
 *
 *     wake-up    queue a turn for b, one for c ─► run a ─► ticks, microtasks
 *     turns                                       run b ─► ticks, microtasks ─► run c ─► ticks, microtasks
 *
 * The turns are queued before `a` runs, so they come before every immediate that a callback sets. A turn takes the
 * timeout that is first by then: one that is cleared or refreshed meanwhile is removed, and the last turn has nothing to do.
 */
class DueTimeouts {
  /** In order. */
  readonly #due = new Set<DueTimeout>();
  /** Kept while the set is not empty: a new iterator would step over all that were deleted before the first. */
  #inOrder = this.#due.values();
  /** Number of queued turns. */
  #turns = 0;

  add(timeout: DueTimeout): void {
    if (this.#due.size === 0) this.#inOrder = this.#due.values();
    this.#due.add(timeout);
  }

  delete(timeout: DueTimeout): void {
    this.#due.delete(timeout);
  }

  /** Runs the first one now, and the others in turns of their own. An error of the first one is thrown to the caller. */
  run(): void {
    for (const others = this.#due.size - 1; this.#turns < others; this.#turns++) inOwnTurn(this.#runTurn);
    this.#runFirst();
  }

  readonly #runTurn = (): void => {
    this.#turns--;
    this.#runFirst();
  };

  #runFirst(): void {
    if (this.#due.size === 0) return;
    const timeout = this.#inOrder.next().value as DueTimeout;
    this.#due.delete(timeout);
    timeout[RUN]();
  }
}

const hostClock: Clock = {
  now: () => original.now.call(original.performance),
  wallNow: hostWallNow,
  setTimeout: (callback, delayMs) => new HostTimeout(callback, Math.ceil(delayMs), original.setTimeout),
};

/** A timer, with the number of pending timeouts that keep the process alive. */
class SharedTimer {
  readonly timer: SystemTimer;
  readonly #due = new DueTimeouts();
  /** A fake host fires its timeouts within a call of the test: it has no turns. */
  readonly #isFake: boolean;
  #wake = (): void => undefined;
  #refs = 0;

  constructor(isFake: boolean) {
    this.#isFake = isFake;
    const clock = this.#waking(isFake ? systemClock : hostClock);
    this.timer = new SystemTimer({ name: 'escapement/timers', clock });
  }

  /** Milliseconds on the clock of the timer. */
  now(): number {
    return this.timer.clock.now();
  }

  /** Runs a timeout whose delay is over: at the end of this wake-up, or in a turn that follows. */
  expire(timeout: DueTimeout): void {
    if (this.#isFake) timeout[RUN]();
    else this.#due.add(timeout);
  }

  /** Removes a timeout that is cleared or refreshed, if it is due. */
  withdraw(timeout: DueTimeout): void {
    this.#due.delete(timeout);
  }

  /** Counts a timeout that keeps the process alive, before it is scheduled. */
  acquireRef(): void {
    if (this.#refs++ === 0 && !this.timer.hasRef()) this.timer.ref();
  }

  /** Uncounts a timeout that no longer keeps the process alive. An empty timer keeps nothing alive anyway. */
  releaseRef(): void {
    if (--this.#refs === 0 && this.timer.size > 0) this.timer.unref();
  }

  /** Called before a timeout is scheduled that does not keep the process alive. */
  addUnref(): void {
    if (this.#refs === 0 && this.timer.hasRef()) this.timer.unref();
  }

  /** A clock whose wake-ups run due timeouts after the timer has returned: their errors reach the host. */
  #waking(clock: Clock): Clock {
    const woken = (): void => {
      this.#wake();
      this.#due.run();
    };
    return {
      ...clock,
      setTimeout: (wake, delayMs) => {
        this.#wake = wake;
        return clock.setTimeout(woken, delayMs);
      },
    };
  }
}

type HostFunction = typeof globalThis.setTimeout;

let latest: SharedTimer | undefined;
let latestFunction: HostFunction | undefined;
/** By the fake that arms their wake-ups, or the host's own function. */
const byHost = new WeakMap<HostFunction, SharedTimer>();

/** Returns the timer for the current time functions. */
export function sharedTimer(): SharedTimer {
  const current = hostFunction('setTimeout');
  if (latest === undefined || current !== latestFunction) {
    const isFake = isFaked(current);
    const host = isFake ? current : original.setTimeout;
    latest = byHost.get(host) ?? new SharedTimer(isFake);
    latestFunction = current;
    byHost.set(host, latest);
  }
  return latest;
}
