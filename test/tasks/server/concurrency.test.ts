import { describe, expect, it } from 'vitest';
import { Held, openWorld, withMethods } from './support/world.ts';

describe('concurrency', () => {
  it('the concurrency is never exceeded and always used', async () => {
    const world = await openWorld();
    const held = new Held();
    const server = await world.start(held.handler, { concurrency: 3 });
    for (let i = 0; i < 7; i++) await world.enqueue();
    expect([held.runs.length, server.activeCount]).toEqual([3, 3]);
    held.run(1).resolve();
    await world.settle();
    expect([held.runs.length, server.activeCount]).toEqual([4, 3]);
    for (let i = 0; i < 7; i++) {
      held.run(i).resolve();
      await world.settle();
    }
    expect([held.runs.length, server.activeCount]).toEqual([7, 0]);
  });

  it('one dequeue takes as many tasks as there are free slots', async () => {
    const world = await openWorld();
    const limits: number[] = [];
    const broker = withMethods(world.broker, {
      dequeue: (queue, limit, leaseMs) => {
        limits.push(limit);
        return world.broker.dequeue(queue, limit, leaseMs);
      },
    });
    for (let i = 0; i < 20; i++) await world.enqueue();
    const held = new Held();
    await world.start(held.handler, { broker, concurrency: 8 });
    expect([limits, held.runs.length]).toEqual([[8], 8]);
  });
});

describe('queues', () => {
  it('queues share the slots by their priorities', async () => {
    const world = await openWorld();
    const types: string[] = [];
    for (const queue of ['low', 'high']) {
      for (let i = 0; i < 40; i++) await world.enqueue(queue, undefined, { queue });
    }
    await world.start((task) => types.push(task.type), { concurrency: 1, queues: { low: 1, high: 3 } });
    const first = types.slice(0, 40);
    expect(first.filter((type) => type === 'high')).toHaveLength(30);
    expect(types).toHaveLength(80);
  });

  it('slots that a queue does not use go to the others', async () => {
    const world = await openWorld();
    const held = new Held();
    for (let i = 0; i < 10; i++) await world.enqueue('job', undefined, { queue: 'low' });
    await world.enqueue('job', undefined, { queue: 'high' });
    await world.start(held.handler, { concurrency: 6, queues: { low: 1, high: 5 } });
    expect(held.runs).toHaveLength(6);
  });

  it('with strict priority a queue waits until those of higher priority are empty', async () => {
    const world = await openWorld();
    const types: string[] = [];
    for (const queue of ['low', 'high']) {
      for (let i = 0; i < 3; i++) await world.enqueue(queue, undefined, { queue });
    }
    const queues = { low: 1, high: 2 };
    await world.start((task) => types.push(task.type), { concurrency: 1, queues, strictPriority: true });
    expect(types).toEqual(['high', 'high', 'high', 'low', 'low', 'low']);
  });

  it('queues that are not served keep their tasks', async () => {
    const world = await openWorld();
    await world.start(() => undefined, { queues: { high: 1 } });
    expect(await world.state(await world.enqueue('job', undefined, { queue: 'low' }))).toBe('pending');
  });

  it('paused queues keep their tasks until they are resumed', async () => {
    const world = await openWorld();
    await world.start(() => undefined);
    await world.enqueue();
    await world.broker.pause('default');
    const info = await world.enqueue();
    expect(await world.state(info)).toBe('pending');
    await world.broker.resume('default');
    await world.settle();
    expect(await world.state(info)).toBe('gone');
  });
});

describe('synchronous handlers', () => {
  it('synchronous handlers do not keep the host from its turn', async () => {
    const world = await openWorld();
    const ids = Array.from({ length: 5_000 }, () => world.enqueue.call(world));
    await Promise.all(ids);
    let handled = 0;
    let handledAtTurn = -1;
    await world.server({ concurrency: 10 }).start(() => {
      if (handled++ === 0) setImmediate(() => (handledAtTurn = handled));
    });
    while (handled < 5_000) await world.settle();
    expect(handledAtTurn).toBeGreaterThan(0);
    expect(handledAtTurn).toBeLessThan(2_000);
  });
});
