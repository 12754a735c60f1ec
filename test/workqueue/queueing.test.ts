import { type RateLimiter, RateLimitingQueue, WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { settled, watch } from './support/outcome.ts';
import { leaseNow, processAll, takeAll, takeNow, queueHolding } from './support/take.ts';

/** Keys of every kind, and the unusual ones. */
const KEYS: readonly (readonly [string, unknown])[] = [
  ['NaN', NaN],
  ['undefined', undefined],
  ['null', null],
  ['zero', 0],
  ['an empty string', ''],
  ['false', false],
  ['a symbol', Symbol('s')],
  ['a bigint', 5n],
  ['an object', {}],
  ['an object without a prototype', Object.create(null)],
  ['a function', () => undefined],
  ['__proto__', '__proto__'],
  ['a long string', 'x'.repeat(1_000)],
];

describe('an item is queued at most once and never has two holders', () => {
  test.each(KEYS)('%s may be an item', async (_, key) => {
    const queue = new WorkQueue<unknown>();
    queue.add(key);
    queue.add(key);
    expect(queue.length).toBe(1);
    expect(await takeNow(queue)).toBe(key);
    queue.add(key);
    expect(queue.length).toBe(0);
    queue.done(key);
    expect(await processAll(queue)).toEqual([key]);
    expect(thrownBy(() => queue.done(key))).toHaveProperty('code', 'ERR_NOT_PROCESSING');
  });

  test.each(KEYS)('%s may be a key', async (_, key) => {
    const queue = new WorkQueue<number>({ keyOf: () => key });
    queue.add(1);
    queue.add(2);
    expect(await takeNow(queue)).toBe(2);
    queue.add(3);
    queue.done(99);
    expect(await processAll(queue)).toEqual([3]);
  });

  test('keys of all kinds are distinguished as in a Map', async () => {
    const queue = new WorkQueue<unknown>();
    const items = [...KEYS.map(([, key]) => key), '5', 5, {}, [], -1];
    for (const item of [...items, ...items]) queue.add(item);
    expect(await processAll(queue)).toEqual(items);
  });

  test('0 and -0 are the same item, as in a Map', async () => {
    const queue = new WorkQueue<number>();
    queue.add(0);
    queue.add(-0);
    expect(queue.length).toBe(1);
    expect(await processAll(queue)).toEqual([-0]);
  });

  test('each object is an item of its own, without keyOf (solo-kit#353)', async () => {
    const [a, b] = [{ name: 'x' }, { name: 'x' }];
    const byIdentity = new WorkQueue<{ name: string }>();
    const byName = new WorkQueue<{ name: string }>({ keyOf: ({ name }) => name });
    for (const queue of [byIdentity, byName]) for (const item of [a, b]) queue.add(item);
    expect([byIdentity.length, byName.length]).toEqual([2, 1]);
    await takeNow(byName);
    byName.done({ name: 'x' });
    expect(thrownBy(() => byIdentity.done({ name: 'x' }))).toHaveProperty('code', 'ERR_NOT_PROCESSING');
  });

  test('a thenable as an item is given out as it is, and not awaited', async () => {
    const asked: string[] = [];
    const item = { then: (): unknown => asked.push('then') };
    const queue = new WorkQueue<typeof item>();
    const waiting = watch(queue.get());
    queue.add(item);
    await settled();
    expect(waiting.value).toEqual({ item, shutdown: false });
    queue.done(item);
    queue.add(item);
    expect((await leaseNow(queue.leases())).item).toBe(item);
    queue.done(item);
    const seen: unknown[] = [];
    queue.add(item);
    queue.shutDown();
    await queue.run((received) => seen.push(received));
    expect(seen).toEqual([item]);
    expect(asked).toEqual([]);
  });

  test('an error of keyOf is thrown to the caller, and nothing has changed', async () => {
    const mine = new Error('mine');
    const queue = new WorkQueue<string>({
      keyOf: (item) => {
        if (item === 'bad') throw mine;
        return item;
      },
    });
    queue.add('a');
    expect(thrownBy(() => queue.add('bad'))).toBe(mine);
    expect(thrownBy(() => queue.done('bad'))).toBe(mine);
    expect(queue.length).toBe(1);
    expect(await processAll(queue)).toEqual(['a']);
  });
});

test('an item that is added again while it is held is queued behind those added before', async () => {
  const queue = await queueHolding('a');
  queue.add('a');
  queue.add('b');
  queue.add('c');
  queue.done('a');
  queue.add('d');
  expect(await processAll(queue)).toEqual(['b', 'c', 'a', 'd']);
});

test('done of an item that is not being processed throws ERR_NOT_PROCESSING', async () => {
  const queue = new WorkQueue<string>({ name: 'pods' });
  const misuse = (item: string): void => {
    expect(thrownBy(() => queue.done(item))).toMatchObject({
      name: 'EscapementError',
      code: 'ERR_NOT_PROCESSING',
      op: 'WorkQueue.done',
      message: expect.stringContaining("'pods'") as unknown,
    });
    checkQueue(queue);
  };
  misuse('never seen');
  queue.add('a');
  misuse('a'); // queued, and nobody has it
  await takeNow(queue);
  queue.done('a');
  misuse('a');
  queue.add('a');
  await takeNow(queue);
  queue.add('a');
  queue.done('a');
  misuse('a'); // queued again
  expect(queue.length).toBe(1);
});

test('waiting callers of every kind are served in one order', async () => {
  const queue = new WorkQueue<string>();
  const log: string[] = [];
  const leases = queue.leases();
  const { signal } = new AbortController();
  void queue.get().then(({ item }) => log.push(`first ${item}`));
  void leases.next().then(({ value }) => log.push(`second ${value?.item}`));
  void queue.get({ signal }).then(({ item }) => log.push(`third ${item}`));
  void queue.run((item) => log.push(`worker ${item}`), { onError: () => undefined });
  await settled();
  void queue.get().then(({ item }) => log.push(`last ${item}`));
  for (const item of 'abcde') queue.add(item);
  await settled();
  // A worker that is given an item begins a promise job later than a get.
  expect(log.sort()).toEqual(['first a', 'last e', 'second b', 'third c', 'worker d']);
  checkQueue(queue);
});

interface Pod {
  readonly name: string;
  readonly version: number;
}

const podQueue = (): WorkQueue<Pod> => new WorkQueue({ keyOf: ({ name }) => name });

test('a newer object of a queued item takes its position', async () => {
  const queue = podQueue();
  queue.add({ name: 'a', version: 1 });
  queue.add({ name: 'b', version: 1 });
  queue.add({ name: 'a', version: 2 });
  expect(await takeAll(queue)).toEqual([
    { name: 'a', version: 2 },
    { name: 'b', version: 1 },
  ]);
});

test('a worker gets the object that was taken, and the newer one afterwards', async () => {
  const queue = podQueue();
  const seen: number[] = [];
  const run = queue.run(({ version }) => seen.push(version));
  await settled();
  queue.add({ name: 'a', version: 1 });
  queue.add({ name: 'a', version: 2 });
  await settled();
  expect(seen.at(-1)).toBe(2);
  expect(queue.length).toBe(0);
  queue.shutDown();
  await run;
});

test('limiters are called with the key', () => {
  const asked: unknown[] = [];
  const limiter: RateLimiter<Pod> = {
    when: (key) => asked.push(['when', key]) && 10,
    forget: (key) => asked.push(['forget', key]),
    numRequeues: (key) => asked.push(['numRequeues', key]),
  };
  const queue = new RateLimitingQueue(limiter, { keyOf: ({ name }) => name });
  const pod = { name: 'a', version: 1 };
  queue.addRateLimited(pod);
  queue.numRequeues(pod);
  queue.forget(pod);
  expect(asked).toEqual([
    ['when', 'a'],
    ['numRequeues', 'a'],
    ['forget', 'a'],
  ]);
  queue.shutDown();
});
