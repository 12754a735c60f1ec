import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, EmbeddedBroker, Server, Task, type Broker } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { folderOfTest } from '../../folder.ts';
import { freshDatabase } from '../../redis/redis-case.ts';
import { withRedis } from '../../redis/with-redis.ts';
import { spawnProgram } from '../../run-program.ts';
import { until } from '../../until.ts';
import { Takings } from '../support/takings.ts';

/*
 * Real time, and servers with the built package in processes of their own, which are killed while they work. On a machine that does
 * nothing else, ESCAPEMENT_RATE_SECONDS=10 also requires that a rate is as fast as it allows, within 1 % over so many seconds.
 */

const QUEUE = 'default';

/** So long that a server on a busy machine keeps its tasks. */
const LEASE_MS = 20_000;
const PAGE = { page: 1, size: 1_000 };
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A run that a server has begun. The clock is that of the machine, the same in all processes. */
interface WitnessedRun {
  readonly id: string;
  readonly startMs: number;
  /** When its lease cannot hold any more; undefined while it may. */
  endMs: number | undefined;
}

/** What the servers have begun and ended, as they have written it down. */
class Witness {
  readonly runs: WitnessedRun[] = [];

  /** Starts a server that runs each task for a while, at most `longestMs`. @param broker - an expression. */
  serve(broker: string, longestMs: number): ServerProcess {
    const source = `
      const { writeSync } = await import('node:fs');
      const { EmbeddedBroker, Server } = await import('escapement/tasks');
      const { RedisBroker } = await import('escapement/tasks/redis');
      const say = (word, id) => writeSync(1, word + ' ' + id + ' ' + Number(process.hrtime.bigint()) / 1e6 + '\\n');
      const server = new Server({ broker: ${broker}, concurrency: 8, leaseMs: ${LEASE_MS}, maxRecoveries: 1_000 });
      await server.start(async (task, { taskId }) => {
        say('start', taskId);
        await new Promise((resolve) => setTimeout(resolve, (0.5 + Math.random() / 2) * ${longestMs}));
        say('end', taskId);
      });`;
    const child = spawnProgram(source);
    onTestFinished(() => void child.kill('SIGKILL'));
    const running = new Map<string, WitnessedRun>();
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [word, id = '', atMs] = line.split(' ');
      if (word === 'start') {
        const run = { id, startMs: Number(atMs), endMs: undefined };
        running.set(id, run);
        this.runs.push(run);
      } else {
        Object.assign(running.get(id) ?? {}, { endMs: Number(atMs) });
        running.delete(id);
      }
    });
    return new ServerProcess(child, running);
  }

  /** The most runs that held a lease at once, of those that a test picks. */
  mostAtOnce(isPicked: (id: string) => boolean = () => true): number {
    const changes = this.runs
      .filter(({ id }) => isPicked(id))
      .flatMap(({ startMs, endMs = Infinity }) => [[startMs, 1] as const, [endMs, -1] as const]);
    changes.sort(([a, by], [b, other]) => a - b || by - other);
    let [now, most] = [0, 0];
    for (const [, by] of changes) most = Math.max(most, (now += by));
    return most;
  }

  /** The same of the tasks of each key. */
  mostOfKeys(): number[] {
    return KEYS.map((key) => this.mostAtOnce((id) => id.startsWith(key)));
  }
}

class ServerProcess {
  readonly #child: ChildProcess;
  readonly #running: ReadonlyMap<string, WitnessedRun>;

  constructor(child: ChildProcess, running: ReadonlyMap<string, WitnessedRun>) {
    this.#child = child;
    this.#running = running;
  }

  /** Kills it while it runs some tasks. @returns what it was running. */
  async kill(): Promise<readonly WitnessedRun[]> {
    const isRunning = (): Promise<boolean> => Promise.resolve(this.#running.size > 0);
    await until('it runs tasks', isRunning);
    await sleep(Math.random() * 100);
    await until('it runs tasks again', isRunning);
    this.#child.kill('SIGKILL');
    await once(this.#child, 'close');
    return [...this.#running.values()];
  }
}

/** Adds tasks to each key: `a-0`, `a-1`, … */
async function enqueueTasks(broker: Broker, first: number, ofEach: number): Promise<void> {
  const numbers = Array.from({ length: ofEach }, (_, n) => first + n);
  const tasks = KEYS.flatMap((key) =>
    numbers.map((n) => new Task('work', undefined, { key, taskId: `${key}-${n}` })),
  );
  await new Client({ broker }).enqueueMany(tasks);
}

async function isDone(broker: Broker): Promise<boolean> {
  const { counts } = await broker.queueStats(QUEUE);
  return Object.values(counts).every((count) => count === 0);
}

async function openRedis(): Promise<{ readonly broker: RedisBroker; readonly url: string }> {
  const { url, dispose } = await freshDatabase();
  onTestFinished(dispose);
  const broker = new RedisBroker({ url });
  onTestFinished(() => broker.close());
  return { broker, url };
}

describe.runIf(inject('redis').isThere)('servers that are killed again and again', () => {
  test.each([1, 2])(
    'servers on Redis that are killed never run more tasks of a key or of the queue than the limits, and leave no place taken (%d of each key)',
    async (concurrency) => {
      const { broker, url } = await openRedis();
      await broker.setLimits(QUEUE, { concurrency: 5, perKey: { concurrency } });
      const witness = new Witness();
      const start = (): ServerProcess => witness.serve(`new RedisBroker({ url: '${url}' })`, 100);
      const servers = [start(), start(), start()];
      const lost = new Map<string, WitnessedRun>();
      const state = { made: 0, isKilling: true };
      const kill = async (): Promise<void> => {
        for (const nth of [0, 1]) {
          const [server] = servers.splice(nth, 1, start());
          for (const run of (await server?.kill()) ?? []) {
            lost.set(run.id, run);
            // Its lease is over, but not for so long that a server recovers it. That of a task whose run was not reported yet goes on.
            const overS = Math.floor(Date.now() / 1_000) - 1;
            await withRedis(url, (redis) => redis.zadd(`asynq:{${QUEUE}}:lease`, 'XX', overS, run.id));
          }
        }
        state.isKilling = false;
      };
      // Servers recover, too, but they allow clocks to differ, and would begin after half a minute.
      const maintain = async (): Promise<void> => {
        while (state.isKilling || !(await isDone(broker))) {
          const { counts } = await broker.queueStats(QUEUE);
          if (state.isKilling && counts.pending < 5 * KEYS.length)
            await enqueueTasks(broker, (state.made += 5) - 5, 5);
          for (const task of await broker.recover([QUEUE], 0, 10_000)) {
            const run = lost.get(task.message.id);
            if (run !== undefined) run.endMs ??= nowMs();
            await broker.release(task);
          }
          await sleep(50);
        }
      };
      await Promise.all([kill(), maintain()]);

      expect(lost.size).toBeGreaterThan(0);
      expect(new Set(witness.runs.map(({ id }) => id)).size).toBe(state.made * KEYS.length);
      expect(witness.mostAtOnce()).toBeLessThanOrEqual(5);
      expect(Math.max(...witness.mostOfKeys())).toBeLessThanOrEqual(concurrency);
      expect(await broker.keys(QUEUE, PAGE)).toEqual([]);
      expect(await broker.repair(QUEUE, { apply: false })).toEqual([]);
    },
  );
});

test('a server whose tasks are in a folder follows its limits and its rate, although it is killed again and again', async () => {
  const dataPath = folderOfTest();
  const rate = { tasks: 100, perMs: 1_000, burst: 40 };
  const before = await EmbeddedBroker.open({ dataPath });
  await before.setLimits(QUEUE, { concurrency: 5, rate, perKey: { concurrency: 2 } });
  await enqueueTasks(before, 0, 100); // more than the servers run until they are killed, even if this process stops for a while
  await before.close();

  const witness = new Witness();
  const startsMs = [];
  for (let kill = 0; kill < 4; kill++) {
    startsMs.push(nowMs());
    const server = witness.serve(`await EmbeddedBroker.open({ dataPath: ${JSON.stringify(dataPath)} })`, 40);
    for (const run of await server.kill()) run.endMs = nowMs();
  }
  // Tokens that were taken do not come back when the broker is opened again.
  for (const startMs of startsMs) {
    const later = witness.runs.map((run) => run.startMs - startMs).filter((ms) => ms > 0);
    for (const [nth, ms] of later.sort((a, b) => a - b).entries())
      expect(nth + 1).toBeLessThanOrEqual(rate.burst + (ms * rate.tasks) / rate.perMs);
  }
  expect(witness.mostAtOnce()).toBeLessThanOrEqual(5);
  expect(Math.max(...witness.mostOfKeys())).toBeLessThanOrEqual(2);

  const after = await EmbeddedBroker.open({ dataPath });
  onTestFinished(() => after.close());
  expect(await after.limits(QUEUE)).toMatchObject({ concurrency: 5, rate });
  await after.setLimits(QUEUE, { concurrency: 5, perKey: { concurrency: 2 } });
  const server = new Server({ broker: after, maxRecoveries: 1_000 });
  await server.start(() => undefined);
  await until('all tasks are done', () => isDone(after));
  await server.shutdown();
  expect(await after.keys(QUEUE, PAGE)).toEqual([]);
});

test.runIf(inject('redis').isThere)(
  'two servers on Redis together start all tasks, and never more than a burst and a thousand a second',
  async () => {
    const given = process.env['ESCAPEMENT_RATE_SECONDS'];
    const dueMs = Number(given ?? 3) * 1_000; // after the burst, a task each millisecond
    const rate = { tasks: 1_000, perMs: 1_000, burst: 50 };
    const { broker, url } = await openRedis();
    const takings = new Takings();
    const servers = Array.from({ length: 2 }, () => {
      const inner = new RedisBroker({ url });
      onTestFinished(() => inner.close());
      return new Server({ broker: takings.of(inner), concurrency: 100, limits: { [QUEUE]: { rate } } });
    });
    const tasks = rate.burst + dueMs;
    await new Client({ broker }).enqueueMany(Array.from({ length: tasks }, () => new Task('work')));
    await Promise.all(servers.map((server) => server.start(() => undefined)));
    await until('all tasks are done', () => isDone(broker));
    await Promise.all(servers.map((server) => server.shutdown()));

    expect(takings.tasks).toBe(tasks);
    // Both clocks are in milliseconds, that of Redis and that of the test: two of them may be missing.
    expect(takings.mostAtOnce(1)).toBeLessThanOrEqual(rate.burst + 2);
    if (given === undefined) return;
    const { tookMs, size: dequeues } = takings;
    console.log({ tookMs, dequeues });
    expect(tookMs / dueMs).toBeGreaterThan(0.99);
    expect(tookMs / dueMs).toBeLessThan(1.01);
  },
);
