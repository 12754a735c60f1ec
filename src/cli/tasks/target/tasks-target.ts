import { EscapementError } from '../../../core/errors.ts';
import type { Broker, CancelOutcome, Defect } from '../../../tasks/broker/broker.ts';
import type { RedisBroker } from '../../../tasks/broker/redis/redis-broker.ts';
import { Client } from '../../../tasks/client.ts';
import type { EntryView, QueueView, ServerView, TaskView } from '../../../tasks/http/asynqmon-json.ts';
import type { QueueInfo } from '../../../tasks/inspector-info.ts';
import type { ListOptions, RepairOptions } from '../../../tasks/inspector-options.ts';
import { Inspector } from '../../../tasks/inspector.ts';
import type { TaskInfo } from '../../../tasks/task-info.ts';
import type { TaskOptions } from '../../../tasks/task-options.ts';
import type { TaskState } from '../../../tasks/task-state.ts';
import { Task } from '../../../tasks/task.ts';
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
  readonly outcome: CancelOutcome;
}

type OfInspector =
  'close' | 'history' | 'groups' | 'limits' | 'setLimits' | 'keys' | 'pauseQueue' | 'unpauseQueue' | 'change';

/**
 * The operations of the commands, over a broker or over HTTP. They are those of an inspector, except that HTTP has views instead of
 * infos. They reject with errors for which `describeError` has one line: `ERR_QUEUE_NOT_FOUND`, `ERR_TASK_STATE`, …, or a CommandError.
 */
export interface TasksTarget extends Pick<Inspector, OfInspector | 'listSchedulerEnqueueEvents'> {
  /** Where it is, for messages; without a password. */
  readonly name: string;
  /** Damaged parts of a folder that were left out. */
  readonly damages?: number;

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
  /** @returns whether the server that runs it has answered; undefined if there is no answer to wait for. @throws NotActive */
  cancelTask(cancelling: Cancelling): Promise<boolean | undefined>;

  repair(options: RepairOptions): Promise<readonly Defect[]>;
  servers(): Promise<readonly ServerView[]>;
  schedulerEntries(): Promise<readonly EntryView[]>;
}

type BrokerWithInfo = Broker & { readonly info?: RedisBroker['info'] };

export class BrokerTarget extends Inspector implements TasksTarget {
  readonly name: string;
  damages = 0;
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

  // An unknown queue has no groups, no limits and no keys; here that is an error.

  override async groups(queue: string): ReturnType<Inspector['groups']> {
    await this.getQueueInfo(queue);
    return super.groups(queue);
  }

  override async limits(queue: string): ReturnType<Inspector['limits']> {
    await this.getQueueInfo(queue);
    return super.limits(queue);
  }

  override async keys(queue: string, page: ListOptions): ReturnType<Inspector['keys']> {
    await this.getQueueInfo(queue);
    return super.keys(queue, page);
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
