import { Redis } from 'ioredis';
import { Client, Inspector, Server, type ServerOptions, type TaskState } from '../../../../src/tasks.ts';
import { RedisBroker } from '../../../../src/tasks-redis.ts';
import { QueueKeys } from '../../../../src/tasks/broker/redis/keys.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { until } from '../../../until.ts';
import { GO_STATES, type GoServing } from './go-types.ts';
import { GoDriver, type GoServer } from './go-driver.ts';
import type { GoVersion } from './go-versions.ts';
import { handlerWith, type NodeEvent } from './handle.ts';
import { NodeWorkerProcess } from './node-worker-process.ts';

/** A server of ours in this process. */
export interface NodeServer {
  readonly server: Server;
  readonly events: NodeEvent[];
  readonly heard: (event: NodeEvent['event'], task: string) => Promise<NodeEvent>;
}

/** One Redis, with Node on one side and Go on the other. */
export class World {
  readonly redis: Redis;
  readonly url: string;
  readonly broker: RedisBroker;
  readonly client: Client;
  readonly inspector: Inspector;
  readonly go: GoDriver;
  readonly #database: RedisProcess;
  readonly #version: GoVersion;
  #ends: (() => Promise<unknown>)[] = [];
  #lastQueue = 0;

  private constructor(database: RedisProcess, version: GoVersion) {
    this.#database = database;
    this.#version = version;
    this.url = database.url;
    this.redis = new Redis(database.url);
    this.broker = new RedisBroker({ url: database.url });
    this.client = new Client({ broker: this.broker });
    this.inspector = new Inspector({ broker: this.broker });
    this.go = this.startGo();
  }

  static async start(version: GoVersion): Promise<World> {
    return new World(await RedisProcess.start(), version);
  }

  /** Another process of asynq, on the same Redis. */
  startGo(): GoDriver {
    return new GoDriver(this.#version, `127.0.0.1:${this.#database.port}`);
  }

  /** The name of a queue that no other test has. */
  newQueue(): string {
    return `queue-${++this.#lastQueue}`;
  }

  /** Until the end of the test. */
  async serveInGo(queue: string, serving: Partial<GoServing> = {}): Promise<GoServer> {
    const server = await this.go.serve({ queues: { [queue]: 1 }, ...serving });
    this.atEndOfTest(() => server.shutdown());
    return server;
  }

  /** In this process, until the end of the test. */
  async serveInNode(queue: string, options: Partial<ServerOptions> = {}): Promise<NodeServer> {
    const server = new Server({
      ...{ broker: this.broker, queues: { [queue]: 1 }, concurrency: 4, retryDelayMs: () => 100 },
      ...{ pollIntervalMs: 50, delayedTaskCheckIntervalMs: 100, shutdownTimeoutMs: 1_000 },
      ...options,
    });
    const events: NodeEvent[] = [];
    const handler = handlerWith({
      tell: (event) => events.push(event),
      count: (id) => this.redis.hincrby('runs', id, 1),
    });
    await server.start(handler);
    this.atEndOfTest(() => server.shutdown());
    const find = (event: string, task: string): NodeEvent | undefined =>
      events.find((one) => one.event === event && one.task === task);
    return {
      server,
      events,
      heard: async (event, task) => {
        await until(`our handler of ${task} has ${event}`, () => find(event, task) !== undefined);
        return find(event, task) as NodeEvent;
      },
    };
  }

  /** In a process of its own, until the end of the test at the latest. */
  async startNodeWorker(queue: string, options: Partial<ServerOptions> = {}): Promise<NodeWorkerProcess> {
    const worker = await NodeWorkerProcess.start(this.url, { queues: { [queue]: 1 }, ...options });
    this.atEndOfTest(() => worker.kill());
    return worker;
  }

  atEndOfTest(end: () => Promise<unknown>): void {
    this.#ends.push(end);
  }

  /** What was started for a test is gone. */
  async endTest(): Promise<void> {
    await Promise.all(this.#ends.splice(0).map((end) => end()));
  }

  /** Waits until a task is in a state, and Go says so. */
  async untilGoSays(queue: string, id: string, state: TaskState): Promise<void> {
    await until(`Go says that ${id} is ${state}`, async () => {
      const { State } = await this.go.task(queue, id);
      return GO_STATES[State] === state;
    });
  }

  /** Waits until a task is in a state, and we say so. */
  async untilNodeSays(queue: string, id: string, state: TaskState): Promise<void> {
    await until(`we say that ${id} is ${state}`, async () => {
      return (await this.inspector.getTaskInfo(queue, id)).state === state;
    });
  }

  /** Waits until a task is gone without a trace. */
  async untilGone(queue: string, id: string): Promise<void> {
    await until(`${id} is gone`, async () => (await this.redis.exists(`asynq:{${queue}}:t:${id}`)) === 0);
  }

  /** Puts back the lease of a run, as if it had ended long ago. */
  async endLease(queue: string, id: string): Promise<void> {
    const longAgo = Math.floor(Date.now() / 1_000) - 3_600;
    await this.redis.zadd(new QueueKeys(queue).lease, 'XX', longAgo, id);
  }

  async stop(): Promise<void> {
    await this.endTest();
    await this.go.kill();
    await this.inspector.close();
    await this.client.close();
    await this.broker.close();
    this.redis.disconnect();
    await this.#database.stop();
  }
}
