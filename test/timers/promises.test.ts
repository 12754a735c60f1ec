import * as host from 'node:timers/promises';
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import * as ours from 'escapement/timers/promises';
import { runProgram } from '../run-program.ts';

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

const noop = (): void => undefined;

const ABORTED = { name: 'AbortError', code: 'ABORT_ERR', message: 'The operation was aborted' };

test('a signal without addEventListener leaves nothing pending', () => {
  const { stdout, status } = runProgram(`
    import { setInterval, setTimeout } from 'escapement/timers/promises';
    const options = { signal: { aborted: false } };
    await setTimeout(60_000, 0, options).catch((error) => console.log(error.name));
    await setInterval(60_000, 0, options).next().catch((error) => console.log(error.name));
  `);
  expect([stdout, status]).toEqual(['TypeError\nTypeError\n', 0]);
});

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

  test('setTimeout with an aborted signal rejects at once', async () => {
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
    ['options', []],
    ['options', () => undefined],
    ['options', ''],
    ['signal', { signal: {} }],
    ['signal', { signal: 'now' }],
    ['signal', { signal: null }],
    ['signal', { signal: Object.assign(() => undefined, { aborted: false }) }],
    ['signal', { signal: { addEventListener: noop, removeEventListener: noop, throwIfAborted: noop } }],
    ['ref', { ref: 'yes' }],
    ['ref', { ref: null }],
  ])('invalid %s (%o) reject with ERR_INVALID_ARG_TYPE', async (__, options) => {
    const expected = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
    const error = await outcomeOf(setTimeout(1, undefined, options as object));
    expect(error).toMatchObject(expected);
    expect(String(error)).toContain('TypeError [ERR_INVALID_ARG_TYPE]: ');
    const iterator = setInterval(1, undefined, options as object)[Symbol.asyncIterator]();
    expect(await outcomeOf(iterator.next())).toMatchObject(expected);
  });

  test.each([null, '5', '', true, 5n, {}, [], Symbol('5')])(
    'a delay of %o rejects with ERR_INVALID_ARG_TYPE',
    async (delay) => {
      const expected = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
      expect(await outcomeOf(setTimeout(delay as number))).toMatchObject(expected);
      expect(await outcomeOf(scheduler.wait(delay as number))).toMatchObject(expected);
      const iterator = setInterval(delay as number)[Symbol.asyncIterator]();
      expect(await outcomeOf(iterator.next())).toMatchObject(expected);
    },
  );

  test.each([NaN, -1, 0, 0.5])('a delay of %o is a millisecond', async (delay) => {
    expect(await setTimeout(delay, 'value')).toBe('value');
  });

  test('any object with the property aborted is a signal', async () => {
    const cause = new Error('enough');
    const fired = { aborted: true, reason: cause } as AbortSignal;
    expect(await outcomeOf(setTimeout(60_000, 0, { signal: fired }))).toMatchObject({ ...ABORTED, cause });
    const target = Object.assign(new EventTarget(), { aborted: false, reason: undefined });
    const signal = target as unknown as AbortSignal;
    const waiting = outcomeOf(setTimeout(60_000, 0, { signal }));
    const iterator = setInterval(60_000, 0, { signal })[Symbol.asyncIterator]();
    const ticking = outcomeOf(iterator.next());
    Object.assign(target, { aborted: true, reason: cause });
    target.dispatchEvent(new Event('abort'));
    expect(await waiting).toMatchObject({ ...ABORTED, cause });
    expect(await ticking).toMatchObject({ ...ABORTED, cause });
    expect(getEventListeners(target, 'abort')).toHaveLength(0);
  });

  test('a signal without addEventListener rejects', async () => {
    const signal = { aborted: false } as AbortSignal;
    const wait = async (): Promise<unknown> => await setTimeout(1, 0, { signal }); // Node 26 throws
    expect(await outcomeOf(wait())).toBeInstanceOf(TypeError);
    const iterator = setInterval(1, 0, { signal })[Symbol.asyncIterator]();
    expect(await outcomeOf(iterator.next())).toBeInstanceOf(TypeError);
    const deaf = { aborted: false, addEventListener: () => undefined } as unknown as AbortSignal;
    expect(await outcomeOf(setTimeout(1, 0, { signal: deaf }))).toBeInstanceOf(TypeError);
    await setTimeout(5);
  });

  test('each promise is settled once', async () => {
    const settledTwice: unknown[] = [];
    const note = (...args: unknown[]): number => settledTwice.push(args);
    process.on('multipleResolves', note);
    const controllers = [new AbortController(), new AbortController()] as const;
    const waiting = outcomeOf(setTimeout(60_000, 0, controllers[0]));
    const aborted = setInterval(1, 0, controllers[1])[Symbol.asyncIterator]();
    const returned = setInterval(1)[Symbol.asyncIterator]();
    for (let i = 0; i < 3; i++) await Promise.all([aborted.next(), returned.next(), setTimeout(2)]);
    const ticking = outcomeOf(aborted.next().then(() => aborted.next()));
    for (const controller of controllers) controller.abort();
    await Promise.all([waiting, ticking, returned.return?.()]);
    await setTimeout(5);
    process.off('multipleResolves', note);
    expect(settledTwice).toEqual([]);
  });

  test('setInterval yields its value until the loop breaks', async () => {
    const values: string[] = [];
    for await (const value of setInterval(2, 'tick')) {
      values.push(value);
      if (values.length === 3) break;
    }
    expect(values).toEqual(['tick', 'tick', 'tick']);
  });

  test('setInterval rejects when its signal is aborted while it waits, and leaves no listener', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const iterator = setInterval(60_000, undefined, { signal })[Symbol.asyncIterator]();
    const next = outcomeOf(iterator.next());
    controller.abort('enough');
    expect(await next).toMatchObject({ ...ABORTED, cause: 'enough' });
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(await iterator.next()).toEqual({ value: undefined, done: true });
  });

  test('setInterval rejects when its signal is aborted while the loop is busy', async () => {
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

  test('the constructor of the scheduler throws', () => {
    const Scheduler = scheduler.constructor as new () => unknown;
    expect(() => new Scheduler()).toThrow(
      expect.objectContaining({ name: 'TypeError', code: 'ERR_ILLEGAL_CONSTRUCTOR' }),
    );
  });

  test('setInterval yields a tick that came before its signal was aborted', async () => {
    const controller = new AbortController();
    const iterator = setInterval(1, 'tick', { signal: controller.signal })[Symbol.asyncIterator]();
    await iterator.next();
    await setTimeout(20);
    controller.abort('enough');
    expect(await iterator.next()).toEqual({ value: 'tick', done: false });
    let ticks = 1;
    const rest = async (): Promise<void> => {
      for (;;) {
        await iterator.next();
        if (++ticks > 100) return;
      }
    };
    expect(await outcomeOf(rest())).toMatchObject({ ...ABORTED, cause: 'enough' });
  });

  test('scheduler.wait and scheduler.yield resolve', async () => {
    const startMs = performance.now();
    await scheduler.wait(20);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(19); // the host counts whole milliseconds
    await scheduler.yield();
    expect(await setImmediate('now')).toBe('now');
  });
});
