/** A real server in simulated time that serves the parts of a queue: how often does it poll for tasks? */
import { Client, EmbeddedBroker, MAINTENANCE_JOBS, Server, Task } from 'escapement/tasks';
import type { Broker, LeasedTask } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { scenario } from '../lib/kinds.ts';
import { metric, rival, type Measurement } from '../lib/part.ts';

export interface RemoteBroker {
  readonly broker: Broker;
  /** Number of calls of `dequeue`. */
  readonly polls: number;
  /** Number of calls of `dequeue` that returned no task. */
  readonly emptyPolls: number;
}

/** A broker that behaves like a remote one: it must be polled, and a call takes a round trip of its clock's time. */
export function remoteBroker(local: Broker, roundTripMs: number): RemoteBroker {
  const { clock } = local;
  const roundTrip = (): Promise<void> =>
    new Promise((resolve) => {
      clock.setTimeout(resolve, roundTripMs);
    });
  const counts = { polls: 0, emptyPolls: 0 };
  const changed: Partial<Broker> = {
    maintenance: MAINTENANCE_JOBS,
    dequeue: async (queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> => {
      counts.polls++;
      await roundTrip();
      const tasks = await local.dequeue(queue, limit, leaseMs);
      if (tasks.length === 0) counts.emptyPolls++;
      return tasks;
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

const PARTS = [1, 2, 4, 8, 16, 32];
const CONCURRENCY = 100;
const ROUND_TRIP_MS = 0.5;
const HANDLER_MS = 10;
const IDLE_MS_PER_TASK = 10;
const MS_PER_SECOND = 1_000;

const IDLE = 'idle, a second';
const EACH_MS = '1 000 a second, a task';
const WAITING = 'all waiting, a task';

interface Simulation {
  readonly clock: ManualClock;
  readonly client: Client;
  readonly server: Server;
  readonly remote: RemoteBroker;
  readonly queues: readonly string[];
}

async function withSimulation<R>(parts: number, action: (simulation: Simulation) => Promise<R>): Promise<R> {
  const clock = new ManualClock();
  const local = await EmbeddedBroker.open({ clock });
  const remote = remoteBroker(local, ROUND_TRIP_MS);
  const queues = Array.from({ length: parts }, (_, part) => `orders:${part}`);
  const priorities = Object.fromEntries(queues.map((queue) => [queue, 1]));
  const server = new Server({ broker: remote.broker, concurrency: CONCURRENCY, queues: priorities });
  try {
    return await action({ clock, client: new Client({ broker: local }), server, remote, queues });
  } finally {
    const stopped = server.shutdown();
    await clock.advanceAsync(MS_PER_SECOND);
    await stopped;
    await local.close();
  }
}

/** Starts the server. @returns a function that returns the number of handled tasks. */
async function start({ server, clock }: Simulation): Promise<() => number> {
  let handled = 0;
  const started = server.start(async () => {
    await new Promise<void>((resolve) => {
      clock.setTimeout(resolve, HANDLER_MS);
    });
    handled++;
  });
  await clock.advanceAsync(1);
  await started;
  return () => handled;
}

const empty = new Task('work');

async function enqueue({ client, queues }: Simulation, task: number): Promise<void> {
  await client.enqueue(empty, { queue: queues[task % queues.length] as string });
}

async function pollsWhenIdle(simulation: Simulation, count: number): Promise<number> {
  const idleMs = count * IDLE_MS_PER_TASK;
  await start(simulation);
  const before = simulation.remote.polls;
  await simulation.clock.advanceAsync(idleMs);
  return ((simulation.remote.polls - before) * MS_PER_SECOND) / idleMs;
}

async function pollsWithOneEachMs(simulation: Simulation, count: number): Promise<number> {
  const { clock, remote } = simulation;
  await start(simulation);
  const before = remote.polls;
  for (let task = 0; task < count; task++) {
    await enqueue(simulation, task);
    await clock.advanceAsync(1);
  }
  return (remote.polls - before) / count;
}

async function pollsWithAllWaiting(simulation: Simulation, count: number): Promise<number> {
  for (let task = 0; task < count; task++) await enqueue(simulation, task);
  const handled = await start(simulation);
  while (handled() < count) await simulation.clock.advanceAsync(1);
  return simulation.remote.polls / count;
}

async function simulate(parts: number, count: number): Promise<Measurement> {
  return {
    values: {
      [IDLE]: await withSimulation(parts, (simulation) => pollsWhenIdle(simulation, count)),
      [EACH_MS]: await withSimulation(parts, (simulation) => pollsWithOneEachMs(simulation, count)),
      [WAITING]: await withSimulation(parts, (simulation) => pollsWithAllWaiting(simulation, count)),
    },
    problem: undefined,
  };
}

export const servingCase = scenario({
  name: 'how often a server asks for tasks that serves all parts of a queue',
  note:
    'Calls of dequeue; each is for one queue. Concurrency 100, a handler takes 10 ms, a round trip half a millisecond; ' +
    'notifications arrive at once. A real server: only its time is simulated. An idle server polls about once a second, ' +
    'at random times.',
  rounds: 1,
  size: { full: 10_000, quick: 300, of: 'tasks' },
  metrics: [metric(IDLE), metric(EACH_MS), metric(WAITING)],
  contestants: PARTS.map((parts) =>
    rival(parts === 1 ? '1 queue' : `${parts} parts`, (count) => simulate(parts, count)),
  ),
});
