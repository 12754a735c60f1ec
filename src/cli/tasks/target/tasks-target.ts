import { BrokerSource, type TasksSource } from '../../../dashboard/tasks-source.ts';
import type { Defect } from '../../../tasks/broker/broker.ts';
import { Client } from '../../../tasks/client.ts';
import type { TaskView } from '../../../tasks/http/asynqmon-json.ts';
import type { QueueInfo, TaskInfo } from '../../../tasks/info.ts';
import type { CancelOptions, RepairOptions } from '../../../tasks/inspector-options.ts';
import type { TaskState } from '../../../tasks/task-state.ts';
import type { Task } from '../../../tasks/task.ts';

/** All tasks in a state; of aggregating tasks, those of a group. */
export interface TasksOfState {
  readonly queue: string;
  readonly state: TaskState;
  /** Defined if, and only if, the state is `aggregating`. */
  readonly group: string | undefined;
}

/**
 * What the commands work on: the operations of an inspector that the HTTP API has too, and some more. They reject with an
 * `EscapementError`, or with the `HttpError` of the API.
 */
export interface TasksTarget extends TasksSource {
  /** Damaged parts of a folder that were left out. */
  readonly damages?: number;
  enqueue(task: Task): Promise<TaskView>;
  /** @returns whether the server that runs it has answered; undefined if there is no answer to wait for. */
  cancelProcessing(
    id: string,
    options: Required<Pick<CancelOptions, 'queue' | 'outcome'>>,
  ): Promise<boolean | undefined>;
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
    const { values, failures } = await this.readAll();
    if (failures.length > 0) throw failures[0];
    return values;
  }

  enqueue(task: Task): Promise<TaskInfo> {
    return new Client({ broker: this.broker }).enqueue(task);
  }
}
