import { EscapementError, ManualClock } from 'escapement';
import {
  type Broker,
  Client,
  EmbeddedBroker,
  Inspector,
  Task,
  type LeasedTask,
  type TaskOptions,
} from 'escapement/tasks';
import { test as base } from 'vitest';

/** When the wall clock of a bench begins: noon of some day. */
export const START_MS = Date.UTC(2026, 10, 21, 12);

/** A time of a bench, as JSON has it. */
export const at = (ms: number): string => new Date(START_MS + ms).toISOString();

/** The error of a broker that cannot be reached. */
export const unavailable = (): EscapementError => new EscapementError('ERR_BROKER_UNAVAILABLE', 'no answer');

/** The code of the error with which an operation rejects, or undefined if it resolves. */
export function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => (error as { code: unknown }).code,
  );
}

/** A function that throws. */
export function raise(error: unknown): () => never {
  return () => {
    throw error as Error;
  };
}

/** An object of which nothing can be read. */
export function unreadable(): object {
  const refuse = raise(new Error('do not look'));
  return new Proxy({}, { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse });
}

/** A broker on a clock that stands still, and whoever uses it. */
export interface Bench<B extends Broker = EmbeddedBroker> {
  readonly clock: ManualClock;
  readonly broker: B;
  readonly client: Client;
  readonly inspector: Inspector;
  /** Enqueues a task of type `work`. */
  readonly add: (id: string, options?: TaskOptions) => Promise<void>;
  /** Leases the next task of a queue. */
  readonly lease: (queue?: string) => Promise<LeasedTask>;
}

export async function openBench(): Promise<Bench> {
  const clock = new ManualClock({ nowMs: 1_000, wallMs: START_MS });
  return benchOf(clock, await EmbeddedBroker.open({ clock }));
}

/** A test with a bench of its own, whose parts it picks. */
export const test = base
  .extend('bench', () => openBench())
  .extend('clock', ({ bench }) => bench.clock)
  .extend('broker', ({ bench }) => bench.broker)
  .extend('client', ({ bench }) => bench.client)
  .extend('inspector', ({ bench }) => bench.inspector)
  .extend('add', ({ bench }) => bench.add)
  .extend('lease', ({ bench }) => bench.lease);

export function benchOf<B extends Broker>(clock: ManualClock, broker: B): Bench<B> {
  const client = new Client({ broker });
  return {
    clock,
    broker,
    client,
    inspector: new Inspector({ broker }),
    add: async (taskId, options = {}) => {
      await client.enqueue(new Task('work', { id: taskId }), { taskId, ...options });
    },
    lease: async (queue = 'default') => {
      const [task] = await broker.dequeue(queue, 1, 30_000);
      if (task === undefined) throw new Error(`queue '${queue}' has nothing to lease`);
      return task;
    },
  };
}
