import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from 'escapement';
import { Client, Inspector, Server, type ReceivedTask, type TaskContext } from 'escapement/tasks';
import { RedisBroker, type RedisHealth } from 'escapement/tasks/redis';
import { until } from '../../../until.ts';
import { enqueueSurely, surely } from '../../support/flaky-work.ts';
import { Takings } from '../../support/takings.ts';

/** Longer than a lease, and what is added to it because clocks differ. */
const LEASES_ARE_OVER_MS = 120_000;
const TIMEOUT_MS = 500;
/** If less happens than a test waits for, answers may have been lost. */
const SOON_MS = 10_000;
const ENQUEUE_EVERY_MS = 5;
const RUN_MS = 2;
/** Tasks come faster than these allow. */
const LIMITS = {
  concurrency: 4,
  rate: { tasks: 60, perMs: 1_000, burst: 10 },
  perKey: { concurrency: 1 },
};
const LIMITED_RUN_MS = 50;

/**
 * A client that enqueues one task after the other, and a server that runs them, whatever happens to Redis.
 *
 * With limits there are five keys, and at most one task of each and four tasks in all are active, although the server could run ten.
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
  /** The most runs at once whose lease held, of one key and of all. */
  #mostOfOneKey = 0;
  #mostOfAll = 0;
  readonly #takings = new Takings();

  readonly #hasLimits: boolean;

  constructor(url: string, { hasLimits = false } = {}) {
    this.#hasLimits = hasLimits;
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
      broker: this.#takings.of(this.broker),
      concurrency: 10,
      pollIntervalMs: 100,
      delayedTaskCheckIntervalMs: 200,
      retryDelayMs: () => 0,
      maxRecoveries: 100,
      limits: this.#hasLimits ? { default: LIMITS } : {},
    });
    this.#server = server;
    const handle = async (task: ReceivedTask, context: TaskContext): Promise<void> => {
      this.#running.add(context);
      const holding = [...this.#running].filter((run) => !run.signal.aborted);
      const ofKey = holding.filter(({ key }) => key === context.key);
      this.#mostOfOneKey = Math.max(this.#mostOfOneKey, ofKey.length);
      this.#mostOfAll = Math.max(this.#mostOfAll, holding.length);
      await sleep(this.#hasLimits ? LIMITED_RUN_MS : RUN_MS);
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
    const key = this.#hasLimits ? `key ${this.#enqueued % 5}` : undefined;
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
    if (this.#hasLimits) this.#checkLimits();
    if (this.ran.size !== this.#enqueued) throw new Error('a task is completed and has not run');
  }

  #checkLimits(): void {
    const { concurrency, rate, perKey } = LIMITS;
    if (this.#mostOfOneKey > perKey.concurrency)
      throw new Error(`${this.#mostOfOneKey} tasks of one key ran at once`);
    if (this.#mostOfAll > concurrency) throw new Error(`${this.#mostOfAll} tasks ran at once`);
    const started = this.#takings.mostAtOnce(rate.tasks / rate.perMs);
    if (started > rate.burst + 2) throw new Error(`${started} tasks started at once`); // times are not exact
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
