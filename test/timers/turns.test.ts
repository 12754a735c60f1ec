import * as host from 'node:timers';
import { describe, expect, test } from 'vitest';
import * as ours from 'escapement/timers';
import { runProgram } from '../run-program.ts';

/** What both are tested through. */
type Timers = Pick<typeof host, 'setTimeout' | 'setInterval' | 'clearTimeout' | 'clearInterval'>;

const BOTH: [string, Timers][] = [
  ['node:timers', host],
  ['escapement/timers', ours],
];

/** Holds the loop, so that everything shorter is due in one turn. */
function block(ms = 6): void {
  const startMs = performance.now();
  while (performance.now() - startMs < ms) continue;
}

/** Resolves when there are so many entries, and had time to become more. */
async function filled(order: unknown[], length: number): Promise<void> {
  while (order.length < length) await after(5);
  await after(15);
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => host.setTimeout(resolve, ms));
}

describe.each(BOTH)('%s: callbacks that are due in one turn', (_, timers) => {
  const { setTimeout, setInterval, clearTimeout } = timers;

  test('process.nextTick callbacks and microtasks run between callbacks of one turn', async () => {
    const order: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      setTimeout(() => {
        order.push(name);
        process.nextTick(() => {
          order.push(`tick ${name}`);
          queueMicrotask(() => process.nextTick(() => order.push(`second tick ${name}`)));
        });
        void Promise.resolve()
          .then(() => order.push(`job ${name}`))
          .then(() => order.push(`second job ${name}`));
      }, 1);
    }
    block();
    await filled(order, 15);
    const each = (name: string): string[] =>
      ['', 'tick ', 'job ', 'second job ', 'second tick '].map((what) => what + name);
    expect(order).toEqual([...each('a'), ...each('b'), ...each('c')]);
  });

  test('a timeout that is cleared between two callbacks of one turn does not run, and the others do', async () => {
    const order: string[] = [];
    setTimeout(
      () =>
        process.nextTick(() => {
          clearTimeout(second);
          clearTimeout(third);
        }),
      1,
    );
    const second = setTimeout(() => order.push('second'), 1);
    const third = setInterval(() => order.push('third'), 1);
    setTimeout(() => order.push('fourth'), 1);
    block();
    await filled(order, 1);
    expect(order).toEqual(['fourth']);
  });

  test('a timeout that is refreshed by a callback of its turn starts its delay anew', async () => {
    const order: string[] = [];
    setTimeout(() => {
      setTimeout(() => order.push('later'), 15);
      second.refresh();
    }, 1);
    const second = setTimeout(() => order.push('refreshed'), 40);
    setTimeout(() => order.push('third'), 1);
    block(60);
    await filled(order, 3);
    expect(order).toEqual(['third', 'later', 'refreshed']);
  });

  test('a timeout that is refreshed in its turn and due again at once runs after the others, once', async () => {
    const order: string[] = [];
    setTimeout(() => {
      order.push('first');
      second.refresh();
      block();
    }, 1);
    const second = setTimeout(() => order.push('second'), 1);
    setTimeout(() => order.push('third'), 1);
    block();
    await filled(order, 3);
    expect(order).toEqual(['first', 'third', 'second']);
  });

  test('a timeout that clears or refreshes itself does not disturb the others of its turn', async () => {
    const order: string[] = [];
    const first = setTimeout(() => {
      order.push('first');
      if (order.length === 1) first.refresh();
    }, 1);
    const second = setTimeout(() => {
      order.push('second');
      clearTimeout(second);
      second.refresh();
    }, 1);
    setTimeout(() => order.push('third'), 1);
    block();
    await filled(order, 4);
    expect(order).toEqual(['first', 'second', 'third', 'first']);
  });

  test('immediates that callbacks of one turn set come after all of them', async () => {
    const order: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      setTimeout(() => {
        order.push(name);
        setImmediate(() => order.push(`immediate ${name}`));
      }, 1);
    }
    block();
    await filled(order, 6);
    expect(order).toEqual(['a', 'b', 'c', 'immediate a', 'immediate b', 'immediate c']);
  });

  test('a timeout that falls due while others run comes after them, in order', async () => {
    const order: string[] = [];
    setTimeout(() => {
      order.push('a');
      setTimeout(() => order.push('due meanwhile'), 1);
      block(10);
    }, 1);
    setTimeout(() => order.push('b'), 2);
    const interval = setInterval(() => {
      order.push('interval');
      clearTimeout(interval);
    }, 3);
    block();
    await filled(order, 4);
    expect(order).toEqual(['a', 'b', 'interval', 'due meanwhile']);
  });

  test('thousands of timeouts of one turn run in the order in which they were set', async () => {
    const order: number[] = [];
    for (let i = 0; i < 25_000; i++) setTimeout(() => order.push(i), 1);
    block(60);
    while (order.length < 25_000) await after(5);
    expect(order.every((n, i) => n === i)).toBe(true);
  });

  test('timeouts without a ref run with the others of their turn', async () => {
    const order: string[] = [];
    setTimeout(() => order.push('first'), 1);
    setTimeout(() => order.push('second'), 1).unref();
    const third = setTimeout(() => order.push('third'), 1);
    setTimeout(() => order.push('fourth'), 1);
    block();
    process.nextTick(() => third.unref());
    await filled(order, 4);
    expect(order).toEqual(['first', 'second', 'third', 'fourth']);
  });
});

describe.each(BOTH)('%s in a program, with callbacks that are due in one turn', (module) => {
  function linesOf(source: string, expectedStatus = 0): string[] {
    const { stdout, stderr, status } = runProgram(`
      import { setTimeout, setInterval, clearInterval } from '${module}';
      const say = (line) => process.stdout.write(line + '\\n');
      ${source}
      const start = performance.now();
      while (performance.now() - start < 6) continue;
    `);
    expect([stderr, status]).toEqual(['', expectedStatus]);
    return stdout.trim().split('\n');
  }

  test('an error is an uncaught exception before the next callback of the turn', () => {
    const lines = linesOf(`
      process.on('uncaughtException', (error) => say('uncaught ' + error.message));
      setTimeout(() => { throw new Error('first'); }, 1);
      setTimeout(say, 1, 'second');
      const interval = setInterval(() => {
        clearInterval(interval);
        throw new Error('third');
      }, 1);
      setTimeout(say, 1, 'fourth');
    `);
    expect(lines).toEqual(['uncaught first', 'second', 'uncaught third', 'fourth']);
  });

  test('an unhandled rejection is reported before the next callback of the turn', () => {
    const lines = linesOf(`
      process.on('unhandledRejection', (error) => say('unhandled ' + error.message));
      setTimeout(() => { void Promise.reject(new Error('first')); }, 1);
      setTimeout(say, 1, 'second');
    `);
    expect(lines).toEqual(['unhandled first', 'second']);
  });

  test('an error that is not handled ends the process before the next callback', () => {
    const { stdout, stderr, status } = runProgram(`
      import { setTimeout } from '${module}';
      setTimeout(() => { throw new Error('boom'); }, 1);
      setTimeout(console.log, 1, 'never');
      const start = performance.now();
      while (performance.now() - start < 6) continue;
    `);
    expect([stdout, status]).toEqual(['', 1]);
    expect(stderr).toContain('Error: boom');
  });

  test('process.exit ends the process before the next callback', () => {
    const lines = linesOf(
      `
      process.on('exit', () => say('exit'));
      setTimeout(() => { say('first'); process.exit(7); }, 1);
      setTimeout(say, 1, 'never');
      `,
      7,
    );
    expect(lines).toEqual(['first', 'exit']);
  });

  test('the process ends after the last callback of a turn', () => {
    const lines = linesOf(`
      process.on('beforeExit', () => say('before exit'));
      setTimeout(say, 1, 'first');
      setTimeout(say, 1, 'second').unref();
      setTimeout(say, 60_000, 'never').unref();
      setTimeout(say, 1, 'third');
    `);
    expect(lines).toEqual(['first', 'second', 'third', 'before exit']);
  });
});
