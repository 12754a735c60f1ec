import { setImmediate as turn } from 'node:timers/promises';
import { EscapementError } from 'escapement';
import { beforeEach, expect, it } from 'vitest';
import { Coalescer } from '../../../../src/tasks/broker/redis/redis-access.ts';

/** A batch, and how to settle it. */
interface Call {
  readonly key: string;
  readonly items: readonly number[];
  readonly answer: () => void;
  readonly fail: (error: Error) => void;
}

const UNAVAILABLE = new EscapementError('ERR_BROKER_UNAVAILABLE', 'no broker', { op: 'test' });

let calls: Call[];
let coalescer: Coalescer<number, string>;

beforeEach(() => {
  calls = [];
  coalescer = new Coalescer({
    bytesOf: (item) => item,
    run: (key, items) =>
      new Promise((resolve, reject) => {
        const answer = (): void => {
          resolve(items.map(String));
        };
        calls.push({ key, items, answer, fail: reject });
      }),
  });
});

function askMany(count: number, key = 'k', item = 0): Promise<PromiseSettledResult<string>[]> {
  return Promise.allSettled(Array.from({ length: count }, () => coalescer.submit(key, item)));
}

const sizes = (): number[] => calls.map(({ items }) => items.length);

it('items that are submitted in one turn share a batch', async () => {
  const answers = Promise.all([1, 2, 3].map((item) => coalescer.submit('k', item)));
  await turn();
  expect(calls).toMatchObject([{ key: 'k', items: [1, 2, 3] }]);
  calls[0]?.answer();
  expect(await answers).toEqual(['1', '2', '3']);
});

it('no more items are in progress than Redis can answer in time', async () => {
  const answers = askMany(100_000);
  await turn();
  expect(sizes()).toEqual(Array<number>(10).fill(500));
  for (let at = 0; at < 200; at++) {
    calls[at]?.answer();
    await turn();
  }
  expect(sizes()).toEqual(Array<number>(200).fill(500));
  expect((await answers).every(({ status }) => status === 'fulfilled')).toBe(true);
});

it('the bytes in progress are limited, and an item above the limit has a batch of its own', async () => {
  const answers = askMany(3, 'k', 100_000_000);
  await turn();
  expect(sizes()).toEqual([1]);
  calls[0]?.answer();
  await turn();
  expect(sizes()).toEqual([1, 1]);
  calls[1]?.answer();
  await turn();
  calls[2]?.answer();
  expect(await answers).toHaveLength(3);
});

it('items that are submitted while batches wait share the next batch', async () => {
  const first = askMany(5_000 + 1);
  await turn();
  const others = [];
  for (let each = 0; each < 3; each++) {
    others.push(...[coalescer.submit('k', each)]);
    await turn();
  }
  expect(calls).toHaveLength(10);
  calls[0]?.answer();
  await turn();
  expect(sizes().slice(10)).toEqual([1, 3]);
  for (const { answer } of calls) answer();
  expect(await Promise.all(others)).toEqual(['0', '1', '2']);
  await first;
});

it('pending items of a key fail when the broker is unavailable, and those of other keys run', async () => {
  const here = askMany(6_000, 'gone');
  const there = askMany(1_000, 'there');
  await turn();
  const late = askMany(1, 'gone');
  for (const { fail } of [...calls]) fail(UNAVAILABLE);
  const outcomes = [...(await here), ...(await late)];
  expect(outcomes.every((one) => one.status === 'rejected' && one.reason === UNAVAILABLE)).toBe(true);
  expect(calls.slice(10)).toMatchObject([{ key: 'there' }, { key: 'there' }]);
  for (const { answer } of calls) answer();
  expect((await there).every(({ status }) => status === 'fulfilled')).toBe(true);
  const again = coalescer.submit('gone', 7);
  await turn();
  calls.at(-1)?.answer();
  expect(await again).toBe('7');
});

it('a batch that fails does not stop the others', async () => {
  const answers = askMany(5_500);
  await turn();
  calls[0]?.fail(new Error('refused'));
  await turn();
  for (const { answer } of calls) answer();
  const failed = (await answers).filter(({ status }) => status === 'rejected');
  expect(failed).toHaveLength(500);
});
