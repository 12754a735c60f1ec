import { ManualClock, type Clock, type ClockTimeout } from 'escapement';

/** Virtual time that counts the wake-ups asked of it: how many, how many at once, and how many were delivered. */
export class CountingClock implements Clock {
  readonly manual: ManualClock;
  armed = 0;
  mostArmed = 0;
  delivered = 0;

  constructor(nowMs = 0) {
    this.manual = new ManualClock({ nowMs });
  }

  now(): number {
    return this.manual.now();
  }

  wallNow(): number {
    return this.manual.wallNow();
  }

  setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    let isArmed = true;
    const settle = (): void => {
      if (isArmed) this.armed--;
      isArmed = false;
    };
    const timeout = this.manual.setTimeout(() => {
      settle();
      this.delivered++;
      callback();
    }, delayMs);
    this.mostArmed = Math.max(this.mostArmed, ++this.armed);
    return {
      cancel: () => {
        settle();
        timeout.cancel();
      },
      ref: () => timeout.ref(),
      unref: () => timeout.unref(),
    };
  }

  advance(ms: number): void {
    this.manual.advance(ms);
  }
}
