import type { TaskHome } from './timer-task.ts';
import type { TimerWheels } from './timer-wheels.ts';

/** The door for the integrity checker, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.timer.internals');

/** What the integrity checker sees of a timer. */
export interface TimerInternals {
  readonly wheels: TimerWheels;
  /** What the tasks of this timer call their home. */
  readonly home: TaskHome;
  /** When the wake-up is due; `Infinity` if none is armed. */
  readonly armedForMs: number;
  /** Whether a wake-up must be armed at this moment if and only if something waits. */
  readonly arms: boolean;
}
