import type { Broker, TaskRecord } from '../tasks/broker/broker.ts';
import type { EntryView, QueueView, ServerView, TaskView } from '../tasks/http/asynqmon-json.ts';
import { readQueues, requestCancel } from '../tasks/http/asynqmon-routes.ts';
import { type QueueInfo, TaskInfo } from '../tasks/info.ts';
import type { ListOptions } from '../tasks/inspector-options.ts';
import { Inspector } from '../tasks/inspector.ts';
import type { TaskState } from '../tasks/task-state.ts';

type OfInspector =
  | 'history'
  | 'groups'
  | 'limits'
  | 'setLimits'
  | 'keys'
  | 'pauseQueue'
  | 'unpauseQueue'
  | 'deleteQueue'
  | 'change';

/** A task, with what its view lacks. */
export interface SourceTask extends TaskView {
  readonly uniqueKey?: string;
  /** The last progress, as JSON: numbers are exact. */
  readonly progressJson?: string | undefined;
}

/**
 * Queues and tasks, as the dashboard and the command need them: an inspector of a broker, or the HTTP API of another process.
 *
 * For the dashboard, operations reject with an `EscapementError`, whose code decides the status of the response, or with an `HttpError`; any other error is
 * reported, and the response is 500. Without `scan`, pages are read.
 */
export interface TasksSource
  extends Pick<Inspector, OfInspector | 'listSchedulerEnqueueEvents'>, Partial<Pick<Inspector, 'scan'>> {
  /** Where the tasks are, without a password: `redis://host:6379/0`, a folder, `memory`. */
  readonly name: string;
  /** The folder of an embedded broker. */
  readonly dataPath?: string | undefined;
  /** Returns all queues, by name. A queue that is removed meanwhile is left out. */
  queueInfos(): Promise<readonly QueueView[]>;
  getQueueInfo(queue: string): Promise<QueueView>;
  list(
    queue: string,
    state: TaskState,
    page: Required<ListOptions>,
    group: string | undefined,
  ): Promise<readonly SourceTask[]>;
  getTaskInfo(queue: string, id: string): Promise<SourceTask>;
  /** Requests the run of an active task to stop, and does not wait for an answer. */
  cancelTask(queue: string, id: string): Promise<void>;
  servers(): Promise<readonly ServerView[]>;
  schedulerEntries(): Promise<readonly EntryView[]>;
  /** Returns what Redis reports about itself; undefined if the tasks are not there. */
  redisInfo?(): Promise<Readonly<Record<string, string>> | undefined>;
}

/** What some brokers have besides the interface. */
interface BrokerDetails {
  readonly dataPath?: string | undefined;
  readonly address?: string;
  info?(): Promise<Readonly<Record<string, string>>>;
}

/** The tasks of a broker. */
export class BrokerSource extends Inspector implements TasksSource {
  readonly name: string;
  readonly dataPath: string | undefined;
  protected readonly broker: Broker & BrokerDetails;

  constructor(broker: Broker & BrokerDetails, name = broker.address ?? broker.dataPath ?? 'memory') {
    super({ broker });
    this.broker = broker;
    this.dataPath = broker.dataPath;
    this.name = name;
  }

  /** Leaves out a queue that cannot be read, unless the broker is unavailable or no queue can be read. */
  async queueInfos(): Promise<readonly QueueInfo[]> {
    return (await this.readAll()).values;
  }

  protected async readAll(): ReturnType<typeof readQueues<QueueInfo>> {
    const names = [...(await this.queues())].sort();
    return readQueues(names, (name) => this.getQueueInfo(name));
  }

  protected override infoOf(record: TaskRecord): TaskInfo {
    return new BrokerTask(record);
  }

  cancelTask(queue: string, id: string): Promise<void> {
    return requestCancel(this, queue, id);
  }

  async redisInfo(): Promise<Readonly<Record<string, string>> | undefined> {
    return await this.broker.info?.();
  }
}

/** Its own fields are those of an info, so that it is printed as one: the others are getters. */
class BrokerTask extends TaskInfo implements SourceTask {
  readonly #record: TaskRecord;

  constructor(record: TaskRecord) {
    super(record);
    this.#record = record;
  }

  get uniqueKey(): string {
    return this.#record.message.uniqueKey;
  }

  get progressJson(): string | undefined {
    return this.#record.progress;
  }
}
