import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from 'escapement';
import { Client, Inspector, Server, type ReceivedTask, type TaskContext } from 'escapement/tasks';
import { RedisBroker, type RedisHealth } from 'escapement/tasks/redis';
import { until } from '../../../until.ts';
import { enqueueSurely, surely } from '../../support/flaky-work.ts';

/** Longer than a lease, and what is added to it because clocks differ. */
const LEASES_ARE_OVER_MS = 120_000;
const TIMEOUT_MS = 500;
/** If less happens than a test waits for, answers may have been lost. */
const SOON_MS = 10_000;
const ENQUEUE_EVERY_MS = 5;
const RUN_MS = 2;
/** With keys: tasks come faster than they are run, so that the limit is always reached. */
const RUN_WITH_KEY_MS = 50;

/**
 * A client that enqueues one task after the other, and a server that runs them, whatever happens to Redis.
 *
 * With keys there are five of them, and at most one task of each is active, although the server could run two.
 */
export class OutageWorld {
  readonly health: RedisHealth[] = [];
  readonly broker: RedisBroker;
  /** Tasks whose handler was called. */
  readonly ran = new Set<string>();
  #aheadMs = 0;
  readonly #client: Client;
  #server: Server | undefined;
  #enqueued = 0;
  readonly #running = new Set<TaskContext>();
  /** The most runs of one key at once whose lease held. */
  #mostOfOneKey = 0;

  readonly #hasKeys: boolean;

  constructor(url: string, { hasKeys = false } = {}) {
    this.#hasKeys = hasKeys;
    this.broker = new RedisBroker({
      url,
      clock: {
        ...systemClock,
        now: () => systemClock.now() + this.#aheadMs,
        wallNow: () => systemClock.wallNow() + this.#aheadMs,
      },
      timeoutMs: TIMEOUT_MS,
      onHealth: (health) => this.health.push(health),
    });
    this.#client = new Client({ broker: this.broker });
  }

  get states(): string[] {
    return this.health.map(({ state }) => state);
  }

  async start(): Promise<void> {
    const server = new Server({
      broker: this.broker,
      concurrency: 10,
      pollIntervalMs: 100,
      delayedTaskCheckIntervalMs: 200,
      retryDelayMs: () => 0,
      maxRecoveries: 100,
      limits: this.#hasKeys ? { default: { perKey: { concurrency: 1 } } } : {},
    });
    this.#server = server;
    const handle = async (task: ReceivedTask, context: TaskContext): Promise<void> => {
      this.#running.add(context);
      const holding = [...this.#running].filter((run) => run.key === context.key && !run.signal.aborted);
      this.#mostOfOneKey = Math.max(this.#mostOfOneKey, holding.length);
      await sleep(this.#hasKeys ? RUN_WITH_KEY_MS : RUN_MS);
      this.#running.delete(context);
      this.ran.add(String(task.payload));
    };
    // On a busy machine Redis may take longer to answer than the broker waits.
    await until('the server has started', async () => {
      await server.start(handle);
      return true;
    });
  }

  /** Each is tried until it is known to be there. */
  async enqueue(tasks: number): Promise<void> {
    for (let enqueued = 0; enqueued < tasks; enqueued++) await this.#enqueueNext();
  }

  /** One after the other. @returns what ends it, and waits for the last one. */
  keepEnqueuing(): () => Promise<void> {
    const end = new AbortController();
    const enqueuing = (async () => {
      while (!end.signal.aborted) {
        await this.#enqueueNext();
        await sleep(ENQUEUE_EVERY_MS);
      }
    })();
    return async () => {
      end.abort();
      await enqueuing;
    };
  }

  async #enqueueNext(): Promise<void> {
    const key = this.#hasKeys ? `key ${this.#enqueued % 5}` : undefined;
    await enqueueSurely(this.#client, String(this.#enqueued), key);
    this.#enqueued++;
  }

  /** Waits until so many more have run. */
  async untilRan(tasks: number): Promise<void> {
    const goal = this.ran.size + tasks;
    await this.#untilDone(`${tasks} more tasks have run`, () => this.ran.size >= goal);
  }

  /** Waits until every task is completed. */
  async complete(): Promise<void> {
    const inspector = new Inspector({ broker: this.broker });
    await until('what can be reached is done', async () => {
      const { pending, held, scheduled, retry } = await inspector.getQueueInfo('default');
      return pending - held.concurrency + scheduled + retry === 0;
    });
    await this.#continueLater();
    await this.#untilDone('everything is completed', async () => {
      const { completed, size } = await inspector.getQueueInfo('default');
      return completed === this.#enqueued && size === this.#enqueued;
    });
    await surely(async () => {
      if ((await inspector.keys('default')).length > 0) throw new Error('a place is taken, and nothing runs');
    });
    if (this.#hasKeys && this.#mostOfOneKey !== 1)
      throw new Error(`${this.#mostOfOneKey} tasks of one key ran at once`);
    if (this.ran.size !== this.#enqueued) throw new Error('a task is completed and has not run');
  }

  /** Waits until tasks have done something. On a busy machine answers may be lost at any time, not only in an outage. */
  #untilDone(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    return until(what, async () => {
      await until(what, holds, SOON_MS).catch(() => this.#continueLater());
      return await holds();
    });
  }

  /**
   * Another server continues when all leases are over. It recovers the tasks whose lease went to no server, because the answer was lost.
   * Until then they hold back the others with their key.
   */
  async #continueLater(): Promise<void> {
    await this.stop();
    this.#aheadMs += LEASES_ARE_OVER_MS;
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#server?.shutdown();
    this.#server = undefined;
  }

  async close(): Promise<void> {
    await this.stop();
    await this.broker.close();
  }
}
