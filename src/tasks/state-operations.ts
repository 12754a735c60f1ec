import type { TaskTarget } from './broker/broker.ts';
import type { ListOptions } from './inspector-options.ts';
import type { TaskInfo } from './task-info.ts';
import { ASYNQ_CHANGES, TASK_STATES, type TaskChange, type TaskState } from './task-state.ts';

/** asynq's names of `list` and `change`, for each state of which asynq has one. */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- the static block defines every operation
export interface StateOperations {
  /** Returns a page of the pending tasks, the next one first. */
  listPendingTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]>;
  /** Returns a page of the active tasks, the oldest first; those whose server is lost too, see `isOrphaned`. */
  listActiveTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]>;
  /** Returns a page of the scheduled tasks, the earliest first. */
  listScheduledTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]>;
  /** Returns a page of the retry tasks, the earliest first. */
  listRetryTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]>;
  /** Returns a page of the archived tasks, the oldest first. */
  listArchivedTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]>;
  /** Returns a page of the completed tasks, the oldest first. */
  listCompletedTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]>;
  /** Returns a page of the aggregating tasks of a group, the oldest first. */
  listAggregatingTasks(queue: string, group: string, options?: ListOptions): Promise<readonly TaskInfo[]>;
  /** Deletes all pending tasks. @returns how many. */
  deleteAllPendingTasks(queue: string): Promise<number>;
  /** Deletes all scheduled tasks. @returns how many. */
  deleteAllScheduledTasks(queue: string): Promise<number>;
  /** Deletes all retry tasks. @returns how many. */
  deleteAllRetryTasks(queue: string): Promise<number>;
  /** Deletes all archived tasks. @returns how many. */
  deleteAllArchivedTasks(queue: string): Promise<number>;
  /** Deletes all completed tasks. @returns how many. */
  deleteAllCompletedTasks(queue: string): Promise<number>;
  /** Deletes all tasks of a group. @returns how many. */
  deleteAllAggregatingTasks(queue: string, group: string): Promise<number>;
  /** Makes all scheduled tasks pending. @returns how many. */
  runAllScheduledTasks(queue: string): Promise<number>;
  /** Makes all retry tasks pending. @returns how many. */
  runAllRetryTasks(queue: string): Promise<number>;
  /** Makes all archived tasks pending. @returns how many. */
  runAllArchivedTasks(queue: string): Promise<number>;
  /** Makes all tasks of a group pending. @returns how many. */
  runAllAggregatingTasks(queue: string, group: string): Promise<number>;
  /** Archives all pending tasks. @returns how many. */
  archiveAllPendingTasks(queue: string): Promise<number>;
  /** Archives all scheduled tasks. @returns how many. */
  archiveAllScheduledTasks(queue: string): Promise<number>;
  /** Archives all retry tasks. @returns how many. */
  archiveAllRetryTasks(queue: string): Promise<number>;
  /** Archives all tasks of a group. @returns how many. */
  archiveAllAggregatingTasks(queue: string, group: string): Promise<number>;
}

export abstract class StateOperations {
  abstract list(
    queue: string,
    state: TaskState,
    options?: ListOptions,
    group?: string,
  ): Promise<readonly TaskInfo[]>;

  abstract change(queue: string, target: TaskTarget, change: TaskChange): Promise<number>;

  static {
    const define = (
      name: string,
      value: (this: StateOperations, queue: string, ...rest: never[]) => unknown,
    ): void => {
      Object.defineProperty(this.prototype, name, { value, writable: true, configurable: true });
    };
    for (const state of TASK_STATES) {
      const tasks = `${state.charAt(0).toUpperCase()}${state.slice(1)}Tasks`;
      if (state === 'aggregating') {
        define(`list${tasks}`, function (queue, group: string, options?: ListOptions) {
          return this.list(queue, state, options, group);
        });
      } else {
        define(`list${tasks}`, function (queue, options?: ListOptions) {
          return this.list(queue, state, options);
        });
      }
      for (const change of ASYNQ_CHANGES[state]) {
        define(`${change}All${tasks}`, function (queue, group?: string) {
          return this.change(queue, state === 'aggregating' ? { state, group } : { state }, change);
        });
      }
    }
  }
}
