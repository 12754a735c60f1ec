import { systemClock, type Clock, type ClockTimeout } from 'escapement';

/**
 * The system clock, with a count of how often it woke somebody. A timer sees the host through its clock alone, so
 * wrapping the clock tells what the timer costs the host.
 */
export class CountingClock implements Clock {
  #wakeUps = 0;

  /** Timeouts that fired. */
  get wakeUps(): number {
    return this.#wakeUps;
  }

  now(): number {
    return systemClock.now();
  }

  wallNow(): number {
    return systemClock.wallNow();
  }

  setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    return systemClock.setTimeout(() => {
      this.#wakeUps++;
      callback();
    }, delayMs);
  }
}
