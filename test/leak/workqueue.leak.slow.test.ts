import {
  DelayingQueue,
  ItemExponentialFailureRateLimiter,
  ManualClock,
  RateLimitingQueue,
  SystemTimer,
  WorkQueue,
} from 'escapement';
import { checkQueue } from 'escapement/testing';
import { expect, test } from 'vitest';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { throwing } from '../timer/support/errors.ts';
import { collect, heldBytes, isCollected } from './collect.ts';

const noop = (): void => undefined;

/** Something that is big enough to matter, and that the test can watch being collected. */
class Item {
  readonly bytes = new Array<number>(100).fill(0);
  readonly key: unknown;

  constructor(key: unknown = this) {
    this.key = key;
  }
}

type Use = (queue: RateLimitingQueue<Item>, item: Item, clock: ManualClock) => Promise<void> | void;

async function getAndDone(queue: WorkQueue<Item>): Promise<void> {
  const taken = await queue.get();
  if (!taken.shutdown) queue.done(taken.item);
}

const USES: Record<string, Use> = {
  'it was taken and done': async (queue, item) => {
    queue.add(item);
    await getAndDone(queue);
  },
  'a waiting caller got it': async (queue, item) => {
    const waiting = getAndDone(queue);
    queue.add(item);
    await waiting;
  },
  'its lease is done': async (queue, item) => {
    queue.add(item);
    const { value: lease } = await queue.leases().next();
    lease?.done();
  },
  'it was added again while it was held': async (queue, item) => {
    queue.add(item);
    await queue.get();
    queue.add(item);
    queue.done(item);
    await getAndDone(queue);
  },
  'its time came': async (queue, item, clock) => {
    queue.addAfter(item, 10);
    clock.advance(10);
    await getAndDone(queue);
  },
  'it was promoted': async (queue, item) => {
    queue.addAfter(item, 10);
    queue.add(item);
    await getAndDone(queue);
  },
  'it was parked and cancelled': (queue, item) => {
    queue.addAfter(item, Infinity);
    queue.cancelDelayed(item);
  },
  'it has failed, and was forgotten': async (queue, item, clock) => {
    queue.addRateLimited(item);
    clock.advance(10);
    await getAndDone(queue);
    queue.forget(item);
  },
  'it was given up by a run': async (queue, item) => {
    const controller = new AbortController();
    queue.add(item);
    const onDrop = (): void => controller.abort();
    await queue.run(throwing(new Error('no')), { maxRetries: 0, signal: controller.signal, onDrop });
  },
};

function makeQueue(keyOf: (item: Item) => unknown = (item) => item) {
  const clock = new ManualClock();
  const limiter = new ItemExponentialFailureRateLimiter<Item>({ baseDelayMs: 10, maxDelayMs: 10 });
  return { queue: new RateLimitingQueue(limiter, { clock, keyOf }), clock };
}

const useAndForget = async (
  use: Use,
  queue: RateLimitingQueue<Item>,
  clock: ManualClock,
  key?: unknown,
): Promise<WeakRef<Item>> => {
  const item = new Item(key);
  await use(queue, item, clock);
  return new WeakRef(item);
};

test.each(Object.entries(USES))(
  'an item is held by nothing when %s, although the queue goes on',
  async (_, use) => {
    const { queue, clock } = makeQueue();
    expect(await isCollected(await useAndForget(use, queue, clock))).toBe(true);
    checkQueue(queue);
    expect([queue.length, queue.waiting]).toEqual([0, 0]);
  },
);

test.each(Object.entries(USES))(
  'neither an item nor an object as its key is held by anything when %s, nor an item whose key is kept',
  async (_, use) => {
    const { queue, clock } = makeQueue(({ key }) => key);
    for (let i = 0; i < 300; i++) queue.add(new Item(`neighbour ${i}`));
    for (let i = 0; i < 300; i++) await queue.get();
    const useObject = async (): Promise<WeakRef<object>[]> => {
      const key = { bytes: new Array<number>(100).fill(0) };
      return [await useAndForget(use, queue, clock, key), new WeakRef(key)];
    };
    const held = [await useAndForget(use, queue, clock, 'a short key'), ...(await useObject())];
    expect(await isCollected(...held)).toBe(true);
    checkQueue(queue);
  },
);

test('an item is held by nothing when it waited for capacity, and its caller gave up', async () => {
  const queue = new WorkQueue<Item>({ maxSize: 1 });
  queue.add(new Item());
  const controller = new AbortController();
  const giveUp = async (): Promise<WeakRef<Item>> => {
    const item = new Item();
    const added = queue.addWhenRoom(item, controller);
    controller.abort();
    await added.catch(noop);
    return new WeakRef(item);
  };
  expect(await isCollected(await giveUp())).toBe(true);
  expect(queue.length).toBe(1);
});

/** What a test process moves by on its own, and the keys that are kept: 8 bytes per item, less than any object. */
const SLACK_BYTES = 2_000_000;

type Cycle = (i: number) => void;
const CYCLES: Record<string, () => { cycle: Cycle; check: () => void }> = {
  'adds, gets and dones of distinct short keys': () => {
    const queue = new WorkQueue<string>();
    const cycle: Cycle = (i) => {
      queue.add(`key ${i}`);
      void queue.get();
      queue.done(`key ${i}`);
    };
    return { cycle, check: noop };
  },
  'adds, gets and dones of distinct short keys, a thousand at a time': () => {
    const queue = new WorkQueue<string>();
    const cycle: Cycle = (i) => {
      queue.add(`key ${i}`);
      if (i < 1_000) return;
      void queue.get();
      queue.done(`key ${i - 1_000}`);
    };
    return { cycle, check: () => expect(queue.length).toBe(1_000) };
  },
  'delayed items': () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ timer: new SystemTimer({ clock }) });
    const cycle: Cycle = (i) => {
      queue.addAfter(`key ${i}`, 5);
      if (i % 2 === 0) queue.cancelDelayed(`key ${i}`);
      else clock.advance(5);
      if (queue.length === 0) return;
      void queue.get();
      queue.done(`key ${i}`);
    };
    return { cycle, check: () => expect([queue.waiting, queue.length]).toEqual([0, 0]) };
  },
  'failures that nobody forgets': () => {
    const options = { baseDelayMs: 1, maxDelayMs: 1, maxItems: 1_000 };
    const limiter = new ItemExponentialFailureRateLimiter<string>(options);
    const cycle: Cycle = (i) => limiter.when(`key ${i}`);
    return { cycle, check: noop };
  },
};

test.each(Object.entries(CYCLES))(
  'after 125 000 items the heap is back where it was: %s',
  async (_, make) => {
    const { cycle, check } = make();
    const round = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) {
        cycle(i);
        // The host's queue of promise jobs grows to the most it ever held, and stays: that is not ours.
        if (i % 1_000 === 0) await Promise.resolve();
      }
    };
    await round(0, 50_000);
    const before = await heldBytes();
    await round(50_000, 175_000);
    expect((await heldBytes()) - before).toBeLessThan(SLACK_BYTES);
    check();
  },
);

test('what held 250 000 items that wait together is given back', async () => {
  const clock = new ManualClock();
  const queue = new DelayingQueue<number>({ clock });
  const fill = async (): Promise<void> => {
    for (let i = 0; i < 100_000; i++) {
      queue.add(i);
      queue.addAfter(-1 - i, 10);
    }
    clock.advance(10);
    expect(queue.length).toBe(200_000);
    for (let i = 0; i < 200_000; i++) {
      const taken = await queue.get();
      if (!taken.shutdown) queue.done(taken.item);
    }
  };
  await fill();
  const before = await heldBytes();
  for (let i = 0; i < 2; i++) await fill();
  expect((await heldBytes()) - before).toBeLessThan(SLACK_BYTES);
  expect(queue.length).toBe(0);
});

test('a burst of 250 000 delayed items leaves only what the timer keeps', async () => {
  const timer = new SystemTimer({ clock: new ManualClock() });
  const queue = new DelayingQueue<number>({ timer });
  const ids = Array.from({ length: 250_000 }, () => timer.schedule(10, noop));
  for (const id of ids) timer.cancel(id);
  ids.length = 0;
  const before = await heldBytes();
  for (let i = 0; i < 250_000; i++) queue.addAfter(i, 10);
  for (let i = 0; i < 250_000; i++) queue.cancelDelayed(i);
  expect((await heldBytes()) - before).toBeLessThan(SLACK_BYTES);
  queue.addAfter(1, 10);
  checkQueue(queue);
  expect(queue.shutDown()).toEqual([1]);
});

test('a long-lived signal does not hold a queue whose gets it has aborted, nor one whose loop was left', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const other = new AbortController();
  const useAndForget = async (): Promise<WeakRef<WorkQueue<string>>> => {
    const queue = new WorkQueue<string>();
    const gets = Array.from({ length: 5 }, () => queue.get({ signal }).catch(noop));
    const leases = queue.leases({ signal: other.signal });
    const step = leases.next();
    await leases.return?.();
    controller.abort();
    await Promise.all([...gets, step]);
    return new WeakRef(queue);
  };
  expect(await isCollected(await useAndForget())).toBe(true);
  expect([signal.aborted, other.signal.aborted]).toEqual([true, false]);
});

test('a queue is collectable once it has ended, although its metrics, its timer and its clock go on', async () => {
  const metrics = new RecordingMetrics();
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  const useAndEnd = async (): Promise<WeakRef<DelayingQueue<string>>> => {
    const queue = new DelayingQueue<string>({ timer, metrics });
    queue.addAfter('a', 10);
    queue.addAfter('b', Infinity);
    queue.add('c');
    expect(metrics.readers.size).toBe(3);
    queue.shutDown();
    await queue.run(noop);
    return new WeakRef(queue);
  };
  const queue = await useAndEnd();
  await collect();
  expect([metrics.readers.size, timer.size, clock.pendingWakeups]).toEqual([0, 0, 0]);
  expect(queue.deref()).toBeUndefined();
});

test('an idle queue that nothing refers to is collectable without a shutdown', async () => {
  const clock = new ManualClock();
  const useAndForget = async (): Promise<WeakRef<DelayingQueue<string>>> => {
    const queue = new DelayingQueue<string>({ clock });
    queue.addAfter('a', 10);
    clock.advance(10);
    const taken = await queue.get();
    expect(taken.item).toBe('a');
    void queue.get(); // somebody who waits for ever is no reason
    return new WeakRef(queue);
  };
  expect(await isCollected(await useAndForget())).toBe(true);
});
