import { expect, test } from 'vitest';
import { runProgram } from '../run-program.ts';

test('what nobody handles is an uncaught exception in a turn of its own, and the run goes on', () => {
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
  const NaN_MESSAGE = 'uncaught delayMs must be a number of milliseconds. Received NaN';
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
    // Asked for the context and after the failure of each: a is tried again, and given up after the shutdown.
    ['dropped b', 'dropped a', ...Array<string>(4).fill('uncaught numRequeues')],
    ['dropped a', 'dropped b', 'uncaught when'],
    ['dropped a', 'dropped b', NaN_MESSAGE],
    ['uncaught onError of a WorkQueue'],
  ]);
});
