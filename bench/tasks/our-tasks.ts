/** Ours, in the ways in which tasks can be enqueued and handled. */
import { Client, EmbeddedBroker, Server, Task, type Handler, type TaskState } from 'escapement/tasks';
import type { Work } from '../workqueue/jobs.ts';
import type { TaskQueue, TaskQueueKind } from './task-queue.ts';

/** A broker, a client, and a server that can be started when there is something to do. */
export class OurTasks {
  readonly client: Client;
  readonly #broker: EmbeddedBroker;
  readonly #server: Server;

  constructor(broker: EmbeddedBroker, concurrency: number) {
    this.#broker = broker;
    this.client = new Client({ broker });
    this.#server = new Server({ broker, concurrency });
  }

  static async open(concurrency: number): Promise<OurTasks> {
    return new OurTasks(await EmbeddedBroker.open(), concurrency);
  }

  start(handler: Handler): Promise<void> {
    return this.#server.start(handler);
  }

  /** How many tasks are in a state. */
  async count(state: TaskState): Promise<number> {
    return (await this.#broker.queueStats('default')).counts[state];
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

function asyncHandlerOf(jobs: Work): Handler {
  // eslint-disable-next-line @typescript-eslint/require-await -- what it costs that a handler is async
  return async ({ type }) => {
    jobs.work(type);
  };
}

/** Tasks that were made before, one for each key. */
const tasks = new Map<string, Task>();

export function taskOf(key: string): Task {
  let task = tasks.get(key);
  if (task === undefined) {
    task = new Task(key, { key });
    tasks.set(key, task);
  }
  return task;
}

type AddAll = (client: Client, keys: readonly string[]) => Promise<unknown>;

const oneByOne: AddAll = (client, keys) => Promise.all(keys.map((key) => client.enqueue(taskOf(key))));

const madeAnew: AddAll = (client, keys) =>
  Promise.all(keys.map((key) => client.enqueue(new Task(key, { key }))));

const together: AddAll = async (client, keys) => {
  const refused = (await client.enqueueMany(keys.map(taskOf))).find(({ status }) => status === 'rejected');
  if (refused !== undefined) throw new Error('a task was refused', { cause: refused });
};

function kind(
  name: string,
  note: string,
  makeHandler: (jobs: Work) => Handler,
  addAll: AddAll,
): TaskQueueKind {
  return {
    name,
    role: 'ours',
    note,
    open: async (jobs, concurrency): Promise<TaskQueue> => {
      const ours = await OurTasks.open(concurrency);
      await ours.start(makeHandler(jobs));
      return { addAll: (keys) => addAll(ours.client, keys), close: () => ours.close() };
    },
  };
}

export const OURS = 'ours: enqueue';
const NOTE = 'who enqueues waits for all of the burst to be taken.';
const MANY_NOTE = 'the burst in one call.';

export const enqueueSync = kind(OURS, NOTE, handlerOf, oneByOne);
export const enqueueManySync = kind('ours: enqueueMany', MANY_NOTE, handlerOf, together);
export const newTaskSync = kind(
  'ours: a new Task each',
  'its payload becomes JSON meanwhile.',
  handlerOf,
  madeAnew,
);
export const enqueueAsync = kind(OURS, NOTE, asyncHandlerOf, oneByOne);
export const enqueueManyAsync = kind('ours: enqueueMany', MANY_NOTE, asyncHandlerOf, together);
