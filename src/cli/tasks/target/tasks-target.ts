import type { CancelOutcome, Defect } from '../../../tasks/broker/broker.ts';
import type { EntryView, QueueView, ServerView, TaskView } from '../../../tasks/http/asynqmon-json.ts';
import type { Inspector } from '../../../tasks/inspector.ts';
import type { ListOptions, RepairOptions } from '../../../tasks/inspector-options.ts';
import type { TaskOptions } from '../../../tasks/task-options.ts';
import type { TaskState } from '../../../tasks/task-state.ts';
import { CommandError } from '../../command-error.ts';

/** Thrown by `cancelTask`: there is nothing to cancel. */
export class NotActive extends CommandError {
  constructor(id: string) {
    super(`there is no active task '${id}'`);
  }
}

/** All tasks in a state; of aggregating tasks, those of a group. */
export interface TaskList {
  readonly queue: string;
  readonly state: TaskState;
  /** Defined if, and only if, the state is `aggregating`. */
  readonly group: string | undefined;
}

/** A run to cancel. */
export interface Cancelling {
  readonly id: string;
  /** Undefined for any. */
  readonly queue: string | undefined;
  /** What becomes of the task. */
  readonly outcome: CancelOutcome;
}

type OfInspector = 'close' | 'history' | 'groups' | 'pauseQueue' | 'unpauseQueue' | 'change';

/**
 * The operations of the commands, over a broker or over HTTP. They are those of an inspector, except that HTTP has views instead of
 * infos. They reject with errors for which `describeError` has one line: `ERR_QUEUE_NOT_FOUND`, `ERR_TASK_STATE`, …, or a CommandError.
 */
export interface TasksTarget extends Pick<Inspector, OfInspector | 'listSchedulerEnqueueEvents'> {
  /** Where it is, for messages; without a password. */
  readonly name: string;

  /** Returns what Redis reports about itself; undefined if the tasks are not in Redis, or not reached directly. */
  redisInfo(): Promise<Readonly<Record<string, string>> | undefined>;

  /** Returns all queues, by name. A queue that is removed meanwhile is left out. */
  queueInfos(): Promise<readonly QueueView[]>;
  getQueueInfo(queue: string): Promise<QueueView>;
  removeQueue(queue: string, force: boolean): Promise<void>;

  list(
    queue: string,
    state: TaskState,
    page: Required<ListOptions>,
    group: string | undefined,
  ): Promise<readonly TaskView[]>;
  getTaskInfo(queue: string, id: string): Promise<TaskView>;
  enqueue(type: string, payload: string | undefined, options: TaskOptions): Promise<TaskView>;
  /**
   * @returns whether the server that runs it has answered; undefined if there is no answer to wait for.
   * @throws NotActive
   */
  cancelTask(cancelling: Cancelling): Promise<boolean | undefined>;

  repair(options: RepairOptions): Promise<readonly Defect[]>;
  servers(): Promise<readonly ServerView[]>;
  schedulerEntries(): Promise<readonly EntryView[]>;
}
