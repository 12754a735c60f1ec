import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  SCHEDULERS_KEY,
  schedulerHistoryKey,
  schedulerKey,
  serverKey,
  SERVERS_KEY,
  workersKey,
  WORKERS_KEY,
} from '../../../src/tasks/broker/redis/keys.ts';
import type { ServerState } from '../../../src/tasks/broker/broker.ts';
import {
  decodeEnqueueEvent,
  decodeScheduleEntry,
  encodeEnqueueEvent,
  encodeScheduleEntry,
} from '../../../src/tasks/wire/scheduler-codec.ts';
import {
  decodeServer,
  decodeWorker,
  encodeServer,
  encodeWorker,
} from '../../../src/tasks/wire/server-codec.ts';
import { buildGoAsynq, type GoAsynq } from './go-asynq.ts';
import { RedisProcess } from '../../redis/redis-process.ts';

let go: GoAsynq;
let server: RedisProcess;
let redis: Redis;
let address: string;

beforeAll(async () => {
  go = buildGoAsynq();
  server = await RedisProcess.start();
  address = `127.0.0.1:${server.port}`;
  redis = new Redis(server.port, '127.0.0.1');
}, 300_000);

afterAll(async () => {
  redis.disconnect();
  await server.stop();
  go.remove();
});

const startedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

describe('servers and schedulers that we show', () => {
  it('a server and its worker are listed by Go', async () => {
    const state: ServerState = {
      ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: { low: 1, high: 6 }, strictPriority: true },
      ...{ status: 'active', startedAtMs },
      workers: [
        { taskId: 'id', taskType: 't', payload: Buffer.from('p'), queue: 'low', startedAtMs, deadlineMs: 0 },
      ],
    };
    await show(SERVERS_KEY, serverKey('h', 7, 's'));
    await show(WORKERS_KEY, workersKey('h', 7, 's'));
    await redis.set(serverKey('h', 7, 's'), Buffer.from(encodeServer(state)));
    for (const worker of state.workers)
      await redis.hset(workersKey('h', 7, 's'), worker.taskId, Buffer.from(encodeWorker(state, worker)));

    expect(await go.ask<unknown>('servers', address)).toEqual([
      {
        ...{ ID: 's', Host: 'h', PID: 7, Concurrency: 10, Queues: { low: 1, high: 6 }, StrictPriority: true },
        ...{ Status: 'active', Started: '2026-01-02T03:04:05.678Z' },
        ActiveWorkers: [
          {
            ...{
              TaskID: 'id',
              TaskType: 't',
              TaskPayload: Buffer.from('p').toString('base64'),
              Queue: 'low',
            },
            ...{ Started: '2026-01-02T03:04:05.678Z', Deadline: '0001-01-01T00:00:00Z' },
          },
        ],
      },
    ]);
    await redis.flushdb();
  });

  it('an entry that was never enqueued, and an event, are listed by Go', async () => {
    const entry = {
      ...{ id: 'e', spec: '@every 1m', taskType: 't', payload: Buffer.from('p') },
      ...{ options: ['Queue("low")', 'MaxRetry(5)'], nextEnqueueAtMs: startedAtMs, prevEnqueueAtMs: 0 },
    };
    await show(SCHEDULERS_KEY, schedulerKey('h:7:s'));
    await redis.lpush(schedulerKey('h:7:s'), Buffer.from(encodeScheduleEntry(entry)));
    const event = Buffer.from(encodeEnqueueEvent({ taskId: 'id', atMs: startedAtMs }));
    await redis.zadd(schedulerHistoryKey('e'), Math.floor(startedAtMs / 1_000), event);

    expect(await go.ask<unknown>('entries', address)).toEqual([
      {
        ...{ id: 'e', spec: '@every 1m', type: 't', payload: 'p', options: ['Queue("low")', 'MaxRetry(5)'] },
        ...{ next: '2026-01-02T03:04:05.678Z', prevIsZero: true },
      },
    ]);
    expect(await go.ask<unknown>('events', address, 'e')).toEqual([
      { TaskID: 'id', EnqueuedAt: '2026-01-02T03:04:05.678Z' },
    ]);
    await redis.flushdb();
  });
});

describe('servers and schedulers that Go shows', () => {
  it('are read: a server with a worker, an entry, an event', async () => {
    const beforeMs = Date.now();
    const { ID: taskId } = await go.ask('enqueue', address, 'email:send', 'p');
    const kill = go.hold(address, 'low');
    try {
      const [workers = ''] = await until(() => redis.zrange(WORKERS_KEY, '0', '-1'));
      const [worker] = await until(() => redis.hvalsBuffer(workers));
      const [serverName = ''] = await redis.zrange(SERVERS_KEY, '0', '-1');
      const head = decodeServer(orNothing(await redis.getBuffer(serverName)));
      expect(head).toMatchObject({
        concurrency: 1,
        queues: { low: 1 },
        strictPriority: false,
        status: 'active',
      });
      expect(serverKey(head.host, head.pid, head.id)).toBe(serverName);
      expect(workersKey(head.host, head.pid, head.id)).toBe(workers);
      const run = decodeWorker(orNothing(worker));
      expect(run).toMatchObject({ taskId, taskType: 'email:send', queue: 'low', payload: Buffer.from('p') });
      expect(run.startedAtMs).toBeGreaterThanOrEqual(beforeMs);
      expect(run.deadlineMs - run.startedAtMs).toBeGreaterThan(80_000);

      const [scheduler = ''] = await until(() => redis.zrange(SCHEDULERS_KEY, '0', '-1'));
      const [written] = await redis.lrangeBuffer(scheduler, '0', '-1');
      const entry = decodeScheduleEntry(orNothing(written));
      expect(entry).toMatchObject({ spec: '@every 1s', taskType: 'tick', payload: Buffer.from('p') });
      expect(entry.options).toEqual(['Queue("other")', 'MaxRetry(5)']);
      expect(entry.nextEnqueueAtMs).toBeGreaterThan(beforeMs);
      const [event] = await redis.zrangeBuffer(schedulerHistoryKey(entry.id), '0', '0');
      expect(decodeEnqueueEvent(orNothing(event)).atMs).toBeGreaterThan(beforeMs);
    } finally {
      await kill();
    }
  });
});

/** Alive for a while. */
async function show(list: string, key: string): Promise<void> {
  await redis.zadd(list, Math.ceil(Date.now() / 1_000) + 60, key);
}

/** Another process writes at its own pace: a server every 5 seconds, a scheduler every 10. */
async function until<T>(read: () => Promise<T[]>): Promise<T[]> {
  for (;;) {
    const found = await read();
    if (found.length > 0) return found;
    await sleep(100);
  }
}

function orNothing(bytes: Buffer | null | undefined): Buffer {
  if (bytes === null || bytes === undefined) throw new Error('asynq has written nothing');
  return bytes;
}
