import * as host from 'node:timers/promises';
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import * as ours from 'escapement/timers/promises';

type Promises = Pick<typeof host, 'setTimeout' | 'setInterval' | 'scheduler' | 'setImmediate'>;

const BOTH: [string, Promises][] = [
  ['node:timers/promises', host],
  ['escapement/timers/promises', ours],
];

function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );
}

const ABORTED = { name: 'AbortError', code: 'ABORT_ERR', message: 'The operation was aborted' };

describe.each(BOTH)('%s', (_, { setTimeout, setInterval, scheduler, setImmediate }) => {
  test('setTimeout resolves with its value', async () => {
    expect(await setTimeout(2, 'value')).toBe('value');
    const nothing: unknown[] = await Promise.all([setTimeout(2), setTimeout()]);
    expect(nothing).toEqual([undefined, undefined]);
  });

  test('setTimeout rejects with an AbortError when its signal fires, and leaves no listener', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = outcomeOf(setTimeout(60_000, 'value', { signal }));
    controller.abort('enough');
    const error = await waiting;
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ ...ABORTED, cause: 'enough' });
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('setTimeout leaves no listener when it resolves', async () => {
    const { signal } = new AbortController();
    await setTimeout(1, undefined, { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('a signal that has fired already rejects at once', async () => {
    const signal = AbortSignal.abort('before');
    expect(await outcomeOf(setTimeout(60_000, undefined, { signal }))).toMatchObject({
      ...ABORTED,
      cause: 'before',
    });
    expect(await outcomeOf(scheduler.wait(60_000, { signal }))).toMatchObject(ABORTED);
    const iterator = setInterval(60_000, undefined, { signal })[Symbol.asyncIterator]();
    expect(await outcomeOf(iterator.next())).toMatchObject(ABORTED);
  });

  test.each([
    ['options', null],
    ['options', 5],
    ['signal', { signal: {} }],
    ['signal', { signal: 'now' }],
    ['ref', { ref: 'yes' }],
  ])('wrong %s (%o) reject with ERR_INVALID_ARG_TYPE', async (__, options) => {
    const expected = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
    expect(await outcomeOf(setTimeout(1, undefined, options as object))).toMatchObject(expected);
    const iterator = setInterval(1, undefined, options as object)[Symbol.asyncIterator]();
    expect(await outcomeOf(iterator.next())).toMatchObject(expected);
  });

  test('setInterval yields its value until the loop breaks', async () => {
    const values: string[] = [];
    for await (const value of setInterval(2, 'tick')) {
      values.push(value);
      if (values.length === 3) break;
    }
    expect(values).toEqual(['tick', 'tick', 'tick']);
  });

  test('setInterval rejects when its signal fires while it waits, and leaves no listener', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const iterator = setInterval(60_000, undefined, { signal })[Symbol.asyncIterator]();
    const next = outcomeOf(iterator.next());
    controller.abort('enough');
    expect(await next).toMatchObject({ ...ABORTED, cause: 'enough' });
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(await iterator.next()).toEqual({ value: undefined, done: true });
  });

  test('setInterval rejects when its signal fires while the loop is busy', async () => {
    const controller = new AbortController();
    let turns = 0;
    const loop = async (): Promise<void> => {
      for await (const value of setInterval(2, 0, { signal: controller.signal })) {
        turns += 1 + value;
        controller.abort('in the loop');
      }
    };
    expect(await outcomeOf(loop())).toMatchObject({ ...ABORTED, cause: 'in the loop' });
    expect(turns).toBe(1);
  });

  test('scheduler.wait and scheduler.yield', async () => {
    const order: string[] = [];
    await Promise.all([
      scheduler.wait(5).then(() => order.push('wait')),
      scheduler.yield().then(() => order.push('yield')),
      setImmediate('now').then((value) => order.push(value)),
    ]);
    expect(order.at(-1)).toBe('wait');
    expect(order.sort()).toEqual(['now', 'wait', 'yield']);
  });
});
