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

/** How a client enqueues tasks: in a broker, or in the process that has one. Tasks and options have been checked. */
export interface TaskSender {
  /** Where the tasks go, for a console. */
  readonly destination: object;
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

  enqueue(task: Task, options: TaskOptions): Promise<TaskRecord> {
    return this.#broker.enqueue(newTaskOf(task, options, this.#nowFor(task, options)));
  }

  enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return this.#broker.enqueueMany(
      requests.map(({ task, options }) => newTaskOf(task, options, this.#nowFor(task, options))),
    );
  }

  /** Reads the clock only for a delay: that takes as long as finding a task. */
  #nowFor(task: Task, options: TaskOptions): number {
    const hasDelay = (options.processInMs ?? task.options.processInMs) !== undefined;
    return hasDelay ? this.#broker.clock.wallNow() : 0;
  }
}
