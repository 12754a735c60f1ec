import * as host from 'node:timers';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import * as ours from 'escapement/timers';
import { runProgram } from '../run-program.ts';

/** What both are tested through. */
type Timers = Pick<typeof host, 'setTimeout' | 'setInterval' | 'clearTimeout' | 'clearInterval'>;

const BOTH: [string, Timers][] = [
  ['node:timers', host],
  ['escapement/timers', ours as unknown as Timers],
];

function after(ms: number): Promise<void> {
  return new Promise((resolve) => {
    host.setTimeout(resolve, ms);
  });
}

describe.each(BOTH)('%s: setTimeout', (_, { setTimeout, clearTimeout }) => {
  test('calls back once, with the arguments, and with the timeout as `this`', async () => {
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

  test.each([0, -5, NaN, undefined, null, 'soon', {}, 0.5])('a delay of %o is 1', async (delay) => {
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      setTimeout(() => order.push('bad'), delay as number);
      setTimeout(() => {
        order.push('one');
        resolve();
      }, 1);
    });
    expect(order).toEqual(['bad', 'one']);
  });

  test('a delay that is a string of digits is that number', async () => {
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      setTimeout(
        () => {
          order.push('20');
          resolve();
        },
        '20' as unknown as number,
      );
      setTimeout(() => order.push('1'), 1);
    });
    expect(order).toEqual(['1', '20']);
  });

  test.each([undefined, null, 'run', 5, {}])(
    'a callback that is %o throws ERR_INVALID_ARG_TYPE',
    (callback) => {
      expect(() => setTimeout(callback as () => void, 1)).toThrow(
        expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }),
      );
    },
  );

  test('equal delays run in the order in which they were set', async () => {
    const order: number[] = [];
    await new Promise<void>((resolve) => {
      for (let i = 0; i < 500; i++) setTimeout(() => order.push(i), 3);
      setTimeout(resolve, 8);
    });
    expect(order).toEqual(Array.from({ length: 500 }, (__, i) => i));
  });

  test('has ref, unref, hasRef, refresh and close, which can be chained', () => {
    const timeout = setTimeout(() => undefined, 1_000);
    expect(timeout.hasRef()).toBe(true);
    expect(timeout.unref()).toBe(timeout);
    expect(timeout.hasRef()).toBe(false);
    expect(timeout.ref()).toBe(timeout);
    expect(timeout.hasRef()).toBe(true);
    expect(timeout.refresh()).toBe(timeout);
    expect(timeout.close()).toBe(timeout);
  });

  test('can be cleared by itself, its number, its number as a string, close, and using', async () => {
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

  test('its number is a positive integer that stays', () => {
    const timeout = setTimeout(() => undefined, 1_000);
    const number = +timeout;
    expect(Number.isSafeInteger(number) && number > 0).toBe(true);
    expect(timeout[Symbol.toPrimitive]()).toBe(number);
    clearTimeout(number);
  });

  test('refresh starts the delay anew', async () => {
    let calls = 0;
    const timeout = setTimeout(() => calls++, 40);
    for (let i = 0; i < 4; i++) {
      await after(20);
      timeout.refresh();
    }
    expect(calls).toBe(0);
    await after(80);
    expect(calls).toBe(1);
  });

  test('refresh from inside the callback, and after it, sets it again', async () => {
    let calls = 0;
    const timeout = setTimeout(() => {
      if (++calls < 3) timeout.refresh();
    }, 2);
    await after(30);
    expect(calls).toBe(3);
    timeout.refresh();
    await after(15);
    expect(calls).toBe(4);
  });

  test('refresh does nothing after it was cleared', async () => {
    let calls = 0;
    const timeout = setTimeout(() => calls++, 2);
    clearTimeout(timeout);
    timeout.refresh();
    await after(10);
    expect(calls).toBe(0);
  });

  test('promisify', async () => {
    const sleep = promisify(setTimeout) as unknown as (ms: number, value: string) => Promise<string>;
    expect(await sleep(2, 'value')).toBe('value');
  });
});

describe.each(BOTH)('%s: setInterval', (_, { setInterval, clearInterval, clearTimeout }) => {
  test('calls back again and again, until it is cleared from inside itself', async () => {
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

  test('clearTimeout clears it too, also by number', async () => {
    let calls = 0;
    clearTimeout(setInterval(() => calls++, 2));
    clearTimeout(+setInterval(() => calls++, 2));
    await after(10);
    expect(calls).toBe(0);
  });

  test('its number works after it has run', async () => {
    let calls = 0;
    const number = +setInterval(() => calls++, 2);
    await after(10);
    expect(calls).toBeGreaterThan(0);
    clearInterval(number);
    calls = 0;
    await after(10);
    expect(calls).toBe(0);
  });
});

describe.each([
  ['node:timers', 'node:timers'],
  ['escapement/timers', 'escapement/timers'],
])('%s in a program', (_, module) => {
  test('a callback that throws is an uncaught exception, and the others go on', () => {
    const { stdout, status } = runProgram(`
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
    expect(stdout.trim().split('\n')).toEqual([
      'uncaught boom',
      'other',
      'uncaught tick 1',
      'uncaught tick 2',
      'uncaught tick 3',
    ]);
    expect(status).toBe(0);
  });

  test('unref lets the process end, ref keeps it', () => {
    const { stdout, status } = runProgram(`
      import { setTimeout, setInterval } from '${module}';
      setTimeout(() => console.log('never'), 30_000).unref();
      setInterval(() => console.log('never'), 30_000).unref();
      setTimeout(() => console.log('twice'), 30).unref().ref();
      const fired = setTimeout(() => console.log('fired'), 1);
      setTimeout(() => fired.ref(), 10);
    `);
    expect(stdout.trim().split('\n')).toEqual(['fired', 'twice']);
    expect(status).toBe(0);
  });

  test('the async context is that of the call that set it', () => {
    const { stdout } = runProgram(`
      import { AsyncLocalStorage } from 'node:async_hooks';
      import { setTimeout, setInterval, clearInterval } from '${module}';
      const store = new AsyncLocalStorage();
      let refreshed;
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
    expect(stdout.trim().split('\n')).toEqual([
      'timeout a',
      'timeout b',
      'interval a',
      'interval b',
      'interval a',
      'interval b',
      'nested outer',
      'none undefined',
    ]);
  });
});
