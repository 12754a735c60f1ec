import { getEventListeners } from 'node:events';
import { WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { settled, watch } from './support/outcome.ts';
import { takeAll, takeNow } from './support/take.ts';

function full(items = 'ab'): WorkQueue<string> {
  const queue = new WorkQueue<string>({ name: 'small', maxSize: items.length });
  for (const item of items) queue.add(item);
  return queue;
}

test('a full queue refuses a new item', () => {
  const queue = full();
  expect(thrownBy(() => queue.add('c'))).toMatchObject({
    code: 'ERR_QUEUE_FULL',
    op: 'WorkQueue.add',
    message: "queue 'small' is full: maxSize is 2",
  });
  expect(queue.length).toBe(2);
  checkQueue(queue);
});

test('addWhenRoom adds at once with capacity, for a queued item, and without maxSize', async () => {
  const queue = full('a');
  await queue.addWhenRoom('a');
  await takeNow(queue);
  void queue.addWhenRoom('b');
  void queue.addWhenRoom('a');
  expect(queue.length).toBe(1);
  const unlimited = new WorkQueue<number>();
  for (let i = 0; i < 100; i++) void unlimited.addWhenRoom(i);
  expect(unlimited.length).toBe(100);
});

test('callers of addWhenRoom are served in order', async () => {
  const queue = full();
  const adders = Array.from('cde', (item) => watch(queue.addWhenRoom(item)));
  await settled();
  expect(adders.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
  expect(await takeNow(queue)).toBe('a');
  expect(adders.map(({ state }) => state)).toEqual(['resolved', 'pending', 'pending']);
  expect(queue.length).toBe(2);
  expect(await takeAll(queue)).toEqual(['b', 'c', 'd', 'e']);
  expect(adders.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'resolved']);
});

test('addWhenRoom that is aborted while it waits adds nothing', async () => {
  const reason = new Error('mine');
  const queue = full('a');
  const controller = new AbortController();
  const [gone, other] = [watch(queue.addWhenRoom('b', controller)), watch(queue.addWhenRoom('c'))];
  controller.abort(reason);
  await settled();
  expect(gone.value).toBe(reason);
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  expect(await takeAll(queue)).toEqual(['a', 'c']);
  expect(other.state).toBe('resolved');
});

test('shutdown rejects addWhenRoom with ERR_QUEUE_SHUT_DOWN, and the item is not added', async () => {
  const queue = full('a');
  const adders = Array.from('bc', (item) => watch(queue.addWhenRoom(item)));
  queue.shutDown();
  await settled();
  for (const { value } of adders) expect(value).toHaveProperty('code', 'ERR_QUEUE_SHUT_DOWN');
  expect(await takeAll(queue)).toEqual(['a']);
  expect((await queue.get()).shutdown).toBe(true);
  checkQueue(queue);
});

test('addWhenRoom rejects if keyOf throws, and the next caller is served', async () => {
  const mine = new Error('mine');
  let isBroken = false;
  const queue = new WorkQueue<string>({
    maxSize: 1,
    keyOf: (item) => {
      if (isBroken && item === 'b') throw mine;
      return item;
    },
  });
  queue.add('a');
  const adders = Array.from('bc', (item) => watch(queue.addWhenRoom(item)));
  isBroken = true;
  await takeNow(queue);
  expect(adders.map(({ state }) => state)).toEqual(['rejected', 'resolved']);
  expect(adders[0]?.value).toBe(mine);
  expect(queue.length).toBe(1);
});

test('a producer that uses addWhenRoom never has more than maxSize items ready', async () => {
  const queue = new WorkQueue<number>({ maxSize: 3 });
  const seen: number[] = [];
  const run = queue.run(async (item) => {
    expect(queue.length).toBeLessThanOrEqual(3);
    seen.push(item);
    await settled();
  });
  for (let item = 0; item < 50; item++) await queue.addWhenRoom(item);
  await queue.shutDownWithDrain();
  await run;
  expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => i));
});
