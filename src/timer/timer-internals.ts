import type { TimerDriver } from './timer-driver.ts';
import type { TimerWheels } from './timer-wheels.ts';

/** The door for the integrity checker, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.timer.internals');

/** What the integrity checker sees of a timer. */
export interface TimerInternals {
  readonly wheels: TimerWheels;
  /** Arms the wake-up, and is what the timer's tasks call their home. */
  readonly driver: TimerDriver;
}
