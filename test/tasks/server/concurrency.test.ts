import { ManualClock, SystemTimer } from 'escapement';
import { describe, expect, vi } from 'vitest';
import { settledWithin } from '../../../src/tasks/timed-work.ts';
import { Latch, QueuePicker } from '../../../src/tasks/server/processor.ts';
import { RunTable, type TaskRun } from '../../../src/tasks/server/run.ts';
import { withMethods } from '../support/with-methods.ts';
import { Held, it } from './support/world.ts';

it('the concurrency is never exceeded and always used', async ({ held, world }) => {
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

it('one dequeue takes as many tasks as there are free slots', async ({ world }) => {
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

describe('queues', () => {
  it('queues share the slots by their priorities', async ({ world }) => {
    const types: string[] = [];
    for (const queue of ['low', 'high']) {
      for (let i = 0; i < 40; i++) await world.enqueue(queue, undefined, { queue });
    }
    await world.start((task) => types.push(task.type), { concurrency: 1, queues: { low: 1, high: 3 } });
    const first = types.slice(0, 40);
    expect(first.filter((type) => type === 'high')).toHaveLength(30);
    expect(types).toHaveLength(80);
  });

  it('slots that a queue does not use go to the others', async ({ held, world }) => {
    for (let i = 0; i < 10; i++) await world.enqueue('job', undefined, { queue: 'low' });
    await world.enqueue('job', undefined, { queue: 'high' });
    await world.start(held.handler, { concurrency: 6, queues: { low: 1, high: 5 } });
    expect(held.runs).toHaveLength(6);
  });

  it('with strict priority a queue waits until those of higher priority are empty', async ({ world }) => {
    const types: string[] = [];
    for (const queue of ['low', 'high']) {
      for (let i = 0; i < 3; i++) await world.enqueue(queue, undefined, { queue });
    }
    const queues = { low: 1, high: 2 };
    await world.start((task) => types.push(task.type), { concurrency: 1, queues, strictPriority: true });
    expect(types).toEqual(['high', 'high', 'high', 'low', 'low', 'low']);
  });

  it('queues that are not served keep their tasks', async ({ world }) => {
    await world.start(() => undefined, { queues: { high: 1 } });
    expect(await world.state(await world.enqueue('job', undefined, { queue: 'low' }))).toBe('pending');
  });
});

it('synchronous handlers do not keep the host from its turn', async ({ world }) => {
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

/** What each queue is given over some rounds. */
function deal(picker: QueuePicker, places: number, rounds: number): Record<string, number> {
  const given: Record<string, number> = {};
  for (let i = 0; i < rounds; i++) {
    for (const { queue, limit } of picker.pick(places)) given[queue] = (given[queue] ?? 0) + limit;
  }
  return given;
}

describe('weighted', () => {
  const weights = { critical: 6, default: 3, low: 1 };

  it.each([1, 2, 3, 7, 10, 23])('the shares of queues hold with %d slots a round', (places) => {
    expect(deal(new QueuePicker(weights, false), places, 10)).toEqual({
      critical: 6 * places,
      default: 3 * places,
      low: places,
    });
  });

  it('single slots are distributed smoothly', () => {
    const picker = new QueuePicker({ a: 2, b: 1 }, false);
    expect([1, 2, 3, 4, 5, 6].map(() => picker.pick(1)[0]?.queue).join('')).toBe('abaaba');
  });

  it('common factors of priorities make no difference', () => {
    const picker = new QueuePicker({ a: 2_000_000, b: 1_000_000 }, false);
    expect(deal(picker, 3, 1)).toEqual({ a: 2, b: 1 });
  });

  it('a queue that was empty neither gains nor loses slots', () => {
    const picker = new QueuePicker({ a: 1, b: 1 }, false);
    picker.markEmpty('a');
    deal(picker, 1, 100);
    picker.markReady('a');
    expect(deal(picker, 1, 10)).toEqual({ a: 5, b: 5 });
  });
});

const clock = new ManualClock();
const timer = new SystemTimer({ clock });

it('a latch keeps one wake-up that comes before the wait, and leaves no timer when it is woken', async () => {
  const latch = new Latch(timer);
  latch.wake();
  latch.wake();
  await latch.wait();
  const done = vi.fn();
  void latch.wait(50).then(done);
  await clock.advanceAsync(49);
  expect(done).not.toHaveBeenCalled();
  await clock.advanceAsync(1);
  expect(done).toHaveBeenCalled();
  const woken = latch.wait(1e6);
  latch.wake();
  await woken;
  expect(timer.size).toBe(0);
});

it.each([
  ['resolves', () => Promise.resolve(), true],
  ['rejects', () => Promise.reject(new Error('x')), true],
  ['never settles', () => new Promise(() => undefined), false],
])(
  'settledWithin returns whether a promise settles in time, and leaves no timer, if it %s',
  async (_what, make, isSettled) => {
    const waited = settledWithin(timer, 100, make());
    if (!isSettled) await clock.advanceAsync(100);
    expect([await waited, timer.size]).toEqual([isSettled, 0]);
  },
);

it('slots of the table of runs are used again', () => {
  const latch = { wake: vi.fn() };
  const table = new RunTable(2, latch);
  const [a, b, c] = [{ slot: -1 }, { slot: -1 }, { slot: -1 }] as unknown as [TaskRun, TaskRun, TaskRun];
  table.add(a);
  table.add(b);
  expect([table.capacityLeft, table.size]).toEqual([0, 2]);
  table.remove(a);
  expect([table.capacityLeft, table.list(), latch.wake.mock.calls.length]).toEqual([1, [b], 1]);
  table.add(c);
  expect([c.slot, table.list()]).toEqual([0, [c, b]]);
});
