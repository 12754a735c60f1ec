import { expect, test } from 'vitest';
import { Client, Task } from 'escapement/tasks';
import type { RedisBroker } from 'escapement/tasks/redis';
import { redisForTest } from '../tasks/broker/redis/setup.ts';
import { serveBoard, type Served } from './serve-dashboard.ts';

async function serveRedis(): Promise<Served & { broker: RedisBroker; client: Client; url: string }> {
  const { broker, url } = await redisForTest();
  return { ...(await serveBoard({ broker })), broker, client: new Client({ broker }), url };
}

test('queues and tasks on Redis are shown and changed', async () => {
  const { client, send, write, url } = await serveRedis();
  await client.enqueue(new Task('a', { x: 1 }), { taskId: 'a', uniqueTtlMs: 60_000, queue: '<b>' });
  await client.enqueue(new Task('b', null, { group: 'g', taskId: 'b' }));
  expect((await send('/api/session')).json).toMatchObject({ source: url });
  expect((await send('/api/health')).json).toMatchObject({ redis: { redis_mode: 'standalone' } });
  expect((await send('/api/queues/default')).json).toMatchObject({
    ...{ queue: { aggregating: 1 }, groups: [{ group: 'g', size: 1 }] },
  });
  const path = '/api/queues/%3Cb%3E/tasks/a';
  const { json } = await send(path);
  expect(json).toMatchObject({ payload: { text: '{"x":1}' }, uniqueKey: expect.any(String) as string });
  expect((await write('POST', `${path}/archive`)).status).toBe(204);
  expect((await send('/api/queues/%3Cb%3E/tasks?state=archived')).json).toMatchObject({ total: 1 });
  expect((await send('/api/search?text=%22x%22:1')).text).toContain('"matched":1');
  const change = { filter: { queue: ['<b>'] }, change: 'delete' };
  const { text } = await write('POST', '/api/search/change', change);
  expect(text).toContain('"matched":1,"changed":1,"refused":0,"isDone":true');
  expect((await send(path)).status).toBe(404);
});
