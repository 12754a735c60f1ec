import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Task, type LeasedTask, type TaskOptions } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { describe, expect, it, type TestContext } from 'vitest';
import { freshDatabase, hasOneDatabase } from '../../redis/redis-case.ts';
import { withRedis } from '../../redis/with-redis.ts';
import { finished, spawnProgram } from '../../run-program.ts';
import { until } from '../../until.ts';

/*
 * Real time, a real Redis, and servers in processes of their own with the built package, whose handlers hold the event loop.
 * To see it for two minutes of computation with the leases that everybody has: ESCAPEMENT_BLOCK_MS=120000.
 */

const LONG_MS = Number(process.env['ESCAPEMENT_BLOCK_MS'] ?? 0);
const BLOCK_MS = LONG_MS > 0 ? LONG_MS : 18_000;
const LEASE_MS = LONG_MS > 0 ? 30_000 : 8_000;
const TEST_MS = BLOCK_MS + 120_000;

/** Three renewals: a lease that is lost is found to be. */
const KEPT_MS = LEASE_MS / 2;
/** As long as a busy machine may need for one. */
const LOSS_MS = 60_000;

const QUEUE = 'default';

/** How a handler holds the loop for `blockMs`: as a computation does, but leaves the processor to other tests. */
const HOLD =
  LONG_MS > 0
    ? 'const end = Date.now() + blockMs; while (Date.now() < end);'
    : 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);';

interface Program {
  readonly type?: 'module' | 'commonjs';
  readonly blockMs?: number;
  /** How long it waits afterwards for its signal. */
  readonly afterMs?: number;
  /** Options of the server. */
  readonly options?: object;
  readonly hasThread?: boolean;
}

/**
 * A program that processes one task and ends by itself. It prints each event on a line. Its handler holds the loop as soon as the thread
 * has renewed the lease once: on a busy machine a thread may take longer to start than a lease lasts.
 */
function sourceOf(url: string, program: Program): string {
  const { type, blockMs = BLOCK_MS, afterMs = LOSS_MS, options, hasThread = true } = program;
  const database = new URL(url).pathname.slice(1) || '0';
  const load = (name: string): string =>
    type === 'commonjs' ? `require('${name}')` : `await import('${name}')`;
  return `(async () => {
    const { writeSync } = ${load('node:fs')};
    const { Redis } = ${load('ioredis')};
    const { RedisBroker } = ${load('escapement/tasks/redis')};
    const { Server } = ${load('escapement/tasks')};
    const say = (...words) => writeSync(1, words.join(' ') + '\\n');
    const blockMs = ${blockMs};
    const broker = new RedisBroker({ url: '${url}', leaseThread: ${hasThread} });
    const warn = (fields, message) => message.includes('thread') && say('warning', fields.err.message, fields.err.cause);
    const logger = { debug() {}, info() {}, warn, error() {} };
    const server = new Server({ broker, leaseMs: ${LEASE_MS}, logger, ...${JSON.stringify(options ?? {})} });
    const over = new Promise((resolve) => {
      for (const event of ['completed', 'retried', 'archived', 'lost'])
        server.on(event, () => { say(event); resolve(); });
    });
    const redis = new Redis('${url}');
    const untilIsNot = async (read, value) => {
      while ((await read()) === value) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    const connections = async () => {
      const clients = (await redis.client('LIST')).split('\\n');
      return clients.filter((client) => / name=escapement .* db=${database} /.test(client)).length;
    };
    const untilRenewed = async (id) => {
      if (${hasThread}) await untilIsNot(connections, await connections()); // the thread has none before its first renewal
      const leaseEnd = () => redis.zscore('asynq:{${QUEUE}}:lease', id);
      await untilIsNot(leaseEnd, await leaseEnd());
      redis.disconnect();
    };
    await server.start(async (task, context) => {
      await untilRenewed(context.taskId);
      say('epoch', context.leaseEpoch);
      ${HOLD}
      const { signal } = context;
      if (!signal.aborted) await new Promise((resolve) => {
        const enough = setTimeout(resolve, ${afterMs});
        signal.addEventListener('abort', () => { clearTimeout(enough); resolve(); });
      });
      say('signal', signal.reason?.code ?? 'none');
    });
    await over;
    await server.shutdown();
    await broker.close();
    say('closed', server.status);
  })();`;
}

interface Running {
  readonly url: string;
  readonly broker: RedisBroker;
  readonly taskId: string;
  /** What it has said. */
  readonly lines: string[];
  /** Its exit code. */
  readonly ended: Promise<number | null>;
  /** The epoch of the lease that its handler has, as soon as it holds the loop. */
  readonly epoch: () => Promise<string>;
}

/** One task, and a server that handles it. */
async function run(
  { onTestFinished }: TestContext,
  program: Program,
  taskOptions: TaskOptions = {},
): Promise<Running> {
  const { url, dispose } = await freshDatabase();
  onTestFinished(dispose);
  const broker = new RedisBroker({ url });
  onTestFinished(() => broker.close());
  const { id: taskId } = await new Client({ broker }).enqueue(new Task('hold'), taskOptions);
  const child = spawnProgram(sourceOf(url, program), { type: program.type ?? 'module' });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const ended = finished(child).then(({ code }) => code);
  const epoch = async (): Promise<string> => {
    await until('the handler runs', () => lines.length > 0);
    return (lines[0] as string).replace('epoch ', '');
  };
  return { url, broker, taskId, lines, ended, epoch };
}

/** What another server takes over, one that allows for nothing, until something happens. */
async function recoverUntil(
  broker: RedisBroker,
  end: Promise<unknown>,
  look: () => Promise<void>,
): Promise<readonly LeasedTask[]> {
  const recovered: LeasedTask[] = [];
  const state = { isOver: false };
  void end.then(() => (state.isOver = true));
  while (!state.isOver) {
    recovered.push(...(await broker.recover([QUEUE], 0, 600_000)));
    await look();
    await sleep(200);
  }
  return recovered;
}

/** The first that another server takes over. @param before - done before each attempt. */
async function firstRecovered(
  { broker }: Running,
  before = (): Promise<unknown> => Promise.resolve(),
): Promise<LeasedTask | undefined> {
  let recovered: readonly LeasedTask[] = [];
  await until(
    'another server has the task',
    async () => {
      await before();
      recovered = await broker.recover([QUEUE], 0, 600_000);
      return recovered.length > 0;
    },
    TEST_MS,
  );
  return recovered[0];
}

describe(
  'a handler that blocks the event loop for longer than a lease',
  { concurrent: !hasOneDatabase },
  () => {
    it.for(['module', 'commonjs'] as const)(
      'a handler that blocks the event loop keeps its task and its epoch (%s)',
      { timeout: TEST_MS },
      async (type, context) => {
        const running = await run(context, { type, afterMs: KEPT_MS });
        const { url, taskId, broker, ended, lines } = running;
        const epoch = await running.epoch();
        const leases = new Set<string>();
        const recovered = await recoverUntil(broker, ended, async () => {
          const lease = await withRedis(url, (redis) =>
            redis.hget(`asynq:{${QUEUE}}:t:${taskId}`, 'x:lease'),
          );
          if (lease !== null) leases.add(lease.replace(/:\d+$/u, ''));
        });
        expect(lines).toEqual([`epoch ${epoch}`, 'signal none', 'completed', 'closed closed']);
        expect([recovered, [...leases], await ended]).toEqual([[], [epoch], 0]);
      },
    );

    it(
      'without the thread the handler loses its task, and its signal fires afterwards',
      async (context) => {
        const running = await run(context, { hasThread: false });
        const { epoch } = (await firstRecovered(running)) ?? { epoch: 0 };
        expect(epoch).toBeGreaterThan(Number(await running.epoch()));
        expect(await running.ended).toBe(0);
        expect(running.lines.slice(1)).toEqual(['signal ERR_LEASE_LOST', 'lost', 'closed closed']);
      },
      TEST_MS,
    );

    it(
      'the signal of a blocked handler fires afterwards if another server has taken its task',
      async (context) => {
        const running = await run(context, {});
        await running.epoch();
        // Again and again: the thread may renew the lease before the other server has the task.
        const endLease = (): Promise<unknown> =>
          withRedis(running.url, (redis) => redis.zadd(`asynq:{${QUEUE}}:lease`, 'XX', 1, running.taskId));
        expect(await firstRecovered(running, endLease)).toMatchObject({ message: { id: running.taskId } });
        expect(await running.ended).toBe(0);
        expect(running.lines.slice(1)).toEqual(['signal ERR_LEASE_LOST', 'lost', 'closed closed']);
      },
      TEST_MS,
    );

    it(
      'a handler that never returns loses its task after the timeout and the grace',
      async (context) => {
        const enqueuedMs = performance.now();
        const running = await run(
          context,
          { blockMs: 600_000, options: { graceMs: 500 } },
          { timeoutMs: 2 * LEASE_MS },
        );
        await running.epoch();
        expect(await firstRecovered(running)).toMatchObject({ message: { id: running.taskId } });
        // Renewed until then …
        expect(performance.now() - enqueuedMs).toBeGreaterThan(2 * LEASE_MS);
        expect(running.lines).toHaveLength(1); // … and still held
      },
      TEST_MS + 3 * LEASE_MS,
    );
  },
);
