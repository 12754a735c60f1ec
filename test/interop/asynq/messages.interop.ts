import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { QUEUES_KEY, QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import type { TaskMessage } from '../../../src/tasks/task-message.ts';
import { decodeTaskMessage, encodeTaskMessage } from '../../../src/tasks/wire/task-message-codec.ts';
import { buildGoAsynq, type GoAsynq } from './go-asynq.ts';
import { RedisProcess } from '../../redis/redis-process.ts';

const keys = new QueueKeys('low');
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

describe("asynq's messages in a real Redis", () => {
  it('a task that Go has enqueued is read, and written with the same bytes', async () => {
    const info = await go.ask('enqueue', address, 'email:send', '{"user_id":42}');
    const id = String(info['ID']);
    const bytes = await redis.hgetBuffer(keys.task(id), 'msg');
    if (bytes === null) throw new Error(`${keys.task(id)} has no msg`);
    const message = decodeTaskMessage(bytes);
    expect(message).toEqual({
      ...{ id, type: 'email:send', queue: 'low', payload: Buffer.from('{"user_id":42}'), headers: {} },
      ...{ maxRetry: 5, retried: 0, lastError: '', lastFailedAtMs: 0, completedAtMs: 0, group: '' },
      ...{ timeoutMs: 90_000, deadlineMs: 4_000_000_000_000, retentionMs: 86_400_000 },
      uniqueKey: `${keys.prefix}unique:email:send:1181f89307fa271072c095747d5813cc`,
    });
    expect(Buffer.from(encodeTaskMessage(message))).toEqual(bytes);
    expect(await redis.get(message.uniqueKey)).toBe(id);
    expect(await redis.smembers(QUEUES_KEY)).toEqual(['low']);
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual([id]);
    await redis.flushdb();
  });

  it('a task that we have written is shown by Go', async () => {
    await write({ ...ours, lastError: 'boom', lastFailedAtMs: 1_700_000_000_001, retried: 1 });
    const info = await go.ask('inspect', address, 'low', 'ours');
    expect(info).toMatchObject({
      ...{ ID: 'ours', Queue: 'low', Type: 't', Payload: Buffer.from('ä').toString('base64') },
      ...{
        MaxRetry: 3,
        Retried: 1,
        LastErr: 'boom',
        Timeout: 2_000_000_000,
        Deadline: '0001-01-01T00:00:00Z',
      },
    });
    expect(Date.parse(String(info['LastFailedAt']))).toBe(1_700_000_001_000);
    await redis.flushdb();
  });

  it('a task that we have written is run by Go', async () => {
    await write(ours);
    const seen = await go.ask('serve', address, 'low');
    expect(seen).toEqual({ id: 'ours', type: 't', payload: 'ä', timeoutSeconds: 2 });
    expect(await redis.exists(keys.task('ours'))).toBe(0);
    await redis.flushdb();
  });
});

const ours: TaskMessage = {
  ...{ id: 'ours', type: 't', queue: 'low', payload: Buffer.from('ä'), headers: { a: 'b' }, group: '' },
  ...{ maxRetry: 3, retried: 0, lastError: '', lastFailedAtMs: 0, uniqueKey: '' },
  ...{ timeoutMs: 1_001, deadlineMs: 0, retentionMs: 0, completedAtMs: 0 },
};

/** As asynq's `enqueue` leaves it. */
async function write(message: TaskMessage): Promise<void> {
  const { id } = message;
  const msg = Buffer.from(encodeTaskMessage(message));
  const pendingSince = `${Date.now()}000000`;
  await redis
    .multi()
    .sadd(QUEUES_KEY, message.queue)
    .hset(keys.task(id), { msg, state: 'pending', pending_since: pendingSince })
    .lpush(keys.pending, id)
    .exec();
}
