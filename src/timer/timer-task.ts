import { AsyncResource, type AsyncContext } from '../core/async-context.ts';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { requireFiniteNumber } from '../core/validate.ts';
import type { EntryCallback } from './timer-table.ts';

/** The entry of a task that was never pending. */
const IDLE = -1;
/** The entry of a task that is not pending because it was cancelled. */
const CANCELLED = -2;

/** The name of an optional method of tasks, which a timer calls when it was closed and has dropped the task. */
export const DROPPED: unique symbol = Symbol.for('escapement.timer-task.dropped');

/** The part of a timer that its tasks call. */
export interface TaskOwner {
  /** Removes an entry. */
  withdraw(entry: number): void;
}

/**
 * Work for a deadline: a subclass implements `run`, and its objects are added to a {@link Timer}.
 *
 * The task is its own handle: it can be cancelled, moved by adding it again (to another timer too), and added
 * again after it ran. It costs one object; its entry in the timer is a number.
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
  /** The delay from `add` to the deadline, in milliseconds. A task whose delay is 0 or less is due at once. */
  readonly delayMs: number;
  /*
   * Class fields on purpose. Assigned in the constructor they would save 8 ns, but then V8 (of Node 20) folds the
   * super call, and compiles over and over a subclass whose `name` was redefined, as esbuild and tsx do: 200 ns.
   */
  /** The slot of the latest entry, or IDLE or CANCELLED. The names begin with an underscore, so that a subclass does not use them. */
  private _entry = IDLE;
  private _entryOwner: TaskOwner | undefined = undefined;

  /**
   * @param delayMs - a finite number of milliseconds; fractions are fine.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `NaN`, `Infinity` or `-Infinity`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a number.
   */
  constructor(delayMs: number) {
    requireFiniteNumber('delayMs', delayMs);
    this.delayMs = delayMs;
  }

  /** Called by the timer when the delay is over, once for each `add`. The task is no longer pending by then. */
  abstract run(): void;

  /**
   * Removes the task from its timer. O(1), from anywhere, also from inside another task's `run`.
   *
   * @returns true if it was pending: it will not run. False if it has run, was cancelled, or was never added.
   */
  cancel(): boolean {
    const owner = this._entryOwner;
    if (owner === undefined) return false;
    const entry = this._entry;
    this._entryOwner = undefined;
    this._entry = CANCELLED;
    owner.withdraw(entry);
    return true;
  }

  /** Whether the task is in a timer: true from `add` until its `run` starts or it is cancelled. */
  get pending(): boolean {
    return this._entryOwner !== undefined;
  }

  /** Whether `cancel` took effect and the task was not added again since. */
  get isCancelled(): boolean {
    return this._entry === CANCELLED;
  }

  /** Returns its public fields and state for `JSON.stringify`, without the timer that it is in. */
  toJSON(): unknown {
    return this[CONSOLE_VIEW]();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ pending: this.pending, isCancelled: this.isCancelled }));
  }
}

/*
 * What a timer does with its tasks. Not methods, so that a subclass neither sees nor overrides them. The fields are not #private,
 * so that a task of another loaded copy of this package (the CommonJS build, for example) works in this one.
 */

export function isTimerTask(value: unknown): value is TimerTask {
  return value instanceof TimerTask || isForeignTask(value);
}

function isForeignTask(value: unknown): boolean {
  return typeof value === 'object' && value !== null && '_entryOwner' in value;
}

/** Returns the entry of a task in `owner`; undefined if the task is in another timer or in none. */
export function entryIn(task: TimerTask, owner: TaskOwner): number | undefined {
  return task['_entryOwner'] === owner ? task['_entry'] : undefined;
}

/**
 * Notes that a task is pending in `owner`, and removes it from where it was pending before: last, so that the task refers to its
 * entry even if the clock of that timer throws.
 */
export function attach(task: TimerTask, owner: TaskOwner, entry: number): void {
  const ownerBefore = task['_entryOwner'];
  const entryBefore = task['_entry'];
  task['_entryOwner'] = owner;
  task['_entry'] = entry;
  ownerBefore?.withdraw(entryBefore);
}

/** Notes that a task is no longer pending, and was not cancelled. */
export function detach(task: TimerTask): void {
  task['_entryOwner'] = undefined;
}

/** Notes that a task is no longer pending because its timer was closed. */
export function drop(task: TimerTask): void {
  detach(task);
  (task as { [DROPPED]?: () => void })[DROPPED]?.();
}

/** The callback of the entries of tasks; the task is the argument. */
export const runTask: EntryCallback = (task: TimerTask): void => {
  detach(task);
  task.run();
};

/*
 * Tasks in the async context of the call that added them, for timers with the option `asyncContext`, which only a runtime with
 * `AsyncResource` accepts.
 *
 * WHY an AsyncResource each: it carries the stores of every `AsyncLocalStorage` for some 30 ns;
 * `AsyncLocalStorage.snapshot` and `AsyncResource.bind` make functions, and take 13 µs on Node 20.
 */

/** The context of a task, kept on the task while it is pending: a timer without contexts pays nothing for it. */
const CONTEXT: unique symbol = Symbol('escapement.async-context');

interface ContextTask extends TimerTask {
  [CONTEXT]?: AsyncContext | undefined;
}

/** A callback with its argument and its context: the argument of its entry. */
export class ContextCall<A> {
  readonly callback: (argument: A) => void;
  readonly argument: A;
  readonly context = newContext('escapement.TimerCallback');

  constructor(callback: (argument: A) => void, argument: A) {
    this.callback = callback;
    this.argument = argument;
  }
}

/** The callback of the entries of a {@link ContextCall}. */
export const callInContext = <A>({ callback, argument, context }: ContextCall<A>): void => {
  context.runInAsyncScope(callback, undefined, argument);
};

/** Keeps the context of the call that adds a task. */
export function keepContext(task: ContextTask): void {
  task[CONTEXT] = newContext('escapement.TimerTask');
}

/** The callback of the entries of tasks with a context. */
export const runTaskInContext: EntryCallback = (task: ContextTask): void => {
  const context = task[CONTEXT] as AsyncContext;
  task[CONTEXT] = undefined;
  context.runInAsyncScope(runTask as (task: ContextTask) => void, undefined, task);
};

/** Whether an entry's argument is a task. */
export function isTaskCallback(callback: EntryCallback): boolean {
  return callback === runTask || callback === runTaskInContext;
}

function newContext(type: string): AsyncContext {
  return new (AsyncResource as NonNullable<typeof AsyncResource>)(type);
}
