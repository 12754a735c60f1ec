import { WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { getEventListeners, setMaxListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { leaseNow, processAll, takeNow } from './support/take.ts';

const reason = new Error('gave up');

describe('get with a signal aborted beforehand rejects even if an item is ready, and the item stays', () => {
  test('with the reason of the signal', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    expect(await rejectionOf(queue.get({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(queue.length).toBe(1);
    expect(await processAll(queue)).toEqual(['a']);
  });

  test.each([[undefined], [null], [0], ['a string']])('whatever that is: %o', async (value) => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    controller.abort(value);
    expect(await rejectionOf(queue.get(controller))).toBe(controller.signal.reason);
  });

  test('in an empty queue, and in one that has ended', async () => {
    const queue = new WorkQueue<string>();
    const signal = AbortSignal.abort(reason);
    expect(await rejectionOf(queue.get({ signal }))).toBe(reason);
    queue.shutDown();
    expect(await rejectionOf(queue.get({ signal }))).toBe(reason);
    expect(await queue.get()).toEqual({ item: undefined, shutdown: true });
  });

  test('the leases of such a signal: the loop throws, and the item stays', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const loop = async (): Promise<void> => {
      for await (const lease of queue.leases({ signal: AbortSignal.abort(reason) })) {
        expect.fail(`got ${lease.item}`);
      }
    };
    expect(await rejectionOf(loop())).toBe(reason);
    expect(queue.length).toBe(1);
  });
});

describe('an abort never loses an item', () => {
  test('while it waits: it leaves the line, and what comes goes to the next', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    const first = watch(queue.get());
    const gone = watch(queue.get(controller));
    const last = watch(queue.get());
    controller.abort(reason);
    checkQueue(queue);
    for (const item of 'ab') queue.add(item);
    await settled();
    expect([first.value, gone.value, last.value]).toEqual([
      { item: 'a', shutdown: false },
      reason,
      { item: 'b', shutdown: false },
    ]);
  });

  test('in the turn in which it was given one: it has it', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    const outcome = watch(queue.get(controller));
    queue.add('a');
    controller.abort(reason);
    await settled();
    expect(outcome.value).toEqual({ item: 'a', shutdown: false });
    queue.done('a');
    checkQueue(queue);
  });

  test('in the turn before it was given one: somebody else has it', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    const outcome = watch(queue.get(controller));
    controller.abort(reason);
    queue.add('a');
    await settled();
    expect(outcome.value).toBe(reason);
    expect(await processAll(queue)).toEqual(['a']);
  });

  test('as a consequence of the hand-out itself', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    void queue.get().then(() => {
      controller.abort(reason);
    });
    const second = watch(queue.get(controller));
    queue.add('a');
    queue.add('b');
    await settled();
    expect(second.value).toEqual({ item: 'b', shutdown: false });
  });

  test('of all who wait, by one signal', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    const outcomes = Array.from({ length: 50 }, () => watch(queue.get(controller)));
    queue.add('a');
    controller.abort(reason);
    queue.add('b');
    await settled();
    expect(outcomes.map(({ state }) => state)).toEqual(['resolved', ...Array<string>(49).fill('rejected')]);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    expect(await takeNow(queue)).toBe('b');
  });

  test('in the middle of a loop over leases: what was given is worked on, then the loop throws', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    const seen: string[] = [];
    const loop = async (): Promise<void> => {
      for await (const lease of queue.leases(controller)) {
        seen.push(lease.item);
        lease.done();
      }
    };
    const outcome = watch(loop());
    await settled();
    queue.add('a');
    controller.abort(reason);
    queue.add('b');
    await settled();
    expect([outcome.value, seen]).toEqual([reason, ['a']]);
    expect(await processAll(queue)).toEqual(['b']);
  });

  test('a loop over leases that throws is over', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    const leases = queue.leases(controller);
    const waiting = watch(leases.next());
    controller.abort(reason);
    await settled();
    expect(waiting.value).toBe(reason);
    queue.add('a');
    expect(await leases.next()).toEqual({ done: true, value: undefined });
    expect(queue.length).toBe(1);
  });
});

test('a signal that fires later leaves what was handed out alone, and nothing listens to it', async () => {
  const queue = new WorkQueue<string>();
  const controller = new AbortController();
  const waiting = watch(queue.get(controller));
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
  queue.add('a');
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  queue.add('b');
  await queue.get(controller);
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  controller.abort(reason);
  await settled();
  expect(waiting.value).toEqual({ item: 'a', shutdown: false });
  for (const item of 'ab') queue.done(item);
  checkQueue(queue);
});

describe("a lease's done() is idempotent", () => {
  test('the second time it does nothing', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const lease = await leaseNow(queue.leases());
    queue.add('a');
    for (let i = 0; i < 3; i++) lease.done();
    expect(queue.length).toBe(1);
    expect(await processAll(queue)).toEqual(['a']);
  });

  test('it ends its own hand-out, and never that of the next holder', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const first = await leaseNow(queue.leases());
    queue.add('a');
    first.done();
    const second = await leaseNow(queue.leases());
    queue.add('a');
    first.done();
    expect(queue.length).toBe(0); // still held
    second.done();
    expect(queue.length).toBe(1);
    checkQueue(queue);
  });

  test('also when the key was forgotten and came back', async () => {
    const queue = new WorkQueue<object>();
    const item = {};
    queue.add(item);
    const first = await leaseNow(queue.leases());
    first.done();
    queue.add(item);
    const second = await leaseNow(queue.leases());
    first.done();
    expect(
      thrownBy(() => {
        queue.done({});
      }),
    ).toHaveProperty('code', 'ERR_NOT_PROCESSING');
    queue.done(item);
    second.done();
    checkQueue(queue);
  });

  test('it is one with done of the queue: whichever comes first', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const lease = await leaseNow(queue.leases());
    queue.done('a');
    lease.done();
    queue.add('a');
    const again = await leaseNow(queue.leases());
    again.done();
    expect(
      thrownBy(() => {
        queue.done('a');
      }),
    ).toHaveProperty('code', 'ERR_NOT_PROCESSING');
  });

  test('Symbol.dispose is done()', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const lease = await leaseNow(queue.leases());
    lease[Symbol.dispose]();
    lease[Symbol.dispose]();
    expect(
      thrownBy(() => {
        queue.done('a');
      }),
    ).toHaveProperty('code', 'ERR_NOT_PROCESSING');
  });
});

describe('the queue in a for await', () => {
  test('is the leases of what is ready, until it is shut down and empty', async () => {
    const queue = new WorkQueue<string>();
    for (const item of 'abc') queue.add(item);
    queue.shutDown();
    const seen: string[] = [];
    for await (const lease of queue) {
      seen.push(lease.item);
      lease.done();
    }
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  test('leaving the loop loses nothing, and what is held stays held', async () => {
    const queue = new WorkQueue<string>();
    for (const item of 'abc') queue.add(item);
    for await (const lease of queue) {
      expect(lease.item).toBe('a');
      break;
    }
    expect(queue.length).toBe(2);
    queue.done('a');
    expect(await processAll(queue)).toEqual(['b', 'c']);
  });

  test('several loops share the items', async () => {
    const queue = new WorkQueue<number>();
    const seen: number[][] = [[], [], []];
    const loops = seen.map(async (mine) => {
      for await (const lease of queue) {
        mine.push(lease.item);
        lease.done();
      }
    });
    for (let item = 0; item < 30; item++) queue.add(item);
    await settled();
    queue.shutDown();
    await Promise.all(loops);
    expect(seen.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, i) => i));
    expect(seen.every((mine) => mine.length > 0)).toBe(true);
  });

  test('steps that were asked for ahead are answered in order', async () => {
    const queue = new WorkQueue<string>();
    const leases = queue[Symbol.asyncIterator]();
    const steps = [leases.next(), leases.next(), leases.next()];
    for (const item of 'ab') queue.add(item);
    queue.shutDown();
    const items = (await Promise.all(steps)).map(({ value, done }) => value?.item ?? done);
    expect(items).toEqual(['a', 'b', true]);
  });

  test('return lets go of all steps that wait: they are over, and take nothing', async () => {
    const queue = new WorkQueue<string>();
    const leases = queue.leases();
    const steps = [watch(leases.next()), watch(leases.next())];
    expect(await leases.return?.()).toEqual({ done: true, value: undefined });
    queue.add('a');
    await settled();
    expect(steps.map(({ value }) => value)).toEqual(Array(2).fill({ done: true, value: undefined }));
    expect(await leases.next()).toEqual({ done: true, value: undefined });
    expect(await takeNow(queue)).toBe('a');
  });

  test('an iterator is its own iterable', () => {
    const leases = new WorkQueue<string>().leases();
    expect(leases[Symbol.asyncIterator]()).toBe(leases);
  });
});
