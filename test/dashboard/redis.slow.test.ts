import { expect, onTestFinished, test } from 'vitest';
import { Client, Server, Task } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { RedisProcess } from '../redis/redis-process.ts';
import { serveBoard } from './serve-dashboard.ts';
import { eventWith, linesOf, nextEvent, openEvents } from './streams.ts';

const TASKS = Number(process.env['DASHBOARD_TASKS'] ?? 60_000);

async function startRedis(): Promise<{ redis: RedisProcess; broker: RedisBroker; client: Client }> {
  const redis = await RedisProcess.start({ args: ['--slowlog-log-slower-than', '10000'] });
  const broker = new RedisBroker({ url: redis.url });
  onTestFinished(async () => {
    await broker.close();
    await redis.stop();
  });
  return { redis, broker, client: new Client({ broker }) };
}

test('a search finds 12 of many tasks on Redis, and each of its scripts reads a hundred of them at most', async () => {
  const { redis, broker, client } = await startRedis();
  for (let at = 0; at < TASKS; at += 1_000) {
    const entries = Array.from({ length: Math.min(1_000, TASKS - at) }, (_, nth) => {
      const isOne = (at + nth) % Math.floor(TASKS / 12) === 7;
      const task = new Task('mail', { user: at + nth, note: isOne ? 'Needle' : 'x'.repeat(100) });
      return { task, options: nth % 2 === 0 ? { processInMs: 86_400_000 } : {} };
    });
    await client.enqueueMany(entries);
  }
  await redis.ask('SLOWLOG RESET', 'CONFIG RESETSTAT');
  const { send } = await serveBoard({ broker });
  const startMs = performance.now();
  const lines = linesOf(await send('/api/search?text=needle'));
  const endMs = performance.now();
  expect(lines.at(-1)).toMatchObject({ scanned: TASKS, total: TASKS, matched: 12, isDone: true });
  const stats = (await redis.ask('INFO commandstats')).join();
  const [, calls, usPerCall] = /cmdstat_evalsha:calls=(\d+),.*?usec_per_call=([\d.]+)/.exec(stats) ?? [];
  expect(Number(calls)).toBeGreaterThanOrEqual(TASKS / 100);
  // How long one takes depends on what else the machine does, so that is only printed.
  if (TASKS > 100_000) {
    const [slow = ''] = await redis.ask('SLOWLOG LEN');
    const ms = Math.round(endMs - startMs);
    const scripts = `${calls} scripts of ${usPerCall} us, ${slow.slice(1)} commands over 10 ms`;
    process.stdout.write(`${TASKS} tasks: ${ms} ms, ${scripts}\n`);
  }
});

test('a dashboard reports that Redis was killed, and recovers when it is back', async () => {
  const { redis, broker, client } = await startRedis();
  await client.enqueue(new Task('a'));
  const { send } = await serveBoard({ broker });
  const stream = await openEvents(send);
  expect(await nextEvent(stream)).toMatchObject({ queueCount: 1 });
  await redis.kill();
  const away = await eventWith(stream, ({ unavailable }) => unavailable !== undefined);
  expect(away).toMatchObject({ queues: [{ queue: 'default', pending: 1 }] });
  expect((await send('/api/health')).status).toBe(200);
  await redis.start();
  await client.enqueue(new Task('a', null, { queue: 'second' }));
  const back = await eventWith(
    stream,
    ({ queueCount, unavailable }) => queueCount > 0 && unavailable === undefined,
  );
  expect(back).toMatchObject({ queues: [{ queue: 'second' }] });
});

test('a run on Redis is shown while it goes on, with its progress, and can be cancelled', async () => {
  const { broker, client } = await startRedis();
  const { send, write } = await serveBoard({ broker });
  const server = new Server({ broker, pollIntervalMs: 10 });
  let isStarted: () => void = () => undefined;
  const started = new Promise<void>((resolve) => (isStarted = resolve));
  await server.start(async (_, run) => {
    await run.progress({ done: 12_345_678_901 });
    isStarted();
    await new Promise((_resolve, reject) => {
      run.signal.addEventListener('abort', () => reject(new Error('cancelled')));
    });
  });
  onTestFinished(() => server.shutdown());
  await client.enqueue(new Task('long'), { taskId: 'a' });
  await started;
  const stream = await openEvents(send);
  const running = await eventWith(stream, ({ serverCount }) => serverCount > 0);
  expect(running).toMatchObject({ serverCount: 1, queues: [{ queue: 'default', hasServer: true }] });
  await expect
    .poll(async () => (await send('/api/servers')).json)
    .toMatchObject([{ runs: [{ taskId: 'a' }] }]);
  const { json } = await send('/api/queues/default/tasks/a');
  expect(json).toMatchObject({ state: 'active', progress: '{"done":12345678901}', actions: ['cancel'] });
  expect(json).toHaveProperty('run.startedAtMs');
  expect((await write('POST', '/api/queues/default/tasks/a/cancel')).status).toBe(204);
  await expect
    .poll(async () => (await send('/api/queues/default/tasks/a')).json)
    .toMatchObject({ state: 'retry', lastError: 'cancelled' });
});
