import { Inspector } from 'escapement/tasks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Scheduler, Task } from '../../../../src/tasks.ts';
import { encodeTaskMessage } from '../../../../src/tasks/wire/task-message-codec.ts';
import { newTask } from '../../../conformance/broker/support.ts';
import { redisSetup, type RedisSetup } from './setup.ts';

let setup: RedisSetup;
let inspector: Inspector;

beforeEach(async () => {
  setup = await redisSetup();
  inspector = new Inspector({ broker: setup.broker });
});
afterEach(async () => {
  await inspector.close();
  await setup.dispose();
});

describe('a queue whose name another program has chosen', () => {
  test('a queue whose keys could be those of another queue is not listed, changed or removed', async () => {
    const { broker, redis } = setup;
    await broker.enqueue(newTask({ queue: 'c', id: 'a', group: 'g}:pending' }));
    await redis.sadd('asynq:queues', 'c}:g:g');
    expect(await inspector.queues()).toEqual(['c']);
    expect(await inspector.repair({ apply: true })).toEqual([]);
    for (const act of [
      () => inspector.getQueueInfo('c}:g:g'),
      () => inspector.listPendingTasks('c}:g:g'),
      () => inspector.deleteAllPendingTasks('c}:g:g'),
      () => inspector.deleteQueue('c}:g:g', { force: true }),
    ]) {
      await expect(async () => act()).rejects.toThrow(
        "queue must be a queue name that does not begin with '}' and does not contain '}:'. Received 'c}:g:g'",
      );
    }
    expect((await broker.task('c', 'a')).state).toBe('aggregating');
  });

  test.each(['a{b', 'a}b', '{x}'])(
    'a queue with an unusual name is listed and removed if its keys are its own: %s',
    async (queue) => {
      const { redis } = setup;
      const { message } = newTask({ queue, id: 'a' });
      await redis.sadd('asynq:queues', queue);
      await redis.lpush(`asynq:{${queue}}:pending`, 'a');
      await redis.hset(
        `asynq:{${queue}}:t:a`,
        'state',
        'pending',
        'msg',
        Buffer.from(encodeTaskMessage(message)),
      );
      expect(await inspector.queues()).toEqual([queue]);
      expect(await inspector.listPendingTasks(queue)).toHaveLength(1);
      await inspector.deleteQueue(queue, { force: true });
      expect(await redis.keys('*')).toEqual([]);
    },
  );
});

test('a schedule entry leaves nothing in Redis 400 days after it was unregistered', async () => {
  const { broker, redis } = setup;
  const scheduler = new Scheduler({ broker });
  const id = scheduler.register('@every 1s', new Task('tick', undefined, { queue: 'ticks' }));
  const enqueued = new Promise((resolve) => scheduler.once('enqueued', resolve));
  await scheduler.start();
  await enqueued;
  scheduler.unregister(id);
  await scheduler.shutdown();
  expect(await inspector.listSchedulerEnqueueEvents(id)).toHaveLength(1);
  await setup.advance(91 * 86_400_000);
  expect(await inspector.listSchedulerEnqueueEvents(id)).toEqual([]);
  expect(await broker.lastTickMs('ticks', id)).toBeDefined();
  await setup.advance(310 * 86_400_000);
  const leftovers = (await redis.keys('*')).filter((key) => key.includes(id) || key.includes('x:ticks'));
  expect(leftovers.filter((key) => !key.includes(':t:'))).toEqual([]);
});
