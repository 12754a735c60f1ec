import { WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { getEventListeners, setMaxListeners } from 'node:events';
import { expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { leaseNow, processAll, takeNow, queueOf } from './support/take.ts';

const reason = new Error('gave up');
const END = { done: true, value: undefined };

test.each<[call: string, action: (queue: WorkQueue<string>, signal: AbortSignal) => Promise<unknown>]>([
  ['get', (queue, signal) => queue.get({ signal })],
  ['leases', (queue, signal) => queue.leases({ signal }).next()],
  ['addWhenRoom', (queue, signal) => queue.addWhenRoom('b', { signal })],
])('%s with an aborted signal rejects with its reason, and changes nothing', async (_, action) => {
  const queue = queueOf('a');
  expect(await rejectionOf(action(queue, AbortSignal.abort(reason)))).toBe(reason);
  expect(await processAll(queue)).toEqual(['a']);
});

test.each([[undefined], [null], [0], ['a string']])(
  'get rejects with the reason of its signal, whatever it is: %o',
  async (value) => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    controller.abort(value);
    expect(await rejectionOf(queue.get(controller))).toBe(controller.signal.reason);
  },
);

test('an aborted get leaves the line, and the next item goes to the next caller (kubernetes#131185)', async () => {
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

test('an abort that follows from the delivery of an item loses nothing', async () => {
  const queue = new WorkQueue<string>();
  const controller = new AbortController();
  void queue.get().then(() => controller.abort(reason));
  const second = watch(queue.get(controller));
  queue.add('a');
  queue.add('b');
  await settled();
  expect(second.value).toEqual({ item: 'b', shutdown: false });
});

test('one abort ends all waiting calls with its signal', async () => {
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

test('a loop over leases processes the item that it was given before an abort, then throws', async () => {
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

test('a loop over leases that has thrown is over', async () => {
  const queue = new WorkQueue<string>();
  const controller = new AbortController();
  const leases = queue.leases(controller);
  const waiting = watch(leases.next());
  controller.abort(reason);
  await settled();
  expect(waiting.value).toBe(reason);
  queue.add('a');
  expect(await leases.next()).toEqual(END);
  const late = queue.leases(controller);
  expect(await rejectionOf(late.next())).toBe(reason);
  expect(await late.next()).toEqual(END);
  expect(queue.length).toBe(1);
});

test('an iterator over leases that was returned is over, for its pending steps too', async () => {
  const queue = new WorkQueue<string>();
  const leases = queue.leases();
  const waiting = watch(leases.next());
  await leases.return?.();
  await settled();
  expect(waiting.value).toEqual(END);
  queue.add('a');
  expect(await leases.next()).toEqual(END);
  expect(queue.length).toBe(1);
});

test('a second done() of a lease does nothing, also while the item is held again', async () => {
  const queue = queueOf('a');
  const lease = await leaseNow(queue.leases());
  queue.add('a');
  for (let i = 0; i < 3; i++) lease.done();
  expect(queue.length).toBe(1);
  await takeNow(queue);
  lease.done();
  expect(queue.processing).toBe(1);
});

test('Symbol.dispose ends a lease', async () => {
  const queue = queueOf('a');
  const lease = await leaseNow(queue.leases());
  lease[Symbol.dispose]();
  lease[Symbol.dispose]();
  expect(thrownBy(() => queue.done('a'))).toHaveProperty('code', 'ERR_NOT_PROCESSING');
});

test('for await over a queue yields leases until it is shut down and empty', async () => {
  const queue = queueOf('abc');
  queue.shutDown();
  const seen: string[] = [];
  for await (const lease of queue) {
    seen.push(lease.item);
    lease.done();
  }
  expect(seen).toEqual(['a', 'b', 'c']);
});

test('leaving a loop over leases loses nothing, and held items stay held', async () => {
  const queue = queueOf('abc');
  for await (const lease of queue) {
    expect(lease.item).toBe('a');
    break;
  }
  expect(queue.length).toBe(2);
  queue.done('a');
  expect(await processAll(queue)).toEqual(['b', 'c']);
});

test('an iterator over leases is its own iterable', () => {
  const leases = new WorkQueue<string>().leases();
  expect(leases[Symbol.asyncIterator]()).toBe(leases);
});
