import { ManualClock, type ClockTimeout } from 'escapement';

/** Virtual time that counts the wake-ups asked of it: how many at once, and how many were delivered. */
export class CountingClock extends ManualClock {
  mostArmed = 0;
  delivered = 0;

  override setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    const timeout = super.setTimeout(() => {
      this.delivered++;
      callback();
    }, delayMs);
    this.mostArmed = Math.max(this.mostArmed, this.pendingWakeups);
    return timeout;
  }
}
