/** A client, an embedded broker and a server in one process, and the tasks that they process. */
import {
  Client,
  EmbeddedBroker,
  Server,
  Task,
  type EmbeddedBrokerOptions,
  type Handler,
  type ReceivedTask,
  type TaskState,
} from 'escapement/tasks';
import type { Work } from '../workqueue/jobs.ts';

export class OurTasks {
  readonly client: Client;
  readonly #broker: EmbeddedBroker;
  readonly #server: Server;

  constructor(broker: EmbeddedBroker, concurrency: number) {
    this.#broker = broker;
    this.client = new Client({ broker });
    this.#server = new Server({ broker, concurrency });
  }

  static async open(concurrency: number, options?: EmbeddedBrokerOptions): Promise<OurTasks> {
    return new OurTasks(await EmbeddedBroker.open(options), concurrency);
  }

  start(handler: Handler): Promise<void> {
    return this.#server.start(handler);
  }

  /** Calls the listener when the broker has recorded that a task is done. */
  onDone(listener: (task: ReceivedTask) => void): void {
    this.#server.on('completed', ({ task }) => {
      listener(task);
    });
  }

  /** Returns the number of tasks in the states. */
  async count(...states: readonly TaskState[]): Promise<number> {
    const { counts } = await this.#broker.queueStats('default');
    return states.reduce((sum, state) => sum + counts[state], 0);
  }

  async close(): Promise<void> {
    await this.#server.shutdown();
    await this.#broker.close();
  }
}

export function handlerOf(jobs: Work): Handler {
  return ({ type }) => {
    jobs.work(type);
  };
}

export function asyncHandlerOf(jobs: Work): Handler {
  // eslint-disable-next-line @typescript-eslint/require-await -- measures the cost of an async handler
  return async ({ type }) => {
    jobs.work(type);
  };
}

const tasks = new Map<string, Task>();

/** Returns the task of a key, which is made once. */
function taskOf(key: string): Task {
  let task = tasks.get(key);
  if (task === undefined) {
    task = new Task(key, { key });
    tasks.set(key, task);
  }
  return task;
}

/** Enqueues a task for each key. */
export type EnqueueAll = (client: Client, keys: readonly string[]) => Promise<unknown>;

export const oneByOne: EnqueueAll = (client, keys) =>
  Promise.all(keys.map((key) => client.enqueue(taskOf(key))));

export const madeAnew: EnqueueAll = (client, keys) =>
  Promise.all(keys.map((key) => client.enqueue(new Task(key, { key }))));

export const together: EnqueueAll = async (client, keys) => {
  const rejected = (await client.enqueueMany(keys.map(taskOf))).find(({ status }) => status === 'rejected');
  if (rejected !== undefined) throw new Error('a task was rejected', { cause: rejected });
};
