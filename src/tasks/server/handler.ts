import type { ReceivedTask } from './received-task.ts';
import type { TaskContext } from './task-context.ts';

/**
 * Processes a task: if it returns, or what it returns resolves, the task is done; if it throws or rejects, it has failed.
 *
 * @typeParam P - what `task.data` is: see {@link ReceivedTask}.
 */
export type Handler<P = unknown> = (task: ReceivedTask<P>, context: TaskContext) => unknown;

/** Stands before a handler: may look at what comes and goes, or not let it through. */
export type Middleware = (next: Handler) => Handler;
