import { AsyncResource, type AsyncContext } from '../core/async-context.ts';
import type { EntryCallback } from './timer-table.ts';
import { runTask, type TimerTask } from './timer-task.ts';

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
  const context = task[CONTEXT];
  task[CONTEXT] = undefined;
  if (context === undefined) runTask(task as never);
  else context.runInAsyncScope(runTask as (task: ContextTask) => void, undefined, task);
};

/** Whether an entry's argument is a task. */
export function isTaskCallback(callback: EntryCallback): boolean {
  return callback === runTask || callback === runTaskInContext;
}

function newContext(type: string): AsyncContext {
  return new (AsyncResource as NonNullable<typeof AsyncResource>)(type);
}
