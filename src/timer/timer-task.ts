import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { invalidDelay } from '../core/validate.ts';
import type { EntryCallback } from './reference-page.ts';

/** `entry` of a task that waits nowhere. */
const IDLE = -1;
/** `entry` of a task that waits nowhere because `cancel` took it out. */
const CANCELLED = -2;

/** A method of tasks that want to know that a timer was closed and has dropped them. */
export const DROPPED: unique symbol = Symbol.for('escapement.timer-task.dropped');

/** Where a task waits: the part of a timer that its tasks call. */
export interface TaskHome {
  /** Takes out the task that `entry` belongs to. */
  withdraw(entry: number): void;
}

/**
 * Work for a moment: subclass it, say in `run` what happens, and add it to a {@link Timer}.
 *
 * The task is its own handle: it can be cancelled, moved by adding it again (to another timer too), and added
 * again after it ran. It costs one object; its place in the timer is a number.
 *
 * After `org.apache.kafka.server.util.timer.TimerTask`. Differs in `isCancelled`, which is false before the
 * first `add`, and in that adding twice never leaves two entries behind.
 *
 * @example
 * ```ts
 * class RequestTimeout extends TimerTask {
 *   constructor(readonly request: IncomingMessage) {
 *     super(30_000);
 *   }
 *   override run(): void {
 *     this.request.destroy();
 *   }
 * }
 * ```
 */
export abstract class TimerTask {
  /** How long the task waits after it is added, in milliseconds. Not positive: it is due at once. */
  readonly delayMs: number;
  /*
   * Class fields on purpose. Assigned in the constructor they would save 8 ns, but then V8 (of Node 20) folds the
   * super call, and compiles over and over a subclass whose `name` was redefined, as esbuild and tsx do: 200 ns.
   */
  /** The entry it waits in, or IDLE or CANCELLED. Underscored: a subclass must not come by these names. */
  private _entry = IDLE;
  private _home: TaskHome | undefined = undefined;

  /**
   * @param delayMs - a finite number of milliseconds; fractions are fine.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `NaN`, `Infinity` or `-Infinity`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a number.
   */
  constructor(delayMs: number) {
    if (!Number.isFinite(delayMs)) throw invalidDelay('delayMs', delayMs);
    this.delayMs = delayMs;
  }

  /** What to do when the delay is over. Called once for each `add`, by the timer; it is not pending any more then. */
  abstract run(): void;

  /**
   * Takes the task off its timer. O(1), from anywhere, also from inside another task's `run`.
   *
   * @returns true if it was waiting: it will not run. False if it has run, was cancelled, or was never added.
   */
  cancel(): boolean {
    const home = this._home;
    if (home === undefined) return false;
    const entry = this._entry;
    this._home = undefined;
    this._entry = CANCELLED;
    home.withdraw(entry);
    return true;
  }

  /** Whether it waits in a timer now: true from `add` until its `run` starts or it is cancelled. */
  get pending(): boolean {
    return this._home !== undefined;
  }

  /** Whether `cancel` took effect and it was not added again since. */
  get isCancelled(): boolean {
    return this._entry === CANCELLED;
  }

  /** Its public fields and state, for `JSON.stringify`: without the timer that it waits in. */
  toJSON(): unknown {
    return this[CONSOLE_VIEW]();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ pending: this.pending, isCancelled: this.isCancelled }));
  }
}

/*
 * What a timer does to its tasks. Not methods, so that a subclass neither sees nor overrides them. Not #private,
 * so that a task made by another loaded copy of this package (the CommonJS build, say) works in this one.
 */

export function isTimerTask(value: unknown): value is TimerTask {
  return value instanceof TimerTask || isForeignTask(value);
}

function isForeignTask(value: unknown): boolean {
  return typeof value === 'object' && value !== null && '_entry' in value && '_home' in value;
}

/** The entry that a task holds in `home`, or undefined if it waits elsewhere or nowhere. */
export function entryIn(task: TimerTask, home: TaskHome): number | undefined {
  return task['_home'] === home ? task['_entry'] : undefined;
}

/** From here on the task waits in `home`; if it waited elsewhere, no longer there. */
export function attach(task: TimerTask, home: TaskHome, entry: number): void {
  task['_home']?.withdraw(task['_entry']);
  task['_home'] = home;
  task['_entry'] = entry;
}

/** The task no longer waits, and was not cancelled. */
export function detach(task: TimerTask): void {
  task['_home'] = undefined;
  task['_entry'] = IDLE;
}

/** The task no longer waits, because its timer was closed. */
export function drop(task: TimerTask): void {
  detach(task);
  (task as { [DROPPED]?: () => void })[DROPPED]?.();
}

/** The callback of every entry that a task waits in; the task is the argument. */
export const runTask: EntryCallback = (task: TimerTask): void => {
  detach(task);
  task.run();
};
