import { describe, expect, test } from 'vitest';
import { runProgram, type ProgramResult } from '../run-program.ts';

/** Runs a program in a process of its own, in real time; one that does not end is killed, and has no status. */
function run(body: string): ProgramResult & { readonly lines: string[] } {
  const result = runProgram(`
    import { DelayingQueue, RateLimitingQueue, WorkQueue, defaultControllerRateLimiter, parallelizeUntil } from 'escapement';
    const say = (line) => { console.log(line); };
    process.on('exit', () => say('exit'));
    ${body}
  `);
  return { ...result, lines: result.stdout.split('\n').filter((line) => line !== '') };
}

const MINUTES_MS = 600_000;

describe('in real time, a process', () => {
  test('ends by itself although somebody waits for items', () => {
    const { status, lines } = run(`
      const queue = new WorkQueue();
      queue.run((item) => say(item));
      await undefined;
      queue.add('a');
      queue.get().then(() => say('never'));
    `);
    expect([status, lines]).toEqual([0, ['a', 'exit']]);
  });

  test('stays alive while an item waits for its time, and ends after it', () => {
    const { status, lines } = run(`
      const queue = new DelayingQueue();
      queue.addAfter('a', 100);
      queue.run((item) => say(item));
      say('waiting');
    `);
    expect([status, lines]).toEqual([0, ['waiting', 'a', 'exit']]);
  });

  test('ends by itself while items are parked, and once the queue is shut down', () => {
    const { status, lines } = run(`
      const queue = new DelayingQueue();
      queue.addAfter('parked', Infinity);
      queue.addAfter('a', ${MINUTES_MS});
      say(queue.shutDown().join());
      const other = new DelayingQueue();
      other.addAfter('parked', Infinity);
    `);
    expect([status, lines]).toEqual([0, ['a,parked', 'exit']]);
  });

  test('runs a controller: failures are tried again, in time', () => {
    const { status, stderr, lines } = run(`
      const queue = new RateLimitingQueue(defaultControllerRateLimiter());
      const startMs = performance.now();
      const atMs = [];
      queue.add('a');
      await queue.run((item, { numRequeues }) => {
        atMs.push(performance.now() - startMs);
        if (numRequeues < 3) throw new Error('not yet');
        queue.shutDown();
      });
      say(atMs.length);
      say([5, 15, 35].every((dueMs, i) => atMs[i + 1] >= dueMs));
    `);
    expect([status, stderr, lines]).toEqual([0, '', ['4', 'true', 'exit']]);
  });

  test('sees no rejection that nobody handles', () => {
    const { status, stderr, lines } = run(`
      const queue = new WorkQueue({ maxSize: 1 });
      const controller = new AbortController();
      const { signal } = controller;
      const loop = async () => { for await (const lease of queue.leases({ signal })) lease.done(); };
      const all = [queue.get({ signal }), loop(), queue.run(() => undefined, { signal })];
      controller.abort(new Error('gave up'));
      for (const { status, reason } of await Promise.allSettled(all)) say(status + ' ' + reason?.message);
      await parallelizeUntil(3, 10, async (piece) => { throw new Error('piece ' + piece); })
        .catch((error) => say(error.errors.length));
    `);
    expect([status, stderr]).toEqual([0, '']);
    expect(lines).toEqual(['rejected gave up', 'rejected gave up', 'fulfilled undefined', '3', 'exit']);
  });
});

test('both builds in one process: timers, errors, limiters and the checker cross over', () => {
  const { status, stderr, lines } = run(`
    const { createRequire } = await import('node:module');
    const { EscapementError, ItemExponentialFailureRateLimiter, ManualClock } = await import('escapement');
    const require = createRequire(process.cwd() + '/x.js');
    const [cjs, { checkQueue }] = [require('escapement'), require('escapement/testing')];
    const clock = new ManualClock();
    const limiter = new ItemExponentialFailureRateLimiter({ baseDelayMs: 10, maxDelayMs: 10 });
    const queue = new RateLimitingQueue(new cjs.MaxOfRateLimiter(limiter), { timer: new cjs.SystemTimer({ clock }) });
    queue.addRateLimited('a');
    checkQueue(queue);
    clock.advance(10);
    checkQueue(queue);
    say(queue.length + ' ' + queue.numRequeues('a'));
    try { new cjs.WorkQueue().done('a'); } catch (error) { say(error instanceof EscapementError && error.code); }
  `);
  expect([status, stderr, lines]).toEqual([0, '', ['1 1', 'ERR_NOT_PROCESSING', 'exit']]);
});
