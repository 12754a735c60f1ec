import { SystemTimer } from '../timer/system-timer.ts';

/*
 * The one timer behind the functions of this folder. It is made when the first timeout is set, so that importing
 * them costs nothing, and never closed: it holds nothing while nothing waits.
 */

let timer: SystemTimer | undefined;
/** Timeouts that wait and keep the process alive. */
let refs = 0;

export function sharedTimer(): SystemTimer {
  timer ??= makeTimer();
  return timer;
}

/** One more timeout keeps the process alive. */
export function acquireRef(): void {
  if (refs++ === 0) sharedTimer().ref();
}

/** One fewer does. */
export function releaseRef(): void {
  if (--refs === 0) sharedTimer().unref();
}

function makeTimer(): SystemTimer {
  const made = new SystemTimer({ name: 'escapement/timers' });
  made.unref();
  return made;
}
