import { getEventListeners, setMaxListeners } from 'node:events';
import { WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { processAll, takeNow } from './support/take.ts';

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
