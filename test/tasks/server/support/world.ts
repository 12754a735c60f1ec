import { EscapementError } from 'escapement';
import { Client, EmbeddedBroker, Server, Task } from 'escapement/tasks';
import type {
  Broker,
  Handler,
  ServeMux,
  ServerEvents,
  ServerOptions,
  TaskInfo,
  TaskOptions,
  TaskRecord,
} from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { onTestFinished, test } from 'vitest';
import { withMethods } from '../../support/with-methods.ts';

/** Not 0, which means never. */
export const WALL_MS = Date.UTC(2026, 10, 21);

export const unavailable = new EscapementError('ERR_BROKER_UNAVAILABLE', 'no answer');

/** A broker whose method fails so often, after it has done what it was asked for or instead. */
export function failing(
  world: World,
  method: 'complete' | 'retry' | 'archive' | 'release' | 'dequeue' | 'subscribe',
  times: number,
  options: { isDone?: boolean } = {},
): { broker: Broker; calls: number[] } {
  const calls: number[] = [];
  const original = world.broker[method].bind(world.broker) as (...args: unknown[]) => Promise<unknown>;
  const call = async (...args: unknown[]): Promise<unknown> => {
    calls.push(world.clock.now());
    const isFailing = calls.length <= times;
    const isCalled = !isFailing || options.isDone === true;
    const result = isCalled ? await original(...args) : undefined;
    if (isFailing) throw unavailable;
    return result;
  };
  return { broker: withMethods(world.broker, { [method]: call }), calls };
}

type EventName = keyof ServerEvents;
const EVENTS: readonly EventName[] = [
  'started',
  'completed',
  'retried',
  'archived',
  'cancelled',
  'released',
  'lost',
];

/** A broker, a client and servers in virtual time. */
export class World {
  readonly clock = new ManualClock({ wallMs: WALL_MS });
  readonly broker: EmbeddedBroker;
  readonly client: Client;
  /** `started email:welcome`, … of every server. */
  readonly events: string[] = [];
  readonly servers: Server[] = [];

  constructor(broker: EmbeddedBroker, clock: ManualClock) {
    this.clock = clock;
    this.broker = broker;
    this.client = new Client({ broker });
  }

  server(options: Partial<ServerOptions> = {}): Server {
    const server = new Server({
      ...{ broker: this.broker, concurrency: 10, retryDelayMs: () => 1_000 },
      ...options,
    });
    for (const name of EVENTS) {
      server.on(name, ({ type }: { type: string }) => {
        this.events.push(`${name} ${type}`);
      });
    }
    this.servers.push(server);
    return server;
  }

  async start(handler: Handler | ServeMux, options: Partial<ServerOptions> = {}): Promise<Server> {
    const server = this.server(options);
    await server.start(handler);
    await this.settle();
    return server;
  }

  /** Enqueues a task, and lets what follows at once happen. */
  async enqueue(type = 'job', payload?: unknown, options: TaskOptions = {}): Promise<TaskInfo> {
    const info = await this.client.enqueue(new Task(type, payload, options));
    await this.settle();
    return info;
  }

  /** Lets promise jobs settle. */
  async settle(): Promise<void> {
    await this.clock.advanceAsync(0);
  }

  advance(ms: number): Promise<void> {
    return this.clock.advanceAsync(ms);
  }

  /** Returns the task; undefined if it no longer exists. */
  async find({ queue, id }: { queue: string; id: string }): Promise<TaskRecord | undefined> {
    try {
      return await this.broker.task(queue, id);
    } catch {
      return undefined;
    }
  }

  async state(info: { queue: string; id: string }): Promise<string> {
    return (await this.find(info))?.state ?? 'gone';
  }

  /** Time passes until every server is shut down, and nothing is armed any more. */
  async end(): Promise<void> {
    const ended = Promise.all(this.servers.map((server) => server.shutdown()));
    await this.advance(60_000);
    await ended;
    await this.broker.close();
  }
}

/** Opens a world that ends with the test. */
export async function openWorld(): Promise<World> {
  const clock = new ManualClock({ wallMs: WALL_MS });
  const world = new World(await EmbeddedBroker.open({ clock }), clock);
  onTestFinished(() => world.end());
  return world;
}

/** A test in a world of its own, with a handler that waits until it is settled. */
export const it = test.extend('world', () => openWorld()).extend('held', () => new Held());

/** A handler that waits until the test settles it. */
export class Held {
  readonly runs: { resolve: () => void; reject: (error: unknown) => void; signal: AbortSignal }[] = [];
  readonly handler: Handler = (_task, { signal }) =>
    new Promise<void>((resolve, reject) => {
      this.runs.push({ resolve, reject, signal });
    });

  run(i = 0): Held['runs'][number] {
    const run = this.runs[i];
    if (run === undefined) throw new Error(`there was no run ${i}`);
    return run;
  }
}
