import type { Middleware } from 'escapement/tasks';

/** A run of a task, when it is over. */
export interface RunLine {
  readonly type: string;
  readonly taskId: string;
  /** Failures before this run. */
  readonly retryCount: number;
  readonly durationMs: number;
  /** Undefined if it is done. */
  readonly error: unknown;
}

/** Middleware that tells of every run. */
export function logged(tell: (line: RunLine) => void): Middleware {
  return (next) => async (task, context) => {
    const startMs = performance.now();
    const over = (error: unknown): void => {
      const { taskId, retryCount } = context;
      tell({ type: task.type, taskId, retryCount, durationMs: performance.now() - startMs, error });
    };
    try {
      await next(task, context);
    } catch (error) {
      over(error);
      throw error;
    }
    over(undefined);
  };
}
