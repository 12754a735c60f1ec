import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleProgram } from '../../../bundle-program.ts';
import { acceptConnections } from '../../../listen.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { finished, spawnNode } from '../../../run-program.ts';
import { until } from '../../../until.ts';
import { codeOf } from '../../support/bench.ts';
import {
  closeAll,
  CLOSED,
  count,
  countUntilItWorks,
  expectOutages,
  open,
  timeOf,
  UNAVAILABLE,
  unavailableFor,
  untilReady,
  untilRefused,
} from './connection-support.ts';

/** Soon enough for a shutdown, also on a busy machine. An answer is waited for much longer. */
const PROMPT_MS = 3_000;
const LONG_MS = 60_000;

let server: RedisProcess;

beforeEach(async () => {
  server = await RedisProcess.start();
});
afterEach(async () => {
  await closeAll();
  await server.stop();
});

const states = (health: readonly { readonly state: string }[]): string[] => health.map(({ state }) => state);

describe('a server that stops', () => {
  it('the connection is ready again when the server is back, and each change of the health is reported once', async () => {
    const { connection, health } = open({ url: server.url, timeoutMs: LONG_MS });
    await count(connection);
    await server.kill();
    await until('it is noticed', () => connection.health.state === 'unavailable');
    // Several attempts fail meanwhile.
    await untilRefused(open({ url: server.url, timeoutMs: 500 }).connection, unavailableFor(/ECONNREFUSED/));
    await server.start();
    expect(await count(connection)).toBe(1);
    expectOutages(health);
    expect(connection.health).toEqual({ state: 'ready' });
  });

  it('commands in flight reject immediately when the connection is lost, and are not sent again', async () => {
    const { connection } = open({ url: server.url, timeoutMs: 10_000 });
    await count(connection);
    server.pause();
    const asked = count(connection);
    const tookMs = timeOf(asked.catch(() => undefined));
    await server.kill();
    await expect(asked).rejects.toMatchObject(unavailableFor(/connection was lost before the answer/));
    expect(await tookMs).toBeLessThan(5_000);
    await server.start();
    expect(await count(connection)).toBe(1);
  });

  it('an operation waits for the connection until its time limit', async () => {
    await server.kill();
    const { connection, health } = open({ url: server.url, timeoutMs: 1_000 });
    await until('the first attempt has failed', () => health.length === 1);
    const startMs = performance.now();
    await expect(count(connection)).rejects.toMatchObject(unavailableFor(/ECONNREFUSED/));
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(500); // a timeout of the host counts from the start of its turn, which may be late
    expect(states(health)).toEqual(['unavailable']);
    expect(connection.health).toMatchObject({ state: 'unavailable', cause: { code: 'ECONNREFUSED' } });
  });

  it('listeners are subscribed again after an outage', async () => {
    const { connection } = open({ url: server.url });
    const heard: string[] = [];
    await connection.channels.subscribe('a', (message) => heard.push(message.toString()));
    await connection.channels.subscribe('b', (message) => heard.push(message.toString()));
    await server.kill();
    await server.start();
    await until('both are heard again', async () => {
      await connection.run((client) => client.publish('a', 'A'));
      await connection.run((client) => client.publish('b', 'B'));
      return heard.includes('A') && heard.includes('B');
    });
  });
});

it('attempts to connect become rarer', async () => {
  const connects: number[] = [];
  const port = await acceptConnections((socket) => {
    connects.push(performance.now());
    socket.destroy();
  });
  open({ url: `redis://127.0.0.1:${port}` });
  await until('there were six', () => connects.length >= 6);
  expectRarer(connects);
});

it('attempts to connect become rarer while the server is a replica', async () => {
  await server.ask('REPLICAOF 127.0.0.1 1');
  const { connection } = open({ url: server.url });
  const refusals: number[] = []; // each ends a connection
  while (refusals.length < 6) {
    await expect(count(connection)).rejects.toMatchObject(unavailableFor(/READONLY/));
    refusals.push(performance.now());
  }
  expectRarer(refusals);
  await server.ask('REPLICAOF NO ONE');
  await countUntilItWorks(connection);
});

/** Whether they are 50, 100, 200, 400, 800 ms apart, or half of it, or anything in between. */
function expectRarer(timesMs: readonly number[]): void {
  const between = timesMs.slice(1).map((at, index) => at - (timesMs[index] ?? 0));
  for (const [index, ms] of between.entries()) expect(ms).toBeGreaterThanOrEqual(25 * 2 ** index - 1);
}

describe('a server that does not answer', () => {
  it('the connection to a silent server is given up in time, and made again when the server continues', async () => {
    const { connection, health } = open({ url: server.url, timeoutMs: 1_000 });
    await untilReady(connection);
    server.pause();
    const tookMs = await timeOf(expect(count(connection)).rejects.toMatchObject(UNAVAILABLE));
    expect(tookMs).toBeLessThan(5_000);
    await until('it is noticed', () => connection.health.state === 'unavailable');
    server.resume();
    await countUntilItWorks(connection);
    expectOutages(health);
  });

  it('a silent server gets no more commands after the time limit', async () => {
    const { connection } = open({ url: server.url, timeoutMs: 200 });
    await untilReady(connection);
    server.pause();
    for (let asked = 0; asked < 10; asked++)
      await expect(count(connection)).rejects.toMatchObject(UNAVAILABLE);
    server.resume();
    await countUntilItWorks(connection, 'other');
    // One that it has found in its socket, and perhaps one while the connection ended.
    const [counted = ''] = await server.ask('INCRBY asynq:{default}:count 0');
    expect(Number(counted.slice(1))).toBeLessThanOrEqual(2);
  });

  it('a caller that retries in a loop does not keep the connection from recovering', async () => {
    const { connection } = open({ url: server.url, timeoutMs: 200 });
    await untilReady(connection);
    setTimeout(() => {
      server.resume();
    }, 600);
    server.pause();
    let attempts = 0;
    for (let isBack = false; !isBack; attempts++) isBack = (await codeOf(count(connection))) === undefined;
    expect(attempts).toBeLessThan(50);
  });

  it('a subscription at a silent server rejects in time', async () => {
    const { connection } = open({ url: server.url, timeoutMs: 200 });
    await untilReady(connection);
    server.pause();
    await expect(connection.channels.subscribe('a', () => undefined)).rejects.toMatchObject(UNAVAILABLE);
    server.resume();
    await until('it listens', async () => {
      await connection.channels.subscribe('a', () => undefined);
      return true;
    });
  });
});

describe('closing a connection', () => {
  it('closing is prompt and rejects pending operations while the server does not answer', async () => {
    const { connection, health } = open({ url: server.url, timeoutMs: LONG_MS });
    await count(connection);
    await connection.channels.subscribe('a', () => undefined);
    server.pause();
    const asked = count(connection);
    const closed = timeOf(connection.close());
    await expect(asked).rejects.toMatchObject(CLOSED);
    expect(await closed).toBeLessThan(PROMPT_MS);
    await connection.close();
    await expect(count(connection)).rejects.toMatchObject(CLOSED);
    await expect(connection.channels.subscribe('a', () => undefined)).rejects.toMatchObject(CLOSED);
    expect(states(health)).toEqual(['ready']);
  });

  it('closing is prompt while the connection is being made', async () => {
    let connections = 0;
    const port = await acceptConnections(() => connections++);
    const { connection } = open({ url: `redis://127.0.0.1:${port}`, timeoutMs: LONG_MS });
    const asked = count(connection);
    const listens = connection.channels.subscribe('a', () => undefined);
    await until('it has connected', () => connections >= 1);
    const closed = timeOf(connection.close());
    await expect(asked).rejects.toMatchObject(CLOSED);
    await expect(listens).rejects.toMatchObject(CLOSED);
    expect(await closed).toBeLessThan(PROMPT_MS);
  });

  it('closing is prompt right after the start, and between two attempts to connect', async () => {
    const fresh = open({ url: server.url, timeoutMs: LONG_MS });
    expect(await timeOf(fresh.connection.close())).toBeLessThan(PROMPT_MS);
    await server.kill();
    const { connection, health } = open({ url: server.url, timeoutMs: LONG_MS });
    const asked = count(connection);
    await until('an attempt has failed', () => health.length > 0);
    const closed = timeOf(connection.close());
    await expect(asked).rejects.toMatchObject(CLOSED);
    expect(await closed).toBeLessThan(PROMPT_MS);
  });

  it('closing leaves no client at the server', async () => {
    const { connection } = open({ url: server.url });
    await connection.channels.subscribe('a', () => undefined);
    await connection.close();
    const redis = new Redis(server.url);
    await until('nobody else is there', async () => {
      const list = (await redis.call('CLIENT', 'LIST')) as string;
      return list.split('id=').filter((line) => line.includes(' name=escapement')).length === 0;
    });
    redis.disconnect();
  });

  const program = bundleProgram(new URL('close-and-end.ts', import.meta.url));
  it.each(['ready', 'listening', 'connecting', 'refused', 'paused'])(
    'the process ends by itself after closing: %s',
    async (state) => {
      if (state === 'paused') server.pause();
      if (state === 'refused') await server.kill();
      expect(await finished(spawnNode([program, server.url, state]))).toMatchObject({ code: 0, stderr: '' });
    },
  );
});
