import { EscapementError } from '../../../core/errors.ts';
import type { Broker, Defect, GroupInfo, TaskTarget } from '../../../tasks/broker/broker.ts';
import { Client } from '../../../tasks/client.ts';
import type { RedisBroker } from '../../../tasks/broker/redis/redis-broker.ts';
import type { DailyStats, SchedulerEnqueueEvent } from '../../../tasks/inspector-info.ts';
import { Inspector } from '../../../tasks/inspector.ts';
import { TaskInfo } from '../../../tasks/task-info.ts';
import { Task } from '../../../tasks/task.ts';
import type { TaskChange } from '../../../tasks/task-state.ts';
import { CommandError } from '../../command-error.ts';
import {
  NotActive,
  type Cancelling,
  type Enqueuing,
  type EntryView,
  type PageView,
  type QueueView,
  type ServerView,
  type TaskList,
  type TasksTarget,
  type TaskView,
} from './tasks-target.ts';

/** What a broker keeps. */
export class BrokerTarget implements TasksTarget {
  readonly name: string;
  readonly #broker: Broker & { readonly info?: RedisBroker['info'] };
  readonly #inspector: Inspector;

  /** @param broker - closed with the target. If it is on Redis it can say what that says of itself. */
  constructor(name: string, broker: Broker & { readonly info?: RedisBroker['info'] }) {
    this.name = name;
    this.#broker = broker;
    this.#inspector = new Inspector({ broker });
  }

  async close(): Promise<void> {
    await this.#inspector.close();
    await this.#broker.close();
  }

  async redisInfo(): Promise<Readonly<Record<string, string>> | undefined> {
    return await this.#broker.info?.();
  }

  async queues(): Promise<readonly QueueView[]> {
    const names = [...(await this.#inspector.queues())].sort();
    const views = await Promise.all(names.map((name) => this.#queueIfThere(name)));
    return views.filter((view) => view !== undefined);
  }

  queue(name: string): Promise<QueueView> {
    return this.#inspector.getQueueInfo(name);
  }

  history(queue: string, days: number): Promise<readonly DailyStats[]> {
    return this.#inspector.history(queue, days);
  }

  /** Of a queue that is not there, a broker has none. */
  async groups(queue: string): Promise<readonly GroupInfo[]> {
    await this.#inspector.getQueueInfo(queue);
    return this.#inspector.groups(queue);
  }

  /** Pausing does not ask whether the queue is there: a mistyped name would be paused for ever. */
  async pauseQueue(queue: string): Promise<void> {
    await this.#inspector.getQueueInfo(queue);
    await this.#inspector.pauseQueue(queue);
  }

  async resumeQueue(queue: string): Promise<void> {
    await this.#inspector.getQueueInfo(queue);
    await this.#inspector.unpauseQueue(queue);
  }

  async removeQueue(queue: string, force: boolean): Promise<void> {
    try {
      await this.#inspector.deleteQueue(queue, { force });
    } catch (error) {
      if (force || !hasCode(error, 'ERR_QUEUE_NOT_EMPTY')) throw error;
      throw new CommandError(`${error.message}; --force removes them too`, { cause: error });
    }
  }

  async tasks({ queue, state, group }: TaskList, { page, pageSize }: PageView): Promise<readonly TaskView[]> {
    return (await this.#broker.tasks(queue, state, { page, size: pageSize }, group)).map(
      (record) => new TaskInfo(record),
    );
  }

  task(queue: string, id: string): Promise<TaskView> {
    return this.#inspector.getTaskInfo(queue, id);
  }

  async enqueue({ type, payload, options }: Enqueuing): Promise<TaskView> {
    const client = new Client({ broker: this.#broker });
    const task = new Task(type, payload === undefined ? undefined : Buffer.from(payload), options);
    return client.enqueue(task);
  }

  change(queue: string, target: TaskTarget, change: TaskChange): Promise<number> {
    return this.#inspector.change(queue, target, change);
  }

  async cancelTask({ id, queue, outcome }: Cancelling): Promise<boolean> {
    const queues = queue === undefined ? await this.#inspector.queues() : [queue];
    const areActive = await Promise.all(queues.map((name) => this.#isActive(name, id)));
    if (!areActive.includes(true)) throw new NotActive(id);
    return this.#inspector.cancelProcessing(id, { queue, outcome });
  }

  repair(queues: readonly string[] | undefined, apply: boolean): Promise<readonly Defect[]> {
    return this.#inspector.repair({ queues, apply });
  }

  servers(): Promise<readonly ServerView[]> {
    return this.#inspector.servers();
  }

  entries(): Promise<readonly EntryView[]> {
    return this.#inspector.schedulerEntries();
  }

  events(entryId: string, page: PageView): Promise<readonly SchedulerEnqueueEvent[]> {
    return this.#inspector.listSchedulerEnqueueEvents(entryId, page);
  }

  async #queueIfThere(name: string): Promise<QueueView | undefined> {
    try {
      return await this.#inspector.getQueueInfo(name);
    } catch (error) {
      if (hasCode(error, 'ERR_QUEUE_NOT_FOUND')) return undefined;
      throw error;
    }
  }

  async #isActive(queue: string, id: string): Promise<boolean> {
    try {
      return (await this.task(queue, id)).state === 'active';
    } catch (error) {
      if (hasCode(error, 'ERR_QUEUE_NOT_FOUND') || hasCode(error, 'ERR_TASK_NOT_FOUND')) return false;
      throw error;
    }
  }
}

function hasCode(error: unknown, code: EscapementError['code']): error is EscapementError {
  return error instanceof EscapementError && error.code === code;
}
