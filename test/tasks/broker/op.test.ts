import { EmbeddedBroker } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { afterEach, describe, expect, test } from 'vitest';
import { newTask } from '../../conformance/broker/support.ts';

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((broker) => broker.close()));
});

function unreachable(): RedisBroker {
  const broker = new RedisBroker({ url: 'redis://127.0.0.1:1', timeoutMs: 30 });
  opened.push(broker);
  return broker;
}

describe('the op of an error', () => {
  test('enqueueMany names itself in the reason of each refused task', async () => {
    const broker = await EmbeddedBroker.open();
    opened.push(broker);
    const [first, second] = await broker.enqueueMany([newTask({ id: 'a' }), newTask({ id: 'a' })]);
    expect(first).toMatchObject({ status: 'fulfilled' });
    expect(second).toMatchObject({
      status: 'rejected',
      reason: { code: 'ERR_TASK_ID_CONFLICT', op: 'EmbeddedBroker.enqueueMany' },
    });
  });

  test('operations that share one failed request to Redis each name themselves', async () => {
    const broker = unreachable();
    const [single, many] = await Promise.allSettled([
      broker.enqueue(newTask({ id: 'a' })),
      broker.enqueueMany([newTask({ id: 'b' })]),
    ]);
    const code = 'ERR_BROKER_UNAVAILABLE';
    expect(single).toMatchObject({ reason: { code, op: 'RedisBroker.enqueue' } });
    expect(many).toMatchObject({ value: [{ reason: { code, op: 'RedisBroker.enqueueMany' } }] });
  });
});
