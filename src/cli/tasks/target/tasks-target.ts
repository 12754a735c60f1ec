import type { CancelOutcome, Defect, GroupInfo, TaskTarget } from '../../../tasks/broker/broker.ts';
import type {
  DailyStats,
  QueueInfo,
  SchedulerEnqueueEvent,
  SchedulerEntryInfo,
  ServerInfo,
  WorkerInfo,
} from '../../../tasks/inspector-info.ts';
import type { TaskInfo } from '../../../tasks/task-info.ts';
import type { TaskOptions } from '../../../tasks/task-options.ts';
import type { TaskChange, TaskState } from '../../../tasks/task-state.ts';
import { CommandError } from '../../command-error.ts';

/** Thrown by `cancelTask`: there is nothing to cancel. */
export class NotActive extends CommandError {
  constructor(id: string) {
    super(`there is no active task '${id}'`);
  }
}

/** Bytes of a user; over the HTTP API, only what it shows of them: shortened, or a word that they are no text. */
export type Content = Uint8Array | { readonly shown: string };

/** A queue. Over the HTTP API nobody knows the totals. */
export type QueueView = Omit<QueueInfo, 'processedTotal' | 'failedTotal'> &
  Partial<Pick<QueueInfo, 'processedTotal' | 'failedTotal'>>;

type Known = 'id' | 'queue' | 'type' | 'state' | 'maxRetry' | 'retried' | 'lastError';

/** A task. What is left out is not known: lists of the HTTP API say less than a look at one task. */
export type TaskView = Pick<TaskInfo, Known> &
  Partial<Omit<TaskInfo, Known | 'payload' | 'result'>> & {
    readonly payload: Content;
    /** Undefined if there is none. */
    readonly result?: Content | undefined;
  };

/** A run. Over the HTTP API nobody knows its deadline. */
export type WorkerView = Omit<WorkerInfo, 'taskPayload' | 'deadline'> &
  Partial<Pick<WorkerInfo, 'deadline'>> & { readonly taskPayload: Content };

/** A server, with what it processes. */
export type ServerView = Omit<ServerInfo, 'activeWorkers'> & {
  readonly activeWorkers: readonly WorkerView[];
};

/** An entry of a scheduler. */
export type EntryView = Omit<SchedulerEntryInfo, 'taskPayload'> & { readonly taskPayload: Content };

/** All tasks of a state; of `aggregating`, those of a group. */
export interface TaskList {
  readonly queue: string;
  readonly state: TaskState;
  /** Needed if, and only if, they are aggregating. */
  readonly group: string | undefined;
}

/** A part of a list. */
export interface PageView {
  /** From 1. */
  readonly page: number;
  /** From 1 to 1000. */
  readonly pageSize: number;
}

/** A run that is to stop. */
export interface Cancelling {
  readonly id: string;
  /** Undefined for any. */
  readonly queue: string | undefined;
  /** What becomes of the task. */
  readonly outcome: CancelOutcome;
}

/** A task that is to be added. */
export interface Enqueuing {
  readonly type: string;
  /** Undefined for none. */
  readonly payload: string | undefined;
  readonly options: TaskOptions;
}

/**
 * What the commands look at and change: all that they need, whether it is reached through a broker or over HTTP. Rejects
 * with an error that `describeError` has one line for: `ERR_QUEUE_NOT_FOUND`, `ERR_TASK_STATE`, …, or a CommandError.
 */
export interface TasksTarget {
  /** Where it is, for people; without a password. */
  readonly name: string;
  /** Nothing is asked any more. */
  close(): Promise<void>;

  /** What Redis says of itself; undefined if there is none, or nobody can ask it. */
  redisInfo(): Promise<Readonly<Record<string, string>> | undefined>;

  /** All queues, by name. One that is removed meanwhile is left out. */
  queues(): Promise<readonly QueueView[]>;
  queue(name: string): Promise<QueueView>;
  /** Today first. */
  history(queue: string, days: number): Promise<readonly DailyStats[]>;
  groups(queue: string): Promise<readonly GroupInfo[]>;
  pauseQueue(queue: string): Promise<void>;
  resumeQueue(queue: string): Promise<void>;
  removeQueue(queue: string, force: boolean): Promise<void>;

  tasks(list: TaskList, page: PageView): Promise<readonly TaskView[]>;
  task(queue: string, id: string): Promise<TaskView>;
  enqueue(task: Enqueuing): Promise<TaskView>;
  /** @returns how many tasks were changed. */
  change(queue: string, target: TaskTarget, change: TaskChange): Promise<number>;
  /**
   * @returns whether the server that runs it has answered; undefined if no answer is waited for.
   * @throws NotActive
   */
  cancelTask(cancelling: Cancelling): Promise<boolean | undefined>;

  /** @param queues - undefined for all. @param apply - whether what is found is seen to. */
  repair(queues: readonly string[] | undefined, apply: boolean): Promise<readonly Defect[]>;

  servers(): Promise<readonly ServerView[]>;
  entries(): Promise<readonly EntryView[]>;
  /** The newest first. */
  events(entryId: string, page: PageView): Promise<readonly SchedulerEnqueueEvent[]>;
}
