import { DelayingQueue, type DelayingQueueOptions, ManualClock, SystemTimer } from 'escapement';
import { checkQueue, checkTimer } from 'escapement/testing';
import { expect, test, vi } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { processAll, takeAll } from './support/take.ts';

function make(options: DelayingQueueOptions<string> = {}) {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  const queue = new DelayingQueue<string>({ timer, ...options });
  const pass = (ms: number): number => {
    clock.advance(ms);
    checkQueue(queue);
    checkTimer(timer);
    return queue.length;
  };
  return { clock, timer, queue, pass };
}

test('add promotes a waiting item, which is delivered once', async () => {
  const { queue, pass, timer } = make();
  queue.addAfter('a', 10);
  queue.add('a');
  expect([queue.length, queue.waiting, timer.size]).toEqual([1, 0, 0]);
  expect(await processAll(queue)).toEqual(['a']);
  expect(pass(100)).toBe(0);
});

test('an item whose delay is over is queued under the key that it was added with, and keyOf is not called', () => {
  const keys: string[] = [];
  const { clock, queue } = make({
    keyOf: (item) => {
      keys.push(item);
      if (keys.length > 1) throw new Error('no key any more');
      return item;
    },
  });
  queue.addAfter('a', 10);
  clock.advance(10);
  expect([queue.length, queue.waiting, keys]).toEqual([1, 0, ['a']]);
});

test('a timer that was passed in stays open, and can be shared', () => {
  const { queue, timer, clock } = make();
  const other = new DelayingQueue<string>({ timer });
  queue.addAfter('a', 10);
  other.addAfter('b', 10);
  expect(clock.pendingWakeups).toBe(1);
  queue.shutDown();
  clock.advance(10);
  expect([queue.length, other.length, timer.size]).toEqual([0, 1, 0]);
  timer.schedule(1, () => undefined, 0);
  other.shutDown();
});

test.each(['shutDown', 'shutDownWithDrain'] as const)(
  'the timer of a queue is closed by %s, and nothing is armed any more',
  async (how) => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ clock });
    queue.addAfter('a', 10);
    const close = vi.spyOn(SystemTimer.prototype, 'close');
    await queue[how]();
    expect(close).toHaveBeenCalledOnce();
    close.mockRestore();
    expect(clock.pendingWakeups).toBe(0);
  },
);

test('an item is waiting while it is delayed or parked', () => {
  const { queue, pass } = make();
  queue.addAfter('a', 10);
  queue.addAfter('b', Infinity);
  expect(['a', 'b', 'c'].map((item) => queue.isWaiting(item))).toEqual([true, true, false]);
  pass(10);
  expect(['a', 'b', 'c'].map((item) => queue.isWaiting(item))).toEqual([false, true, false]);
});

test('the timer of a queue is made when the first item waits', () => {
  const clock = new ManualClock();
  const queue = new DelayingQueue<string>({ clock });
  queue.add('a');
  queue.addAfter('b', 0);
  queue.addAfter('c', Infinity);
  expect(queue.cancelDelayed('c')).toBe(true);
  expect(clock.pendingWakeups).toBe(0);
  queue.shutDown();
});

test('waiting items of a closed timer can be promoted and cancelled, and are returned at shutdown', async () => {
  const { queue, timer, pass } = make();
  for (const item of ['a', 'b', 'c']) queue.addAfter(item, 10);
  timer.close();
  expect(pass(100)).toBe(0);
  expect(queue.waiting).toBe(3);
  queue.add('a');
  expect(queue.cancelDelayed('b')).toBe(true);
  expect(await processAll(queue)).toEqual(['a']);
  expect(queue.shutDown()).toEqual(['c']);
  checkQueue(queue);
});

test('addAfter on a closed timer throws ERR_TIMER_CLOSED, and the item is not waiting', () => {
  const { queue, timer } = make();
  timer.close();
  expect(thrownBy(() => queue.addAfter('a', 10))).toHaveProperty('code', 'ERR_TIMER_CLOSED');
  expect(queue.waiting).toBe(0);
  queue.addAfter('a', 0);
  expect(queue.length).toBe(1);
  queue.addAfter('b', Infinity); // that needs no timer
  expect(queue.waiting).toBe(1);
  checkQueue(queue);
});

test('an earlier delay of a waiting item on a closed timer is refused and changes nothing', () => {
  const { queue, timer, clock } = make();
  queue.addAfter('a', 50);
  queue.addAfter('b', 40);
  queue.addAfter('parked', Infinity);
  timer.close();
  for (const item of ['a', 'parked']) {
    expect(thrownBy(() => queue.addAfter(item, 10))).toHaveProperty('code', 'ERR_TIMER_CLOSED');
  }
  queue.addAfter('a', 100); // the earlier time holds: there is nothing to do
  clock.advance(20);
  checkQueue(queue);
  expect(queue.shutDown()).toEqual(['b', 'a', 'parked']);
});

test('a timer that is closed with run delivers waiting items', async () => {
  const { queue, timer } = make();
  for (const item of ['a', 'b']) queue.addAfter(item, 10);
  timer.close({ pending: 'run' });
  expect(queue.waiting).toBe(0);
  expect(await processAll(queue)).toEqual(['a', 'b']);
});

test('a later due time of a waiting item is ignored', () => {
  const { queue, pass, timer } = make();
  queue.addAfter('a', 10);
  queue.addAfter('a', 20);
  expect([queue.waiting, timer.size]).toEqual([1, 1]);
  expect([pass(9), pass(1), pass(100)]).toEqual([0, 1, 1]);
});

test('an earlier due time of a waiting item replaces the later one', () => {
  const { queue, pass } = make();
  queue.addAfter('a', 100);
  pass(5);
  queue.addAfter('a', 10);
  expect([pass(9), pass(1), pass(200)]).toEqual([0, 1, 1]);
  expect(queue.waiting).toBe(0);
});

test('a waiting item keeps the newest object, whichever due time holds', async () => {
  const clock = new ManualClock();
  const queue = new DelayingQueue<{ name: string; version: number }>({ clock, keyOf: ({ name }) => name });
  queue.addAfter({ name: 'a', version: 1 }, 10);
  queue.addAfter({ name: 'a', version: 2 }, 20);
  queue.addAfter({ name: 'b', version: 1 }, 20);
  queue.addAfter({ name: 'b', version: 2 }, 10);
  clock.advance(10);
  expect((await takeAll(queue)).map(({ version }) => version)).toEqual([2, 2]);
  queue.shutDown();
});

test.each([2 ** 31 - 1, 2 ** 31, 2 ** 40])(
  'a delay after %d ms, beyond the longest host timeout, is never early',
  (delayMs) => {
    const { queue, pass } = make();
    queue.addAfter('a', delayMs);
    expect([pass(delayMs - 1), pass(1)]).toEqual([0, 1]);
  },
);

test('the longest delays can be used and cancelled', () => {
  const { queue } = make();
  queue.addAfter('a', Number.MAX_VALUE);
  queue.addAfter('b', Number.MAX_SAFE_INTEGER);
  checkQueue(queue);
  expect(queue.shutDown()).toEqual(['b', 'a']);
});

test('one wake-up is armed for any number of waiting items, and none without (kubernetes#83895)', () => {
  const { queue, clock, pass } = make();
  for (let i = 1; i <= 5_000; i++) queue.addAfter(`${i}`, i * 1e6); // client-go has room for 1 000
  expect([clock.pendingWakeups, queue.waiting]).toEqual([1, 5_000]);
  expect([pass(1e9), clock.pendingWakeups, queue.waiting]).toEqual([1_000, 1, 4_000]);
  for (let i = 1; i <= 5_000; i++) queue.cancelDelayed(`${i}`);
  expect(clock.pendingWakeups).toBe(0);
});

test('cancelDelayed removes a waiting item, and no other', async () => {
  const { queue, pass, timer } = make();
  queue.addAfter('a', 10);
  queue.addAfter('b', 10);
  queue.add('ready');
  queue.add('held');
  expect(['a', 'ready', 'never'].map((item) => queue.cancelDelayed(item))).toEqual([true, false, false]);
  expect([queue.waiting, timer.size]).toEqual([1, 1]);
  pass(10);
  expect(await takeAll(queue)).toEqual(['ready', 'held', 'b']);
  expect(queue.cancelDelayed('b')).toBe(false);
});

test('a cancelled item may wait again, for longer (kubernetes#133560)', () => {
  const { queue, pass } = make();
  queue.addAfter('a', 10);
  queue.cancelDelayed('a');
  queue.addAfter('a', 20);
  expect([pass(19), pass(1)]).toEqual([0, 1]);
});

test('an item whose keyOf throws is not waiting', () => {
  const mine = new Error('mine');
  const queue = new DelayingQueue<string>({
    clock: new ManualClock(),
    keyOf: (item) => {
      if (item === 'bad') throw mine;
      return item;
    },
  });
  queue.addAfter('a', 10);
  expect(thrownBy(() => queue.addAfter('bad', 10))).toBe(mine);
  expect(thrownBy(() => queue.cancelDelayed('bad'))).toBe(mine);
  expect(queue.waiting).toBe(1);
  checkQueue(queue);
  queue.shutDown();
});
