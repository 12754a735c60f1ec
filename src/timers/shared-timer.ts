import { hostFunction } from '../core/host.ts';
import { SystemTimer } from '../timer/system-timer.ts';

/*
 * The one timer behind the functions of this folder. It is made when the first timeout is set, so that importing
 * them costs nothing, and never closed: it holds nothing while nothing waits.
 *
 * Under a test runner's fake timers it is another one. Their time begins anew, and a timer whose clock jumps back
 * would take everything for due. What was set before waits in the real one, for the real time.
 */

/** A timer, and how many of those that wait in it keep the process alive. */
export class SharedTimer {
  readonly timer = new SystemTimer({ name: 'escapement/timers' });
  #refs = 0;

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
    latest = byHost.get(host) ?? new SharedTimer();
    latestHost = host;
    byHost.set(host, latest);
  }
  return latest;
}
