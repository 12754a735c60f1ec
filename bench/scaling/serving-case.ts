/** A real server, in simulated time, that serves the parts of a queue: how often does it ask for tasks? */
import { Client, EmbeddedBroker, Server, Task } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { remoteBroker, type RemoteBroker } from './remote-broker.ts';

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
  const here = await EmbeddedBroker.open({ clock });
  const remote = remoteBroker(here, ROUND_TRIP_MS);
  const queues = Array.from({ length: parts }, (_, part) => `orders:${part}`);
  const priorities = Object.fromEntries(queues.map((queue) => [queue, 1]));
  const server = new Server({ broker: remote.broker, concurrency: CONCURRENCY, queues: priorities });
  try {
    return await action({ clock, client: new Client({ broker: here }), server, remote, queues });
  } finally {
    const stopped = server.shutdown();
    await clock.advanceAsync(MS_PER_SECOND);
    await stopped;
    await here.close();
  }
}

/** @returns how many were handled so far. */
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

function partOf({ queues }: Simulation, task: number): { readonly queue: string } {
  return { queue: queues[task % queues.length] as string };
}

const nothing = new Task('work');

async function askedWhenIdle(simulation: Simulation, count: number): Promise<number> {
  const idleMs = count * IDLE_MS_PER_TASK;
  await start(simulation);
  const before = simulation.remote.asked;
  await simulation.clock.advanceAsync(idleMs);
  return ((simulation.remote.asked - before) * MS_PER_SECOND) / idleMs;
}

async function askedWhenOneAMs(simulation: Simulation, count: number): Promise<number> {
  const { client, clock, remote } = simulation;
  await start(simulation);
  const before = remote.asked;
  for (let task = 0; task < count; task++) {
    await client.enqueue(nothing, partOf(simulation, task));
    await clock.advanceAsync(1);
  }
  return (remote.asked - before) / count;
}

async function askedWhenAllWait(simulation: Simulation, count: number): Promise<number> {
  const { client, clock, remote } = simulation;
  for (let task = 0; task < count; task++) await client.enqueue(nothing, partOf(simulation, task));
  const handled = await start(simulation);
  while (handled() < count) await clock.advanceAsync(1);
  return remote.asked / count;
}

async function simulate(parts: number, count: number): Promise<ScenarioOutcome> {
  return {
    values: {
      [IDLE]: await withSimulation(parts, (simulation) => askedWhenIdle(simulation, count)),
      [EACH_MS]: await withSimulation(parts, (simulation) => askedWhenOneAMs(simulation, count)),
      [WAITING]: await withSimulation(parts, (simulation) => askedWhenAllWait(simulation, count)),
    },
    problem: undefined,
  };
}

export const servingCase: ScenarioCase = {
  kind: 'scenario',
  name: 'how often a server asks for tasks that serves all parts of a queue',
  note:
    'Calls of dequeue; each is for one queue. 100 at once, a handler takes 10 ms, a round trip half a millisecond; hints arrive at ' +
    'once. A real server: only its time is simulated. When it is idle it polls once a second or so, at random moments.',
  rounds: 1,
  size: { full: 10_000, quick: 300, of: 'tasks' },
  metrics: [
    { name: IDLE, unit: '' },
    { name: EACH_MS, unit: '' },
    { name: WAITING, unit: '' },
  ],
  contestants: PARTS.map((parts) => ({
    name: parts === 1 ? '1 queue' : `${parts} parts`,
    role: 'rival',
    open: (count) => simulate(parts, count),
  })),
};
