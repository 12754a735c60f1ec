import { Client, EmbeddedBroker, Scheduler, Server, Task, type TaskOptions } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import { expect, onTestFinished, test } from 'vitest';
import { TASK_STATES } from '../../../../src/tasks/task-state.ts';
import { folderOfTest } from '../../../folder.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.UTC(2026, 2, 1);

/** Everything that works on a broker: programs that are started and stopped. */
class Programs {
  readonly #server: Server;
  readonly #scheduler: Scheduler;

  constructor(broker: EmbeddedBroker, ran: string[]) {
    this.#scheduler = new Scheduler({ broker, location: 'Europe/Berlin' });
    const done = { queue: 'cron', retentionMs: 2 * DAY_MS };
    const daily = { ...done, id: 'daily', backfill: { maxTicks: 2 } };
    this.#scheduler.register('0 3 * * *', new Task('daily'), daily);
    this.#scheduler.register('@every 1h', new Task('hourly'), { ...done, id: 'hourly' });
    this.#server = new Server({
      broker,
      queues: { cron: 1, default: 1 },
      concurrency: 1,
      retryDelayMs: (retried) => (retried + 1) * 5 * HOUR_MS,
      groupGracePeriodMs: HOUR_MS,
      groupMaxDelayMs: DAY_MS,
      groupAggregator: (_group, tasks) =>
        new Task('sum', { of: tasks.length }, { retentionMs: DAY_MS, taskId: `sum-${ran.length}` }),
      ...{ janitorIntervalMs: HOUR_MS, healthCheckIntervalMs: HOUR_MS, delayedTaskCheckIntervalMs: HOUR_MS },
    });
    this.#handler = (task, { taskId, retryCount }) => {
      ran.push(`${taskId} ${retryCount} ${broker.clock.wallNow() - START_MS}`);
      if (task.type === 'fails') throw new Error(`attempt ${retryCount}`);
    };
  }

  readonly #handler: Parameters<Server['start']>[0];

  async start(): Promise<void> {
    await this.#scheduler.start();
    await this.#server.start(this.#handler);
  }

  async stop(): Promise<void> {
    await this.#scheduler.shutdown();
    await this.#server.shutdown();
  }
}

/** Enqueues what a day brings. @returns what became of it. */
async function enqueue(broker: EmbeddedBroker, day: number): Promise<unknown[]> {
  const client = new Client({ broker });
  const add = async (type: string, options: TaskOptions, payload: unknown = { day }): Promise<string> => {
    const task = new Task(type, payload, { taskId: `${type}-${day}`, ...options });
    const { id, state } = await client.enqueue(task);
    return `${id} ${state}`;
  };
  const outcomes = await Promise.allSettled([
    add('later', { processInMs: 3.5 * DAY_MS, retentionMs: 5 * DAY_MS }),
    add('fails', { maxRetry: 3 }),
    add('unique', { uniqueTtlMs: 2.2 * DAY_MS, processInMs: 9 * DAY_MS }, {}),
    add('grouped', { group: `week-${Math.floor(day / 7)}` }),
    add('large', { processInMs: 30 * HOUR_MS }, new Uint8Array(1_200).fill(day)),
  ]);
  await client.close();
  return outcomes.map((one) =>
    one.status === 'fulfilled' ? one.value : (one.reason as { code: string }).code,
  );
}

/** All that can be read of a broker, but since when tasks are pending that fell due while it was closed. */
async function everything(broker: EmbeddedBroker): Promise<unknown> {
  const queues = await broker.queues();
  return Promise.all(
    queues.map(async (queue) => {
      const { counts, groups, isPaused, processedTotal, failedTotal } = await broker.queueStats(queue);
      const tasks: unknown[] = [];
      for (const state of TASK_STATES) {
        for (const { message, ...record } of await broker.tasks(queue, state, { page: 1, size: 10_000 }))
          tasks.push({ ...record, message: { ...message, payload: message.payload.join() } });
      }
      const ticks = [await broker.lastTickMs(queue, 'daily'), await broker.lastTickMs(queue, 'hourly')];
      const history = await broker.history(queue, 40);
      return { counts, groups, isPaused, processedTotal, failedTotal, tasks, ticks, history };
    }),
  );
}

test(
  'a month on a folder, with reopens and days without a process, is as in a broker that never closes',
  { timeout: 120_000 },
  async () => {
    const dataPath = folderOfTest();
    const clock = new ManualClock({ nowMs: 7_000, wallMs: START_MS });
    const settings = { clock, maxArchived: 5, archiveRetentionMs: 6 * DAY_MS };
    const open = (): Promise<EmbeddedBroker> =>
      EmbeddedBroker.open({ ...settings, dataPath, durability: 'os', maxBytesPerFile: 8_192 });
    const memory = await EmbeddedBroker.open(settings);
    let durable = await open();
    onTestFinished(async () => {
      await Promise.all([memory.close(), durable.close()]);
    });
    const ran: [string[], string[]] = [[], []];
    for (let day = 0; day < 31; day++) {
      const both = [new Programs(memory, ran[0]), new Programs(durable, ran[1])];
      for (const programs of both) await programs.start();
      await clock.advanceAsync(MINUTE_MS); // what was due is done
      const [inMemory, inFolder] = [await enqueue(memory, day), await enqueue(durable, day)];
      expect(inFolder).toEqual(inMemory);
      await clock.advanceAsync(90 * MINUTE_MS);
      for (const programs of both) await programs.stop();
      // The month of the change to summer time: a day of Berlin has 23 hours once.
      await clock.advanceAsync(12 * HOUR_MS);
      const before = await everything(memory);
      expect(await everything(durable), `day ${day}`).toEqual(before);
      checkBroker(durable);
      await checkBrokerLog(durable);
      await durable.close();
      await clock.advanceAsync(day % 10 === 9 ? 3 * DAY_MS : 10 * HOUR_MS);
      durable = await open();
      checkBroker(durable);
      expect(await everything(durable), `after day ${day}`).toEqual(await everything(memory));
    }
    expect(ran[1]).toEqual(ran[0]);
    expect(ran[0].filter((line) => line.startsWith('sum')).length).toBeGreaterThan(20);
    expect(ran[0].length).toBeGreaterThan(200);
  },
);
