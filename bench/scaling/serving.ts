/** A real server in simulated time that serves the parts of a queue: how often does it poll for tasks? */
import { Client, EmbeddedBroker, MAINTENANCE_JOBS, Server, Task } from 'escapement/tasks';
import type { Broker, LeasedTask } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import type { Clock } from 'escapement';
import type { Scenario } from '../lib/kinds.ts';
import { MS_PER_S, rival } from '../lib/part.ts';

export interface RemoteBroker {
  readonly broker: Broker;
  /** Number of calls of `dequeue`. */
  readonly polls: number;
}

/** A broker that behaves like a remote one: it must be polled, and a call takes a round trip of its clock's time. */
export function remoteBroker(local: Broker, roundTripMs: number): RemoteBroker {
  const roundTrip = (): Promise<void> => passed(local.clock, roundTripMs);
  const counts = { polls: 0 };
  const changed: Partial<Broker> = {
    maintenance: MAINTENANCE_JOBS,
    dequeue: async (queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> => {
      counts.polls++;
      await roundTrip();
      return local.dequeue(queue, limit, leaseMs);
    },
    complete: async (task: LeasedTask): Promise<void> => {
      await roundTrip();
      await local.complete(task);
    },
  };
  const broker = new Proxy(local, {
    get: (target, name) => {
      if (Object.hasOwn(changed, name)) return Reflect.get(changed, name) as unknown;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return Object.assign(counts, { broker });
}

const CONCURRENCY = 100;
const ROUND_TRIP_MS = 0.5;
const HANDLER_MS = 10;
const IDLE_MS_PER_TASK = 10;

interface Simulation {
  readonly clock: ManualClock;
  readonly remote: RemoteBroker;
  readonly enqueue: (task: number) => Promise<unknown>;
  /** Starts the server. @returns a function that returns the number of handled tasks. */
  readonly start: () => Promise<() => number>;
}

const empty = new Task('work');

/** @param action - returns a number of polls. */
async function simulate(parts: number, action: (simulation: Simulation) => Promise<number>): Promise<number> {
  const clock = new ManualClock();
  const local = await EmbeddedBroker.open({ clock });
  const client = new Client({ broker: local });
  const remote = remoteBroker(local, ROUND_TRIP_MS);
  const queues = Array.from({ length: parts }, (_, part) => `orders:${part}`);
  const priorities = Object.fromEntries(queues.map((queue) => [queue, 1]));
  const server = new Server({ broker: remote.broker, concurrency: CONCURRENCY, queues: priorities });
  let handled = 0;
  const start = async (): Promise<() => number> => {
    const started = server.start(async () => {
      await passed(clock, HANDLER_MS);
      handled++;
    });
    await clock.advanceAsync(1);
    await started;
    return () => handled;
  };
  const enqueue = (task: number): Promise<unknown> =>
    client.enqueue(empty, { queue: queues[task % queues.length] as string });
  try {
    return await action({ clock, remote, enqueue, start });
  } finally {
    const stopped = server.shutdown();
    await clock.advanceAsync(MS_PER_S);
    await stopped;
    await local.close();
  }
}

function passed(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, ms);
  });
}

const serve =
  (parts: number): Scenario =>
  async (count) => {
    const idle = await simulate(parts, async ({ clock, remote, start }) => {
      const idleMs = count * IDLE_MS_PER_TASK;
      await start();
      const before = remote.polls;
      await clock.advanceAsync(idleMs);
      return ((remote.polls - before) * MS_PER_S) / idleMs;
    });
    const oneEachMs = await simulate(parts, async ({ clock, remote, enqueue, start }) => {
      await start();
      const before = remote.polls;
      for (let task = 0; task < count; task++) {
        await enqueue(task);
        await clock.advanceAsync(1);
      }
      return (remote.polls - before) / count;
    });
    const allWaiting = await simulate(parts, async ({ clock, remote, enqueue, start }) => {
      for (let task = 0; task < count; task++) await enqueue(task);
      const handled = await start();
      while (handled() < count) await clock.advanceAsync(1);
      return remote.polls / count;
    });
    return {
      values: {
        'idle, a second': idle,
        '1 000 a second, a task': oneEachMs,
        'all waiting, a task': allWaiting,
      },
    };
  };

export const serving = [1, 2, 4, 8, 16, 32].map((parts) =>
  rival(parts === 1 ? '1 queue' : `${parts} parts`, serve(parts)),
);
