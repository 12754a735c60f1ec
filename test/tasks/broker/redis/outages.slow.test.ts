import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { withRedis } from '../../../redis/with-redis.ts';
import { runProgram } from '../../../run-program.ts';
import { OutageWorld } from './outage-world.ts';

/** Before, and after an outage. */
const TASKS = 50;
const OUTAGE_MS = 2_000;
/** What a fleet of one may ask and try in that time, and when it is over: many times less than one that spins. */
const FEW = 300;

const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const dispose of disposals.splice(0).reverse()) await dispose();
});

async function startRedis(...args: string[]): Promise<RedisProcess> {
  const server = await RedisProcess.start({ args });
  disposals.push(() => server.stop());
  return server;
}

async function startWorld(url: string): Promise<OutageWorld> {
  const world = new OutageWorld(url);
  disposals.push(() => world.close());
  await world.start();
  return world;
}

async function startSentinels(...args: string[]): Promise<RedisSentinels> {
  const sentinels = await RedisSentinels.start(undefined, args);
  disposals.push(() => sentinels.stop());
  return sentinels;
}

/** Tasks that primary and replica have. */
async function enqueueOnBoth(world: OutageWorld, redis: RedisSentinels): Promise<void> {
  await world.enqueue(4 * TASKS);
  const { url } = await redis.primary();
  expect(await withRedis(url, (client) => client.wait(1, 5_000))).toBe(1);
}

/** A number that Redis counts. */
async function statistic(server: RedisProcess, name: string): Promise<number> {
  const info = await withRedis(server.url, (redis) => redis.info('stats'));
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
}

describe('tasks of a client and a server', () => {
  it('all tasks are done although Redis is restarted', async () => {
    const server = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    const world = await startWorld(server.url);
    const endEnqueuing = world.keepEnqueuing();
    await world.untilRan(TASKS);
    await server.kill();
    await sleep(OUTAGE_MS);
    await server.start();
    await world.untilRan(TASKS);
    await endEnqueuing();
    expect(await statistic(server, 'total_connections_received')).toBeLessThan(FEW);
    await world.complete();
    expect(world.states).toEqual(['ready', 'unavailable', 'ready']);
  });

  it('all tasks are done although Redis stops answering, and Redis is not overloaded', async () => {
    const server = await startRedis();
    const world = await startWorld(server.url);
    const endEnqueuing = world.keepEnqueuing();
    await world.untilRan(TASKS);
    const before = await statistic(server, 'total_commands_processed');
    server.pause();
    await sleep(OUTAGE_MS);
    server.resume();
    expect((await statistic(server, 'total_commands_processed')) - before).toBeLessThan(FEW);
    await world.untilRan(TASKS);
    await endEnqueuing();
    await world.complete();
    expect(world.states).toEqual(['ready', 'unavailable', 'ready']);
  });

  it('all tasks are done although Redis pauses its clients', async () => {
    const server = await startRedis();
    const world = await startWorld(server.url);
    const endEnqueuing = world.keepEnqueuing();
    await world.untilRan(TASKS);
    await server.ask(`CLIENT PAUSE ${OUTAGE_MS}`);
    await world.untilRan(TASKS);
    await endEnqueuing();
    await world.complete();
  });

  // What a primary has taken and no replica has is gone with it: Redis promises no more. So they wait for the replica.

  it('all tasks are done although the primary dies', async () => {
    const redis = await startSentinels();
    const world = await startWorld(redis.url);
    await enqueueOnBoth(world, redis);
    const primary = await redis.primary();
    await primary.kill();
    await redis.untilPrimaryIsNot(primary);
    await world.enqueue(TASKS);
    await world.complete();
    expect(world.states).toEqual(['ready', 'unavailable', 'ready']);
  }, 60_000);

  it('all tasks are done although the primary is replaced, if one without replicas refuses writes', async () => {
    const redis = await startSentinels('--min-replicas-to-write', '1');
    const world = await startWorld(redis.url);
    await enqueueOnBoth(world, redis);
    await redis.failover();
    await world.enqueue(TASKS);
    await world.complete();
    expect(world.states.at(-1)).toBe('ready');
  }, 60_000);
});

describe('a server and its broker', () => {
  it('a server and its broker are closed promptly while Redis does not answer', async () => {
    const server = await startRedis();
    const world = await startWorld(server.url);
    const endEnqueuing = world.keepEnqueuing();
    await world.untilRan(TASKS);
    await endEnqueuing();
    server.pause();
    const startMs = performance.now();
    await world.broker.close();
    expect(performance.now() - startMs).toBeLessThan(500);
    await world.stop();
  });
});

/* Real time and real signals, against the built package: containers are killed ten seconds after SIGTERM. */

let redis: RedisProcess;

beforeEach(async () => {
  redis = await RedisProcess.start();
});
afterEach(() => redis.stop());

/** Runs something idle that Redis leaves, then SIGTERM. @returns from there to the end of the process, in milliseconds. */
function endWithoutRedis(signal: NodeJS.Signals, start: string): number {
  const { stdout, stderr, status } = runProgram(`
    import { Scheduler, Server, Task } from 'escapement/tasks';
    import { RedisBroker } from 'escapement/tasks/redis';
    const broker = new RedisBroker({ url: '${redis.url}' });
    const signalled = new Promise((resolve) => process.once('SIGTERM', resolve));
    setTimeout(() => process.kill(${redis.pid}, '${signal}'), 500);
    setTimeout(() => {
      const startMs = performance.now();
      process.on('exit', () => console.log(performance.now() - startMs));
      process.kill(process.pid, 'SIGTERM');
    }, 4_000);
    ${start}
    await broker.close();
  `);
  expect([stderr, status]).toEqual(['', 0]);
  return Number(stdout);
}

describe.each<[string, NodeJS.Signals]>([
  ['gone', 'SIGKILL'],
  ['silent', 'SIGSTOP'],
])('when Redis is %s', (_what, signal) => {
  it('an idle server ends within three seconds of SIGTERM', () => {
    const server = `await new Server({ broker, groupAggregator: () => new Task('t') }).run(() => undefined);`;
    expect(endWithoutRedis(signal, server)).toBeLessThan(3_000);
  });

  it('an idle scheduler ends within three seconds of its shutdown', () => {
    const scheduler = `
      const scheduler = new Scheduler({ broker });
      scheduler.register('@yearly', new Task('t'));
      await scheduler.start();
      await signalled;
      await scheduler.shutdown();
    `;
    expect(endWithoutRedis(signal, scheduler)).toBeLessThan(3_000);
  });
});
