/** A client, a broker and a server in one process, and the tasks that they process. */
import { Client, EmbeddedBroker, Server, Task } from 'escapement/tasks';
import type { Broker, EmbeddedBrokerOptions, Handler, ReceivedTask, TaskState } from 'escapement/tasks';
import type { CountedQueue, Payload } from '../redis/contestant.ts';
import type { Work } from '../workqueue/jobs.ts';

const nothing = (): void => undefined;

export class OurTasks {
  readonly client: Client;
  readonly #broker: Broker;
  #server: Server | undefined;

  constructor(broker: Broker) {
    this.#broker = broker;
    this.client = new Client({ broker });
  }

  static async open(options?: EmbeddedBrokerOptions): Promise<OurTasks> {
    return new OurTasks(await EmbeddedBroker.open(options));
  }

  /** @param onDone - called when the broker has recorded that a task is done. */
  async start(
    concurrency: number,
    handler: Handler = nothing,
    onDone?: (task: ReceivedTask) => void,
  ): Promise<void> {
    this.#server = new Server({ broker: this.#broker, concurrency });
    if (onDone !== undefined) {
      this.#server.on('completed', ({ task }) => onDone(task));
    }
    await this.#server.start(handler);
  }

  /** Returns the number of tasks in the states. */
  async count(...states: readonly TaskState[]): Promise<number> {
    const { counts } = await this.#broker.queueStats('default');
    return states.reduce((sum, state) => sum + counts[state], 0);
  }

  async close(): Promise<void> {
    await this.#server?.shutdown();
    await this.#broker.close();
  }
}

const TYPE = 'work';

/** Our tasks among the queues that are compared. */
export function taskQueue(tasks: OurTasks): CountedQueue {
  const { client } = tasks;
  return {
    add: (payload) => client.enqueue(new Task(TYPE, payload)),
    addMany: (payloads) =>
      enqueueTogether(
        client,
        payloads.map((payload) => new Task(TYPE, payload)),
      ),
    work: (concurrency, handle, onDone) => tasks.start(concurrency, withPayload(handle), withPayload(onDone)),
    left: () => tasks.count('pending', 'active', 'retry', 'archived'),
    close: () => tasks.close(),
  };
}

function withPayload(handle?: (payload: Payload) => void): ((task: ReceivedTask) => void) | undefined {
  if (handle === undefined) return undefined;
  return (task) => handle(task.json<Payload>());
}

async function enqueueTogether(client: Client, tasks: readonly Task[]): Promise<void> {
  const rejected = (await client.enqueueMany(tasks)).find(({ status }) => status === 'rejected');
  if (rejected !== undefined) throw new Error('a task was rejected', { cause: rejected });
}

export function handlerOf(jobs: Work): Handler {
  return ({ type }) => jobs.work(type);
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

export const together: EnqueueAll = (client, keys) => enqueueTogether(client, keys.map(taskOf));
