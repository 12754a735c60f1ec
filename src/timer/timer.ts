import { oneOf, type OptionTable } from '../core/options.ts';
import type { TimerTask } from './timer-task.ts';

/** What `close` does with the tasks that wait. */
export interface TimerCloseOptions {
  /**
   * - `'drop'`: they do not run, and are not cancelled either: the caller gets them back.
   * - `'run'`: they run now, in order of expiration, before `close` returns.
   *
   * @default 'drop'
   */
  readonly pending?: 'drop' | 'run';
}

export const TIMER_CLOSE_OPTIONS = {
  pending: [oneOf('drop', 'run'), 'drop'],
} satisfies OptionTable<TimerCloseOptions>;

/** Runs tasks after a delay. After Kafka's interface of this name. */
export interface Timer {
  /** Adds a task; one that already waits, here or in another timer, is moved. Never runs user code. O(levels). */
  add(task: TimerTask): void;
  /**
   * Waits at most `timeoutMs` for a bucket to fall due, and runs what is due. The argument bounds the wait, it is
   * not a step; 0 or less does not wait.
   *
   * @returns whether a bucket fell due; false at once when the timer is closed.
   */
  advanceClock(timeoutMs: number): Promise<boolean>;
  /** Tasks that were added and have neither started to run nor been cancelled. */
  readonly size: number;
  /** Stops for good. Idempotent: a second call returns an empty array. @returns the tasks that waited. */
  close(options?: TimerCloseOptions): TimerTask[];
}
