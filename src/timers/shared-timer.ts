import { HostTimeout, systemClock, type Clock } from '../core/clock.ts';
import { hostFunction, hostWallNow, isFaked, original } from '../core/host.ts';
import { inOwnTurn } from '../core/own-turn.ts';
import { RingQueue } from '../core/ring-queue.ts';
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

/** Where a timeout stands in the queue of those that are due; empty once it is cleared or refreshed. */
export interface Due {
  timeout: DueTimeout | undefined;
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
 * The turns are queued before `a` runs, so they come before every immediate that a callback sets. The turn of a
 * timeout that is cleared or refreshed meanwhile has nothing to do.
 */
class DueTimeouts {
  readonly #queue = new RingQueue<Due>();
  /** Number of queued turns. */
  #turns = 0;

  add(timeout: DueTimeout): Due {
    const due: Due = { timeout };
    this.#queue.push(due);
    return due;
  }

  /** Runs the first one now, and the others in turns of their own. An error of the first one is thrown to the caller. */
  run(): void {
    for (const others = this.#queue.size - 1; this.#turns < others; this.#turns++) inOwnTurn(this.#runTurn);
    this.#runFirst();
  }

  readonly #runTurn = (): void => {
    this.#turns--;
    this.#runFirst();
  };

  #runFirst(): void {
    this.#queue.shift()?.timeout?.[RUN]();
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

  /** Runs a timeout whose delay is over: now under a fake host, else at the end of this wake-up or in a turn that follows. */
  expire(timeout: DueTimeout): Due | undefined {
    if (!this.#isFake) return this.#due.add(timeout);
    timeout[RUN]();
    return undefined;
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

const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } };
/** In Cloudflare Workers a timeout of the host fires only while the request runs that set it: requests must not share a timer. */
const isOfRequest = navigator?.userAgent === 'Cloudflare-Workers';

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
    if (isOfRequest && !isFake) forgetLatestSoon();
    else byHost.set(host, latest);
  }
  return latest;
}

/** Before the next promise job, which may belong to another request. */
function forgetLatestSoon(): void {
  const { queueMicrotask } = original;
  queueMicrotask(() => {
    latest = undefined;
  });
}
