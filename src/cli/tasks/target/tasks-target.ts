import { hasCode } from '../../../core/errors.ts';
import { BrokerSource, type TasksSource } from '../../../dashboard/tasks-source.ts';
import type { CancelOutcome, Defect } from '../../../tasks/broker/broker.ts';
import { Client } from '../../../tasks/client.ts';
import type { TaskView } from '../../../tasks/http/asynqmon-json.ts';
import type { QueueInfo } from '../../../tasks/inspector-info.ts';
import type { RepairOptions } from '../../../tasks/inspector-options.ts';
import type { Inspector } from '../../../tasks/inspector.ts';
import type { TaskInfo } from '../../../tasks/task-info.ts';
import type { TaskState } from '../../../tasks/task-state.ts';
import type { Task } from '../../../tasks/task.ts';
import { CommandError } from '../../command-error.ts';

/** Thrown by `cancel`: there is nothing to cancel. */
export class NotActive extends CommandError {
  constructor(id: string) {
    super(`there is no active task '${id}'`);
  }
}

/** All tasks in a state; of aggregating tasks, those of a group. */
export interface TasksOfState {
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
  readonly outcome: CancelOutcome;
}

/**
 * The operations of the commands, over a broker or over HTTP: those of a source, and more. They reject with errors for which
 * `describeError` has one line: `ERR_QUEUE_NOT_FOUND`, `ERR_TASK_STATE`, …, or a CommandError. An unknown queue is an error for all.
 */
export interface TasksTarget extends TasksSource {
  /** Damaged parts of a folder that were left out. */
  readonly damages?: number;
  enqueue(task: Task): Promise<TaskView>;
  /** @returns whether the server that runs it has answered; undefined if there is no answer to wait for. @throws NotActive */
  cancel(cancelling: Cancelling): Promise<boolean | undefined>;
  repair(options: RepairOptions): Promise<readonly Defect[]>;
  close(): Promise<void>;
}

/** The tasks of a broker, which is closed with the target. */
export class BrokerTarget extends BrokerSource implements TasksTarget {
  damages = 0;

  override async close(): Promise<void> {
    await super.close();
    await this.broker.close();
  }

  /** Rejects if a queue cannot be read: a command prints all, or an error. */
  override async queueInfos(): Promise<readonly QueueInfo[]> {
    const names = [...(await this.queues())].sort();
    const infos = await Promise.all(names.map((name) => ifFound(this.getQueueInfo(name))));
    return infos.filter((info) => info !== undefined);
  }

  // An inspector has no groups and no limits of an unknown queue.

  override async groups(queue: string): ReturnType<Inspector['groups']> {
    await this.getQueueInfo(queue);
    return super.groups(queue);
  }

  override async limits(queue: string): ReturnType<Inspector['limits']> {
    await this.getQueueInfo(queue);
    return super.limits(queue);
  }

  override async removeQueue(queue: string, force: boolean): Promise<void> {
    try {
      await super.removeQueue(queue, force);
    } catch (error) {
      if (force || !hasCode(error, 'ERR_QUEUE_NOT_EMPTY')) throw error;
      throw new CommandError(`${error.message}; --force removes them too`, { cause: error });
    }
  }

  enqueue(task: Task): Promise<TaskInfo> {
    return new Client({ broker: this.broker }).enqueue(task);
  }

  async cancel({ id, queue, outcome }: Cancelling): Promise<boolean> {
    const queues = queue === undefined ? await this.queues() : [queue];
    const tasks = await Promise.all(queues.map((name) => ifFound(this.getTaskInfo(name, id))));
    if (!tasks.some((task) => task?.state === 'active')) throw new NotActive(id);
    return this.cancelProcessing(id, { queue, outcome });
  }
}

async function ifFound<R>(promise: Promise<R>): Promise<R | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (hasCode(error, 'ERR_QUEUE_NOT_FOUND', 'ERR_TASK_NOT_FOUND')) return undefined;
    throw error;
  }
}
