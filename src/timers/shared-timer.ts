import { systemClock, type Clock } from '../core/clock.ts';
import { hostFunction, isHost } from '../core/host.ts';
import { SystemTimer } from '../timer/system-timer.ts';
import { DueTimeouts, RUN, type DueTimeout } from './due-timeouts.ts';

/*
 * The one timer behind the functions of this folder. It is made when the first timeout is set, so that importing
 * them costs nothing, and never closed: it holds nothing while nothing waits.
 *
 * Under a test runner's fake timers it is another one. Their time begins anew, and a timer whose clock jumps back
 * would take everything for due. What was set before waits in the real one, for the real time.
 */

/** A timer, and how many of those that wait in it keep the process alive. */
export class SharedTimer {
  readonly timer: SystemTimer;
  readonly #due = new DueTimeouts();
  /** A fake host fires its timeouts within a call of the test's: it has no turns. */
  readonly #isFake: boolean;
  #wake = (): void => undefined;
  #refs = 0;

  constructor(isFake: boolean) {
    this.#isFake = isFake;
    this.timer = new SystemTimer({ name: 'escapement/timers', clock: this.#clock() });
  }

  /** The delay of a timeout is over: it runs at the end of this wake-up, or in a turn that follows. */
  expire(timeout: DueTimeout): void {
    if (this.#isFake) timeout[RUN]();
    else this.#due.add(timeout);
  }

  /** A timeout that is due, or none, is cleared or refreshed. */
  withdraw(timeout: DueTimeout): void {
    this.#due.delete(timeout);
  }

  /** One more keeps the process alive, and is about to wait. */
  acquireRef(): void {
    if (this.#refs++ === 0 && !this.timer.hasRef()) this.timer.ref();
  }

  /** One fewer does, and no longer waits, or only without. An empty timer keeps nothing alive as it is. */
  releaseRef(): void {
    if (--this.#refs === 0 && this.timer.size > 0) this.timer.unref();
  }

  /** One that does not keep the process alive is about to wait. */
  addUnref(): void {
    if (this.#refs === 0 && this.timer.hasRef()) this.timer.unref();
  }

  /** The system clock. A wake-up runs what is due after the timer is done with it: what that throws reaches the host. */
  #clock(): Clock {
    const woken = (): void => {
      this.#wake();
      this.#due.run();
    };
    return {
      ...systemClock,
      setTimeout: (wake, delayMs) => {
        this.#wake = wake;
        return systemClock.setTimeout(woken, delayMs);
      },
    };
  }
}

type HostFunction = typeof globalThis.setTimeout;

let latest: SharedTimer | undefined;
let latestHost: HostFunction | undefined;
/** By the host's function, real or fake, that their wake-ups are armed with. */
const byHost = new WeakMap<HostFunction, SharedTimer>();

/** The timer for the time that is in force. */
export function sharedTimer(): SharedTimer {
  const host = hostFunction('setTimeout');
  if (latest === undefined || host !== latestHost) {
    latest = byHost.get(host) ?? new SharedTimer(!isHost(host));
    latestHost = host;
    byHost.set(host, latest);
  }
  return latest;
}
