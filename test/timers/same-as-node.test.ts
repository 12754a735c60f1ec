import * as host from 'node:timers';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import * as ours from 'escapement/timers';
import { runProgram } from '../run-program.ts';

/** What both are tested through. */
type Timers = Pick<typeof host, 'setTimeout' | 'setInterval' | 'clearTimeout' | 'clearInterval'>;

const BOTH: [string, Timers][] = [
  ['node:timers', host],
  ['escapement/timers', ours],
];

function after(ms: number): Promise<void> {
  return new Promise((resolve) => {
    // What was due in the same turn has run by then.
    host.setTimeout(() => setImmediate(resolve), ms);
  });
}

/** However busy the machine is. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await after(2);
}

/** An internal field that libraries read, and the host's own functions. */
function isDestroyed(timeout: NodeJS.Timeout): unknown {
  return Reflect.get(timeout, '_destroyed');
}

describe.each(BOTH)('%s: setTimeout', (_, timers) => {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = timers;

  test('setTimeout calls back once, with the arguments, and with the timeout as `this`', async () => {
    const calls: unknown[] = [];
    const done = new Promise<void>((resolve) => {
      const timeout = setTimeout(
        function (this: unknown, ...args: unknown[]) {
          calls.push([this === timeout, ...args]);
          resolve();
        },
        2,
        'a',
        2,
        null,
      );
    });
    expect(calls).toEqual([]);
    await done;
    await after(5);
    expect(calls).toEqual([[true, 'a', 2, null]]);
  });

  test.each([0, -5, NaN, undefined, null, 'soon', {}, 0.5, true, [], ['1'], '', new Date(0)])(
    'a delay of %o is 1',
    async (delay) => {
      const order: string[] = [];
      await new Promise<void>((resolve) => {
        setTimeout(() => order.push('bad'), delay as number);
        setTimeout(() => {
          order.push('one');
          resolve();
        }, 1);
      });
      expect(order).toEqual(['bad', 'one']);
    },
  );

  test('a fraction of a millisecond does not change the order of timeouts', async () => {
    const order: number[] = [];
    const delays = [1, 1.8, 1.1, 1, 1.9, 1.2];
    for (const delay of delays) setTimeout(() => order.push(delay), delay);
    await until(() => order.length === delays.length);
    expect(order).toEqual(delays);
  });

  test('a delay that is a string of digits is that number', async () => {
    const startMs = performance.now();
    await new Promise<void>((resolve) => {
      setTimeout(resolve, '20' as unknown as number);
    });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(19); // the host counts whole milliseconds
  });

  test.each([10n, Symbol('10'), { valueOf: () => 10n }])('a delay of %o throws a TypeError', (delay) =>
    expect(() => setTimeout(() => undefined, delay as unknown as number)).toThrow(TypeError),
  );

  test.each([undefined, null, 'run', 5, {}])(
    'a callback that is %o throws ERR_INVALID_ARG_TYPE',
    (callback) =>
      expect(() => setTimeout(callback as () => void, 1)).toThrow(
        expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }),
      ),
  );

  test('timeouts of equal delays run in the order in which they were set', async () => {
    const order: number[] = [];
    await new Promise<void>((resolve) => {
      for (let i = 0; i < 500; i++) setTimeout(() => order.push(i), 3);
      setTimeout(resolve, 8);
    });
    expect(order).toEqual(Array.from({ length: 500 }, (__, i) => i));
  });

  test('a timeout has ref, unref, hasRef, refresh and close, which can be chained', () => {
    const timeout = setTimeout(() => undefined, 1_000);
    expect(timeout.hasRef()).toBe(true);
    expect(timeout.unref()).toBe(timeout);
    expect(timeout.hasRef()).toBe(false);
    expect(timeout.ref()).toBe(timeout);
    expect(timeout.hasRef()).toBe(true);
    expect(timeout.refresh()).toBe(timeout);
    expect(timeout.close()).toBe(timeout);
  });

  test('a timeout can be cleared by itself, its number, its number as a string, close, and using', async () => {
    let calls = 0;
    const set = (): NodeJS.Timeout => setTimeout(() => calls++, 2);
    clearTimeout(set());
    clearTimeout(Number(set()));
    clearTimeout(String(Number(set())));
    clearTimeout(`${+set()}`);
    set().close();
    set()[Symbol.dispose]();
    for (const nothing of [undefined, null, NaN, 'x', -1, 1e9]) clearTimeout(nothing as undefined);
    await after(8);
    expect(calls).toBe(0);
  });

  test('a number in another form, or of another type, clears nothing', async () => {
    let calls = 0;
    const forms = [(n: number) => ` ${n}`, (n: number) => `0${n}`, (n: number) => `${n}.0`, BigInt, Object];
    for (const form of forms) {
      clearTimeout(form(+setTimeout(() => calls++, 2)) as string);
    }
    await until(() => calls === 5);
  });

  test("the host's clear functions clear a timeout, but not by its number if that is ours", async () => {
    let calls = 0;
    const timeouts = [1, 5].flatMap((ms) => [
      setTimeout(() => calls++, ms),
      setInterval(() => calls++, ms).unref(),
    ]);
    for (const [i, timeout] of timeouts.entries()) {
      if (i % 2 === 0) host.clearTimeout(timeout);
      else host.clearInterval(timeout);
      expect(isDestroyed(timeout)).toBe(true);
      expect(Reflect.get(timeout, '_onTimeout')).toBeFalsy(); // null, since Node 26 undefined
      expect(timeout.refresh()).toBe(timeout);
    }
    await after(15);
    expect(calls).toBe(0);
    const waiting = setTimeout(() => calls++, 1_000);
    host.clearTimeout(+waiting);
    clearTimeout(waiting);
  });

  test('the number of a timeout clears it inside its own callback', async () => {
    let calls = 0;
    const timeout = setTimeout(() => {
      calls++;
      clearTimeout(number);
      timeout.refresh();
    }, 1);
    const number = +timeout;
    await until(() => calls > 0);
    await after(10);
    expect(calls).toBe(1);
  });

  test('_destroyed of a timeout is false while it is pending', async () => {
    const seen: unknown[] = [];
    const timeout = setTimeout(() => seen.push(isDestroyed(timeout)), 1);
    const refreshed = setTimeout(() => undefined, 1);
    const interval = setInterval(() => seen.push(isDestroyed(interval)), 1);
    const cleared = setTimeout(() => undefined, 1);
    clearTimeout(cleared);
    expect([timeout, interval, cleared].map(isDestroyed)).toEqual([false, false, true]);
    await until(() => isDestroyed(timeout) === true && seen.length > 1);
    refreshed.refresh();
    expect([timeout, refreshed, interval].map(isDestroyed)).toEqual([true, false, false]);
    clearTimeout(interval);
    expect(isDestroyed(interval)).toBe(true);
    expect(seen.every((wasDestroyed) => wasDestroyed === false)).toBe(true);
  });

  test('the callback of a timeout can be replaced until it is cleared', async () => {
    const calls: string[] = [];
    const timeout = setTimeout(() => calls.push('old'), 1);
    timeout._onTimeout = () => calls.push('new');
    const cleared = setTimeout(() => calls.push('cleared'), 1);
    clearTimeout(cleared);
    cleared._onTimeout = () => calls.push('after it was cleared');
    cleared.refresh();
    await until(() => calls.length > 0);
    expect(calls).toEqual(['new']);
  });

  test.each(['ref', 'unref', 'refresh', 'close'] as const)(
    '%s returns any `this`, and does nothing with an object that is not a timeout',
    (method) => {
      const timeout = setTimeout(() => undefined, 1);
      const thing = { _onTimeout: undefined } as unknown as NodeJS.Timeout;
      expect(Reflect.apply(Reflect.get(timeout, method) as () => unknown, thing, [])).toBe(thing);
      clearTimeout(timeout);
      // The host counts it as one that keeps the process alive.
      if (method === 'ref') timeout.unref.call(thing);
    },
  );

  test('the clear functions ignore objects that are not timeouts', () => {
    const things = [{}, [], Symbol('x'), () => undefined, true, 5n, new Date()];
    for (const thing of things) clearTimeout(thing as unknown as undefined);
    for (const thing of things) clearInterval(thing as unknown as undefined);
  });

  test('the number of a timeout is a positive integer that does not change', () => {
    const timeout = setTimeout(() => undefined, 1_000);
    const number = +timeout;
    expect(Number.isSafeInteger(number) && number > 0).toBe(true);
    expect(timeout[Symbol.toPrimitive]()).toBe(number);
    clearTimeout(number);
  });

  test('refresh starts the delay anew', async () => {
    const startMs = performance.now();
    await new Promise<void>((resolve) => {
      setTimeout(() => timeout.refresh(), 100);
      const timeout = setTimeout(resolve, 200);
    });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(298); // the host counts whole milliseconds
  });

  test('refresh from inside the callback, and after it, sets the timeout again', async () => {
    let calls = 0;
    const timeout = setTimeout(() => {
      if (++calls < 3) timeout.refresh();
    }, 2);
    await until(() => calls === 3);
    await after(15);
    expect(calls).toBe(3);
    timeout.refresh();
    await until(() => calls === 4);
  });

  test('refresh does nothing after the timeout was cleared', async () => {
    let calls = 0;
    const timeout = setTimeout(() => calls++, 2);
    clearTimeout(timeout);
    timeout.refresh();
    await after(10);
    expect(calls).toBe(0);
  });

  test('promisify of setTimeout resolves with its value', async () => {
    const sleep = promisify(setTimeout) as unknown as (ms: number, value: string) => Promise<string>;
    expect(await sleep(2, 'value')).toBe('value');
  });
});

describe.each(BOTH)('%s: setInterval', (_, { setInterval, clearInterval, clearTimeout }) => {
  test('an interval calls back again and again, until it is cleared from inside itself', async () => {
    const args: unknown[] = [];
    await new Promise<void>((resolve) => {
      const interval = setInterval(
        (arg: string) => {
          args.push(arg);
          if (args.length < 3) return;
          clearInterval(interval);
          resolve();
        },
        2,
        'tick',
      );
    });
    await after(10);
    expect(args).toEqual(['tick', 'tick', 'tick']);
  });

  test('clearTimeout clears an interval, also by number', async () => {
    let calls = 0;
    clearTimeout(setInterval(() => calls++, 2));
    clearTimeout(+setInterval(() => calls++, 2));
    await after(10);
    expect(calls).toBe(0);
  });

  test('the number of an interval is valid after a call', async () => {
    let calls = 0;
    const number = +setInterval(() => calls++, 2);
    await until(() => calls > 0);
    clearInterval(number);
    calls = 0;
    await after(10);
    expect(calls).toBe(0);
  });
});

describe.each(BOTH)('%s in a program', (module) => {
  test('a callback that throws is an uncaught exception, and the others run', () => {
    const { lines, status } = runProgram(`
      import { setTimeout, setInterval, clearInterval } from '${module}';
      process.on('uncaughtException', (error) => console.log('uncaught', error.message));
      setTimeout(() => { throw new Error('boom'); }, 1);
      setTimeout(() => console.log('other'), 20);
      let ticks = 0;
      const interval = setInterval(() => {
        if (++ticks === 3) clearInterval(interval);
        throw new Error('tick ' + ticks);
      }, 40);
    `);
    const ticks = [1, 2, 3].map((tick) => `uncaught tick ${tick}`);
    expect([lines, status]).toEqual([['uncaught boom', 'other', ...ticks], 0]);
  });

  test('the functions work when the global ones are deleted', () => {
    const { stdout, stderr, status } = runProgram(`
      import { setTimeout, setInterval, clearInterval, promises } from '${module}';
      const { process } = globalThis;
      for (const name of ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'queueMicrotask',
        'performance', 'Date']) delete globalThis[name];
      const say = (line) => process.stdout.write(line + '\\n');
      clearInterval(setTimeout(say, 1, 'never'));
      clearInterval(1e9);
      setTimeout(say, 1, 'timeout');
      const interval = setInterval(() => { clearInterval(interval); say('interval'); }, 20);
      await promises.setTimeout(40);
      say(await promises.setTimeout(1, 'promise'));
    `);
    expect([stdout.trim().split('\n'), stderr, status]).toEqual([['timeout', 'interval', 'promise'], '', 0]);
  });

  test('unref lets the process end, and ref keeps it alive', () => {
    const { lines, status } = runProgram(`
      import { setTimeout, setInterval } from '${module}';
      setTimeout(() => console.log('never'), 30_000).unref();
      setInterval(() => console.log('never'), 30_000).unref();
      const fired = setTimeout(() => console.log('fired'), 1);
      setTimeout(() => console.log('twice'), 30).unref().ref();
      setTimeout(() => fired.ref(), 10);
    `);
    expect([lines, status]).toEqual([['fired', 'twice'], 0]);
  });

  test('a callback runs in the async context of the call that set it', () => {
    const { stdout } = runProgram(`
      import { AsyncLocalStorage } from 'node:async_hooks';
      import { setTimeout, setInterval, clearInterval } from '${module}';
      const store = new AsyncLocalStorage();
      for (const name of ['a', 'b']) {
        store.run(name, () => {
          setTimeout(() => console.log('timeout', store.getStore()), 5);
          let ticks = 0;
          const interval = setInterval(() => {
            console.log('interval', store.getStore());
            if (++ticks === 2) clearInterval(interval);
          }, name === 'a' ? 20 : 23);
        });
      }
      store.run('outer', () => setTimeout(() => setTimeout(() => console.log('nested', store.getStore()), 90), 1));
      setTimeout(() => console.log('none', store.getStore()), 120);
    `);
    expect(stdout.trim().split('\n').sort()).toEqual([
      ...['interval a', 'interval a', 'interval b', 'interval b', 'nested outer'],
      ...['none undefined', 'timeout a', 'timeout b'],
    ]);
  });

  test('a timeout that is refreshed after it has run runs in the async context of the call of refresh', () => {
    const { lines } = runProgram(`
      import { AsyncLocalStorage } from 'node:async_hooks';
      import { setTimeout } from '${module}';
      const store = new AsyncLocalStorage();
      let runs = 0;
      const timeout = store.run('set', () => setTimeout(() => {
        console.log(store.getStore());
        if (++runs === 1) store.run('in the callback', () => timeout.refresh());
        if (runs === 2) setTimeout(() => store.run('after it', () => timeout.refresh()), 1);
      }, 20));
      store.run('while it is pending', () => timeout.refresh());
    `);
    expect(lines).toEqual(['set', 'set', 'after it']);
  });
});
