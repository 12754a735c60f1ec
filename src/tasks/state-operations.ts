import type { TaskTarget } from './broker/broker.ts';
import type { ListOptions } from './inspector-options.ts';
import type { TaskInfo } from './info.ts';
import type { TaskChange, TaskState } from './task-state.ts';

/** asynq's names of `list` and `change`, for each state of which asynq has one. */
export abstract class StateOperations {
  abstract list(
    queue: string,
    state: TaskState,
    options?: ListOptions,
    group?: string,
  ): Promise<readonly TaskInfo[]>;

  abstract change(queue: string, target: TaskTarget, change: TaskChange): Promise<number>;

  /** Returns a page of the pending tasks, the next one first. */
  listPendingTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'pending', options);
  }

  /** Returns a page of the active tasks, the oldest first; those whose server is lost too, see `isOrphaned`. */
  listActiveTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'active', options);
  }

  /** Returns a page of the scheduled tasks, the earliest first. */
  listScheduledTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'scheduled', options);
  }

  /** Returns a page of the retry tasks, the earliest first. */
  listRetryTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'retry', options);
  }

  /** Returns a page of the archived tasks, the oldest first. */
  listArchivedTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'archived', options);
  }

  /** Returns a page of the completed tasks, the oldest first; on Redis, the first that expires. */
  listCompletedTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'completed', options);
  }

  /** Returns a page of the aggregating tasks of a group, the oldest first; behind them those that are being aggregated. */
  listAggregatingTasks(queue: string, group: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'aggregating', options, group);
  }

  /** Deletes all pending tasks. @returns how many. */
  deleteAllPendingTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'pending' }, 'delete');
  }

  /** Deletes all scheduled tasks. @returns how many. */
  deleteAllScheduledTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'scheduled' }, 'delete');
  }

  /** Deletes all retry tasks. @returns how many. */
  deleteAllRetryTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'retry' }, 'delete');
  }

  /** Deletes all archived tasks. @returns how many. */
  deleteAllArchivedTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'archived' }, 'delete');
  }

  /** Deletes all completed tasks. @returns how many. */
  deleteAllCompletedTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'completed' }, 'delete');
  }

  /** Deletes all tasks of a group. @returns how many. */
  deleteAllAggregatingTasks(queue: string, group: string): Promise<number> {
    return this.change(queue, { state: 'aggregating', group }, 'delete');
  }

  /** Makes all scheduled tasks pending. @returns how many. */
  runAllScheduledTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'scheduled' }, 'run');
  }

  /** Makes all retry tasks pending. @returns how many. */
  runAllRetryTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'retry' }, 'run');
  }

  /** Makes all archived tasks pending. @returns how many. */
  runAllArchivedTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'archived' }, 'run');
  }

  /** Makes all tasks of a group pending. @returns how many. */
  runAllAggregatingTasks(queue: string, group: string): Promise<number> {
    return this.change(queue, { state: 'aggregating', group }, 'run');
  }

  /** Archives all pending tasks. @returns how many. */
  archiveAllPendingTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'pending' }, 'archive');
  }

  /** Archives all scheduled tasks. @returns how many. */
  archiveAllScheduledTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'scheduled' }, 'archive');
  }

  /** Archives all retry tasks. @returns how many. */
  archiveAllRetryTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'retry' }, 'archive');
  }

  /** Archives all tasks of a group. @returns how many. */
  archiveAllAggregatingTasks(queue: string, group: string): Promise<number> {
    return this.change(queue, { state: 'aggregating', group }, 'archive');
  }
}
