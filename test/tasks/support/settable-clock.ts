import { ManualClock } from 'escapement';

/** Virtual time whose wall clock can be set, as by hand. */
export class SettableClock extends ManualClock {
  /** How far the wall clock is ahead, in milliseconds. */
  aheadMs = 0;

  override wallNow(): number {
    return super.wallNow() + this.aheadMs;
  }
}
