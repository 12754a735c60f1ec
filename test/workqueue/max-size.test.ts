import { getEventListeners } from 'node:events';
import { DelayingQueue, ManualClock, WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { processAll, takeAll, takeNow } from './support/take.ts';

function full(items = 'ab'): WorkQueue<string> {
  const queue = new WorkQueue<string>({ name: 'small', maxSize: items.length });
  for (const item of items) queue.add(item);
  return queue;
}

describe('maxSize items may be ready at once', () => {
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

  test('a full queue accepts a queued item with its newest object', async () => {
    const queue = new WorkQueue<{ key: string; version: number }>({ maxSize: 1, keyOf: ({ key }) => key });
    queue.add({ key: 'a', version: 1 });
    queue.add({ key: 'a', version: 2 });
    expect(await takeNow(queue)).toEqual({ key: 'a', version: 2 });
  });

  test('a full queue accepts an item that is held, and queues it when it is done', async () => {
    const queue = full('a');
    await takeNow(queue);
    queue.add('b');
    queue.add('a');
    queue.done('a');
    expect(queue.length).toBe(2);
    expect(await processAll(queue)).toEqual(['b', 'a']);
  });

  test('a full queue accepts an item whose delay ends', async () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ clock, maxSize: 1 });
    queue.add('a');
    queue.addAfter('b', 10);
    expect(thrownBy(() => queue.addAfter('c', 0))).toHaveProperty('code', 'ERR_QUEUE_FULL');
    clock.advance(10);
    expect(await processAll(queue)).toEqual(['a', 'b']);
    queue.shutDown();
  });

  test('items that waiting callers take do not count for maxSize', async () => {
    const queue = new WorkQueue<string>({ maxSize: 1 });
    const gets = [watch(queue.get()), watch(queue.get())];
    for (const item of 'abc') queue.add(item);
    expect(thrownBy(() => queue.add('d'))).toHaveProperty('code', 'ERR_QUEUE_FULL');
    await settled();
    expect(gets.map(({ value }) => value)).toMatchObject([{ item: 'a' }, { item: 'b' }]);
  });

  test('after shutdown a full queue ignores items', () => {
    const queue = full();
    queue.shutDown();
    queue.add('c');
    expect(queue.length).toBe(2);
  });
});

describe('addWhenRoom', () => {
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

  test('a later caller of addWhenRoom does not overtake waiting ones', async () => {
    const queue = full('a');
    const waiting = watch(queue.addWhenRoom('b'));
    await takeNow(queue);
    expect(thrownBy(() => queue.add('c'))).toHaveProperty('code', 'ERR_QUEUE_FULL');
    expect(waiting.state).toBe('resolved');
    expect(await takeAll(queue)).toEqual(['b']);
  });

  test('an interrupted item, or one added again, uses the capacity that callers of addWhenRoom wait for', async () => {
    const queue = full('a');
    await takeNow(queue);
    queue.add('b');
    queue.add('a');
    const waiting = watch(queue.addWhenRoom('c'));
    queue.done('a');
    expect(await takeNow(queue)).toBe('b'); // a is still in its place
    expect(waiting.state).toBe('pending');
    await takeNow(queue);
    expect(waiting.state).toBe('resolved');
  });

  test('an item of addWhenRoom that another caller adds meanwhile is processed once, with the newest object', async () => {
    const queue = new WorkQueue<{ key: string; version: number }>({ maxSize: 1, keyOf: ({ key }) => key });
    queue.add({ key: 'a', version: 1 });
    const [first, second, other] = [
      watch(queue.addWhenRoom({ key: 'b', version: 1 })),
      watch(queue.addWhenRoom({ key: 'b', version: 2 })),
      watch(queue.addWhenRoom({ key: 'c', version: 1 })),
    ];
    await takeNow(queue);
    expect([first.state, second.state, queue.length]).toEqual(['resolved', 'pending', 1]);
    expect(await takeNow(queue)).toEqual({ key: 'b', version: 2 });
    expect([second.state, other.state, queue.length]).toEqual(['resolved', 'resolved', 1]);
    queue.done({ key: 'b', version: 2 });
    expect(await takeAll(queue)).toEqual([{ key: 'c', version: 1 }]);
  });

  test('addWhenRoom with an aborted signal rejects, also with capacity', async () => {
    const reason = new Error('mine');
    const queue = new WorkQueue<string>({ maxSize: 1 });
    expect(await rejectionOf(queue.addWhenRoom('a', { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(queue.length).toBe(0);
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

  test('addWhenRoom that is aborted after its item was added resolves', async () => {
    const queue = full('a');
    const controller = new AbortController();
    const outcome = watch(queue.addWhenRoom('b', controller));
    void queue.get();
    controller.abort();
    await settled();
    expect([outcome.state, queue.length]).toEqual(['resolved', 1]);
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
});
