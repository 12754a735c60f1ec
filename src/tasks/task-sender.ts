import type { Clock } from '../core/clock.ts';
import type { TaskBroker, TaskRecord } from './broker/broker.ts';
import { newTaskOf, type TaskOptions } from './task-options.ts';
import type { Task } from './task.ts';

/** A task that is being enqueued. */
export interface EnqueueRequest {
  /** The task. */
  readonly task: Task;
  /** Options that override those of the task. */
  readonly options: TaskOptions;
}

/**
 * How a client enqueues tasks: in a broker, or in the process that has one. Tasks and options have been checked, and the options are
 * all of the task: see `optionsOf`.
 */
export interface TaskSender {
  /** Where the tasks go, for a console. */
  readonly destination: object;
  readonly clock: Clock;
  enqueue(task: Task, options: TaskOptions): Promise<TaskRecord>;
  /** @returns outcomes in the order of the requests. */
  enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly PromiseSettledResult<TaskRecord>[]>;
}

/** Adds tasks to a broker. */
export class BrokerSender implements TaskSender {
  readonly #broker: TaskBroker;

  constructor(broker: TaskBroker) {
    this.#broker = broker;
  }

  get destination(): object {
    return { broker: this.#broker };
  }

  get clock(): Clock {
    return this.#broker.clock;
  }

  enqueue(task: Task, options: TaskOptions): Promise<TaskRecord> {
    return this.#broker.enqueue(newTaskOf(task, options, this.#broker.clock));
  }

  enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return this.#broker.enqueueMany(
      requests.map(({ task, options }) => newTaskOf(task, options, this.#broker.clock)),
    );
  }
}
