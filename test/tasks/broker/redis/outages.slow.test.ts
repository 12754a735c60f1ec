import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { withRedis } from '../../../redis/with-redis.ts';
import { startProgram } from '../../../run-program.ts';
import { measureRunningTime } from '../../../running-time.ts';
import { until } from '../../../until.ts';
import { timeOf } from './connection-support.ts';
import { OutageWorld } from './outage-world.ts';

/** Before, and after an outage. */
const TASKS = 50;
const OUTAGE_MS = 2_000;
/** What a fleet of one may ask and try in that time, and when it is over: many times less than one that spins. */
const FEW = 300;

async function startRedis({ onTestFinished }: TestContext, ...args: string[]): Promise<RedisProcess> {
  const server = await RedisProcess.start({ args });
  onTestFinished(() => server.stop());
  return server;
}

async function startWorld(
  { onTestFinished }: TestContext,
  url: string,
  options?: { readonly hasLimits: boolean },
): Promise<OutageWorld> {
  const world = new OutageWorld(url, options);
  onTestFinished(() => world.close());
  await world.start();
  return world;
}

async function startSentinels({ onTestFinished }: TestContext, ...args: string[]): Promise<RedisSentinels> {
  const sentinels = await RedisSentinels.start(undefined, args);
  onTestFinished(() => sentinels.stop());
  return sentinels;
}

/** Tasks that primary and replica have. WAIT is for the writes of its own client, and without a time limit. */
async function enqueueOnBoth(world: OutageWorld, redis: RedisSentinels): Promise<void> {
  await world.enqueue(4 * TASKS);
  const { url } = await redis.primary();
  await withRedis(url, async (client) => {
    await client.set('last', 'write');
    await client.wait(1, 0);
  });
}

/** A number that Redis counts. */
async function statistic(server: RedisProcess, name: string): Promise<number> {
  const info = await withRedis(server.url, (redis) => redis.info('stats'));
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
}

/** On a busy machine the broker may be without an answer for longer than it waits, before or after the outage. */
async function expectOutage(world: OutageWorld): Promise<void> {
  expect(world.states).toContain('unavailable');
  await expectReady(world);
}

function expectReady(world: OutageWorld): Promise<void> {
  return until('the broker is ready', () => world.states.at(-1) === 'ready');
}

/**
 * Lets tasks run before an outage, and enqueues more during and after it. They need not run soon: if the answer to a dequeue is lost,
 * the tasks in it may have the places of all keys until their leases are over.
 */
async function workThrough(world: OutageWorld, outage: () => Promise<unknown>): Promise<void> {
  const endEnqueuing = world.keepEnqueuing();
  await world.untilRan(TASKS);
  await outage();
  await endEnqueuing();
  await world.enqueue(TASKS);
}

describe.concurrent('tasks of a client and a server during an outage', () => {
  it('all tasks are done within all limits, and no place of a key is lost, although Redis is restarted', async (context) => {
    const server = await startRedis(context, '--appendonly', 'yes', '--appendfsync', 'always');
    const world = await startWorld(context, server.url, { hasLimits: true });
    await workThrough(world, async () => {
      await server.kill();
      await sleep(OUTAGE_MS);
      await server.start();
    });
    expect(await statistic(server, 'total_connections_received')).toBeLessThan(FEW);
    await world.complete();
    await expectOutage(world);
  });

  it('all tasks are done although Redis stops answering, and Redis is not overloaded', async (context) => {
    const server = await startRedis(context);
    const world = await startWorld(context, server.url);
    await workThrough(world, async () => {
      const before = await statistic(server, 'total_commands_processed');
      server.pause();
      await sleep(OUTAGE_MS);
      await until('it is noticed', () => world.states.includes('unavailable'));
      server.resume();
      expect((await statistic(server, 'total_commands_processed')) - before).toBeLessThan(FEW);
    });
    await world.complete();
    await expectOutage(world);
  });

  it('all tasks are done although Redis pauses its clients', async (context) => {
    const server = await startRedis(context);
    const world = await startWorld(context, server.url);
    await workThrough(world, () => server.ask(`CLIENT PAUSE ${OUTAGE_MS}`));
    await world.complete();
  });
});

// What a primary has taken and no replica has is gone with it: Redis promises no more. So they wait for the replica.
it('all tasks are done although the primary dies', async (context) => {
  const redis = await startSentinels(context);
  const world = await startWorld(context, redis.url);
  await enqueueOnBoth(world, redis);
  const primary = await redis.primary();
  await primary.kill();
  await redis.untilReplaced(primary);
  await world.enqueue(TASKS);
  await world.complete();
  await expectOutage(world);
});

it('all tasks are done within all limits, and no place of a key is lost, although the primary is replaced, if one without replicas refuses writes', async (context) => {
  const redis = await startSentinels(context, '--min-replicas-to-write', '1');
  const world = await startWorld(context, redis.url, { hasLimits: true });
  await enqueueOnBoth(world, redis);
  await redis.failover();
  await world.enqueue(TASKS);
  await world.complete();
  await expectReady(world);
});

it('a server and its broker are closed promptly while Redis does not answer', async (context) => {
  const server = await startRedis(context);
  const world = await startWorld(context, server.url);
  const endEnqueuing = world.keepEnqueuing();
  await world.untilRan(TASKS);
  await endEnqueuing();
  server.pause();
  expect(await timeOf(world.broker.close())).toBeLessThan(5_000);
  await world.stop();
});

/* Real time and real signals, against the built package: containers are killed ten seconds after SIGTERM. */

/** Runs something idle that Redis leaves, then SIGTERM. @returns the running time from there to the end of the process, in milliseconds. */
async function endWithoutRedis(context: TestContext, signal: NodeJS.Signals, start: string): Promise<number> {
  const redis = await startRedis(context);
  const { stdout, stderr, status } = await startProgram(`
    import { Scheduler, Server, Task } from 'escapement/tasks';
    import { RedisBroker } from 'escapement/tasks/redis';
    const broker = new RedisBroker({ url: '${redis.url}' });
    const signalled = new Promise((resolve) => process.once('SIGTERM', resolve));
    function endSoon() {
      setTimeout(() => process.kill(${redis.pid}, '${signal}'), 500);
      setTimeout(() => {
        const end = (${measureRunningTime.toString()})();
        process.on('exit', () => console.log(end()));
        process.kill(process.pid, 'SIGTERM');
      }, 4_000);
    }
    ${start}
    await broker.close();
  `);
  expect([stderr, status]).toEqual(['', 0]);
  return Number(stdout);
}

const IDLE_SERVER = `
  const server = new Server({ broker, groupAggregator: () => new Task('t') });
  await server.start(() => undefined);
  endSoon();
  await signalled;
  await server.shutdown();
`;
const IDLE_SCHEDULER = `
  const scheduler = new Scheduler({ broker });
  scheduler.register('@yearly', new Task('t'));
  await scheduler.start();
  endSoon();
  await signalled;
  await scheduler.shutdown();
`;

describe.concurrent('a shutdown without Redis', () => {
  it.for([
    ['server', 'has ended', 'SIGKILL', IDLE_SERVER],
    ['server', 'does not answer', 'SIGSTOP', IDLE_SERVER],
    ['scheduler', 'has ended', 'SIGKILL', IDLE_SCHEDULER],
    ['scheduler', 'does not answer', 'SIGSTOP', IDLE_SCHEDULER],
  ] as const)(
    'an idle %s ends within eight seconds of SIGTERM if Redis %s',
    async ([_part, _state, signal, start], context) => {
      expect(await endWithoutRedis(context, signal, start)).toBeLessThan(8_000);
    },
  );
});
