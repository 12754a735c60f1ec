import { DelayingQueue, ManualClock, WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { expect, test } from 'vitest';
import { runProgram } from '../run-program.ts';
import { throwing, thrownBy } from '../timer/support/errors.ts';
import { settled, watch } from './support/outcome.ts';
import { processAll, takeNow } from './support/take.ts';
import { queueWithBench, running } from './support/workbench.ts';

const mine = new Error('mine');

test('run processes one item at a time by default, in order', async () => {
  const { queue, bench } = queueWithBench('abc');
  const run = watch(queue.run(bench.worker));
  for (const item of 'abc') {
    await settled();
    expect(bench.items).toEqual([item]);
    await bench.finish(item);
  }
  expect(run.state).toBe('pending');
  queue.shutDown();
  await settled();
  expect([run.state, run.value, bench.most]).toEqual(['resolved', undefined, 1]);
});

test.each([2, 5, 20])('run processes as many items at once as its concurrency: %d', async (concurrency) => {
  const { queue, bench } = queueWithBench('abcdefgh');
  const run = queue.run(bench.worker, { concurrency });
  await settled();
  expect(bench.items).toEqual(Array.from('abcdefgh').slice(0, concurrency));
  queue.shutDown();
  while (bench.jobs.size > 0) await bench.finish(bench.items[0] as string);
  await run;
  expect([bench.begun.length, bench.most]).toEqual([8, Math.min(concurrency, 8)]);
});

test('a worker is never called inside the call of run', async () => {
  const { queue } = queueWithBench('a');
  let isInside = true;
  const run = queue.run(() => {
    expect(isInside).toBe(false);
    queue.shutDown();
  });
  isInside = false;
  await run;
});

test.each<[string, () => unknown]>([
  ['returns', () => 5],
  ['resolves', () => Promise.resolve(5)],
  ['resolves with a promise', async () => Promise.resolve(Promise.resolve())],
  ['throws', throwing(mine)],
  ['rejects', () => Promise.reject(mine)],
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- workers do
  ['rejects with undefined', () => Promise.reject(undefined)],
  ['returns another thenable', () => ({ then: (resolve: () => void) => resolve() })],
  [
    'returns a thenable that fails',
    () => ({ then: (_: unknown, reject: (error: Error) => void) => reject(mine) }),
  ],
  ['returns a thenable that throws', () => ({ then: throwing(mine) })],
  [
    'returns something whose then cannot be read',
    () => Object.defineProperty({}, 'then', { get: throwing(mine) }),
  ],
  ['returns null', () => null],
  ['returns an object with a then that is no function', () => ({ then: 5 })],
])('done is called for a worker that %s', async (_, worker) => {
  const { queue } = queueWithBench('ab');
  queue.shutDown();
  await queue.run(worker, { onError: () => undefined });
  expect(thrownBy(() => queue.done('a'))).toHaveProperty('code', 'ERR_NOT_PROCESSING');
  await queue.shutDownWithDrain();
  checkQueue(queue);
});

test('a worker may call done and throw', async () => {
  const { queue } = queueWithBench('a');
  const errors: unknown[] = [];
  queue.shutDown();
  await queue.run(
    (item) => {
      queue.done(item);
      throw mine;
    },
    { onError: (...args) => errors.push(args) },
  );
  expect(errors).toEqual([[mine, 'a']]);
  checkQueue(queue);
});

test('a worker processes its item although done was called before it received it', async () => {
  const { queue, bench, run } = await running('');
  const other = watch(queue.get());
  queue.add('a');
  queue.done('a');
  queue.add('a');
  await settled();
  expect(bench.begun).toEqual(['a']);
  expect(other.value).toEqual({ item: 'a', shutdown: false });
  await bench.finish('a');
  queue.add('a');
  expect(queue.length).toBe(0); // the one who waited still holds it
  queue.done('a');
  queue.shutDown();
  await settled();
  await bench.finish('a');
  await run.promise;
  checkQueue(queue);
});

test.each([WorkQueue, DelayingQueue])('onError receives errors, and the run goes on: %o', async (Queue) => {
  const queue = new Queue<string>({ clock: new ManualClock() });
  for (const item of 'abc') queue.add(item);
  const errors: unknown[] = [];
  queue.shutDown();
  await queue.run(
    (item) => {
      if (item !== 'b') throw new Error(item);
    },
    { onError: (error, item) => errors.push([(error as Error).message, item]) },
  );
  expect(errors).toEqual([
    ['a', 'a'],
    ['c', 'c'],
  ]);
});

test('onError may add the item again, shut down, and take items', async () => {
  const { queue } = queueWithBench('a');
  let failures = 0;
  await queue.run(
    () => {
      if (failures < 3) throw mine;
      queue.shutDown();
    },
    {
      onError: (_, item) => {
        failures++;
        queue.add(item);
        checkQueue(queue);
      },
    },
  );
  expect(failures).toBe(3);
});

test('without onError run rejects with the first error after the other workers have ended', async () => {
  const { queue, bench, run } = await running('abcde', 3);
  await bench.fail('b', mine);
  expect(run.state).toBe('pending');
  await bench.fail('a', new Error('second'));
  expect(run.state).toBe('pending');
  await bench.finish('c');
  expect([run.state, run.value]).toEqual(['rejected', mine]);
  expect(bench.begun).toEqual(['a', 'b', 'c']);
  expect(await processAll(queue)).toEqual(['d', 'e']);
});

test('an error that stops a run does not abort the signals of its workers', async () => {
  const { bench, run } = await running('ab', 2);
  const { signal } = bench.contextOf('b');
  await bench.fail('a', mine);
  expect(signal.aborted).toBe(false);
  await bench.finish('b');
  expect(run.value).toBe(mine);
});

test('workers that wait when a run stops end, and take nothing', async () => {
  const { queue, bench, run } = await running('a', 3);
  await bench.fail('a', mine);
  expect(run.value).toBe(mine);
  queue.add('b');
  await settled();
  expect(await takeNow(queue)).toBe('b');
});

test.each([undefined, null, 0, false])('run rejects with whatever was thrown: %o', async (thrown) => {
  const { queue } = queueWithBench('a');
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- workers do
  const run = watch(queue.run(() => Promise.reject(thrown)));
  await settled();
  expect([run.state, run.value]).toEqual(['rejected', thrown]);
});

test('an error stops one run and not another on the same queue', async () => {
  const { queue, bench } = queueWithBench('ab');
  const failing = watch(queue.run(() => Promise.reject(mine)));
  const run = queue.run(bench.worker);
  await settled();
  expect([failing.value, bench.items]).toEqual([mine, ['b']]);
  queue.shutDown();
  await bench.finish('b');
  await run;
});

/** Runs until the host's timeout fires, which is never if the run does not let it. */
async function runUntilTimeout(
  worker: (queue: WorkQueue<number>, item: number) => unknown,
  concurrency = 1,
): Promise<number> {
  const queue = new WorkQueue<number>();
  const controller = new AbortController();
  for (let i = 0; i < concurrency; i++) queue.add(i);
  let calls = 0;
  setTimeout(() => controller.abort(), 5);
  await queue.run(
    (item) => {
      if (++calls > 20_000_000) throw new Error('it starves the host');
      return worker(queue, item);
    },
    { signal: controller.signal, concurrency },
  );
  checkQueue(queue);
  expect(queue.length).toBe(concurrency);
  return calls;
}

test.each([1, 4])(
  'a synchronous worker that adds its item for ever blocks neither timers nor an abort, with concurrency %d',
  async (concurrency) => {
    const calls = await runUntilTimeout((queue, item) => queue.add(item), concurrency);
    expect(calls).toBeGreaterThanOrEqual(1_000);
  },
);

test('an asynchronous worker that awaits nothing does not block the event loop', async () => {
  await runUntilTimeout(async (queue, item) => {
    await Promise.resolve();
    queue.add(item);
  });
});

test('the context of a worker has a signal, and no failures', async () => {
  const { queue } = queueWithBench('a');
  queue.shutDown();
  await queue.run((_, context) => {
    expect(context.signal).toBeInstanceOf(AbortSignal);
    expect(context.numRequeues).toBe(0);
  });
});

test('an unhandled error is an uncaught exception in a turn of its own, and the run goes on', () => {
  const { stdout, stderr, status } = runProgram(`
    import { RateLimitingQueue, WorkQueue } from 'escapement';
    process.on('uncaughtException', (error) => console.log('uncaught', error.message));
    const fail = (message) => () => { throw new Error(message); };
    async function runOne(limiter, options) {
      const queue = new RateLimitingQueue({ when: () => 0, forget() {}, numRequeues: () => 0, ...limiter });
      for (const item of ['a', 'b']) queue.add(item);
      const run = queue.run((item) => {
        if (item === 'b') queue.shutDown();
        throw new Error('worker ' + item);
      }, { maxRetries: 0, onDrop: (error, item) => console.log('dropped', item), ...options });
      await run;
      await queue.shutDownWithDrain();
      await new Promise((resolve) => setImmediate(resolve));
      console.log('--');
    }
    await runOne({}, { onDrop: undefined });
    await runOne({}, { onDrop: fail('onDrop') });
    await runOne({}, { onError: fail('onError') });
    await runOne({ forget: fail('forget') }, {});
    await runOne({ numRequeues: fail('numRequeues') }, { maxRetries: 1 });
    await runOne({ when: fail('when') }, { maxRetries: 1 });
    await runOne({ when: () => NaN }, { maxRetries: 1 });
    const queue = new WorkQueue();
    queue.add('a');
    queue.shutDown();
    await queue.run(fail('worker'), { onError: fail('onError of a WorkQueue') });
  `);
  expect([stderr, status]).toEqual(['', 0]);
  const NaN_MESSAGE = 'uncaught delayMs must be a number of milliseconds or Infinity. Received NaN';
  expect(
    stdout
      .trim()
      .split('\n--\n')
      .map((part) => part.split('\n')),
  ).toEqual([
    ['uncaught worker a', 'uncaught worker b'],
    ['uncaught onDrop', 'uncaught onDrop'],
    ['dropped a', 'dropped b', 'uncaught onError', 'uncaught onError'],
    ['dropped a', 'dropped b', 'uncaught forget', 'uncaught forget'],
    // Called for the context, after the failure and after the retry of each: a is tried again, and dropped after the shutdown.
    ['dropped b', 'dropped a', ...Array<string>(5).fill('uncaught numRequeues')],
    ['dropped a', 'dropped b', 'uncaught when'],
    ['dropped a', 'dropped b', NaN_MESSAGE],
    ['uncaught onError of a WorkQueue'],
  ]);
});
