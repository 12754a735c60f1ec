import { EscapementError } from '../../../core/errors.ts';
import type { Broker } from '../../../tasks/broker/broker.ts';
import type { RedisBroker } from '../../../tasks/broker/redis/redis-broker.ts';
import { Client } from '../../../tasks/client.ts';
import type { QueueInfo } from '../../../tasks/inspector-info.ts';
import { Inspector } from '../../../tasks/inspector.ts';
import type { TaskInfo } from '../../../tasks/task-info.ts';
import type { TaskOptions } from '../../../tasks/task-options.ts';
import { Task } from '../../../tasks/task.ts';
import { CommandError } from '../../command-error.ts';
import { NotActive, type Cancelling, type TasksTarget } from './tasks-target.ts';

type BrokerWithInfo = Broker & { readonly info?: RedisBroker['info'] };

/** The tasks of a broker. */
export class BrokerTarget extends Inspector implements TasksTarget {
  readonly name: string;
  readonly #broker: BrokerWithInfo;

  /** @param broker - closed with the target. */
  constructor(name: string, broker: BrokerWithInfo) {
    super({ broker });
    this.name = name;
    this.#broker = broker;
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#broker.close();
  }

  async redisInfo(): Promise<Readonly<Record<string, string>> | undefined> {
    return await this.#broker.info?.();
  }

  async queueInfos(): Promise<readonly QueueInfo[]> {
    const names = [...(await this.queues())].sort();
    const infos = await Promise.all(names.map((name) => ifFound(this.getQueueInfo(name))));
    return infos.filter((info) => info !== undefined);
  }

  /** An unknown queue has no groups; here it is an error. */
  override async groups(queue: string): ReturnType<Inspector['groups']> {
    await this.getQueueInfo(queue);
    return super.groups(queue);
  }

  /** Pausing does not check that the queue exists: a mistyped name would stay paused. */
  override async pauseQueue(queue: string): Promise<void> {
    await this.getQueueInfo(queue);
    await super.pauseQueue(queue);
  }

  override async unpauseQueue(queue: string): Promise<void> {
    await this.getQueueInfo(queue);
    await super.unpauseQueue(queue);
  }

  async removeQueue(queue: string, force: boolean): Promise<void> {
    try {
      await this.deleteQueue(queue, { force });
    } catch (error) {
      if (force || !hasCode(error, 'ERR_QUEUE_NOT_EMPTY')) throw error;
      throw new CommandError(`${error.message}; --force removes them too`, { cause: error });
    }
  }

  enqueue(type: string, payload: string | undefined, options: TaskOptions): Promise<TaskInfo> {
    const bytes = payload === undefined ? undefined : Buffer.from(payload);
    return new Client({ broker: this.#broker }).enqueue(new Task(type, bytes, options));
  }

  async cancelTask({ id, queue, outcome }: Cancelling): Promise<boolean> {
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
    if (hasCode(error, 'ERR_QUEUE_NOT_FOUND') || hasCode(error, 'ERR_TASK_NOT_FOUND')) return undefined;
    throw error;
  }
}

function hasCode(error: unknown, code: EscapementError['code']): error is EscapementError {
  return error instanceof EscapementError && error.code === code;
}
