import { runInNewContext } from 'node:vm';
import { WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { processAll, takeAll, takeNow } from './support/take.ts';
import { queueWithBench, running } from './support/workbench.ts';

const mine = new Error('mine');

test('a run with an aborted signal takes nothing and resolves', async () => {
  const { queue, bench } = queueWithBench('a');
  await queue.run(bench.worker, { signal: AbortSignal.abort(mine) });
  expect([bench.begun, queue.length]).toEqual([[], 1]);
});

test('a run that is aborted in the turn of its call takes nothing', async () => {
  const { queue, bench } = queueWithBench('a');
  const controller = new AbortController();
  const run = queue.run(bench.worker, controller);
  controller.abort(mine);
  await run;
  expect([bench.begun, queue.length]).toEqual([[], 1]);
});

test('a run that is aborted while its workers wait resolves', async () => {
  const { queue, run, abort } = await running('', 3);
  abort(mine);
  await settled();
  expect([run.state, run.value]).toEqual(['resolved', undefined]);
  queue.add('a');
  expect(await takeNow(queue)).toBe('a');
});

test('items that were taken in the turn of an abort are first again, in their order', async () => {
  const { queue, bench, run, abort } = await running('', 3);
  for (const item of 'abcd') queue.add(item);
  abort(mine);
  queue.add('e');
  await run.promise;
  expect(bench.begun).toEqual([]);
  checkQueue(queue);
  expect(await processAll(queue)).toEqual(Array.from('abcde'));
});

test('an item that was taken in the turn of an abort goes to a waiting caller', async () => {
  const { queue, run, abort } = await running('');
  const other = watch(queue.get());
  queue.add('a');
  abort(mine);
  await run.promise;
  await settled();
  expect(other.value).toEqual({ item: 'a', shutdown: false });
  queue.done('a');
  checkQueue(queue);
});

test('an abort from inside a worker completes its item and begins no other', async () => {
  const { queue } = queueWithBench('abc');
  const controller = new AbortController();
  const seen: string[] = [];
  await queue.run((item) => {
    seen.push(item);
    controller.abort(mine);
  }, controller);
  expect(seen).toEqual(['a']);
  expect(await processAll(queue)).toEqual(['b', 'c']);
});

test("an abort aborts each worker's signal with its reason, and running workers are awaited", async () => {
  const { queue, bench, run, abort } = await running('abc', 2);
  const contexts = ['a', 'b'].map((item) => bench.contextOf(item));
  expect(contexts.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  abort(mine);
  await settled();
  expect(contexts.map(({ signal }) => signal.reason as unknown)).toEqual([mine, mine]);
  expect(run.state).toBe('pending');
  await bench.finish('b');
  expect(run.state).toBe('pending');
  await bench.finish('a');
  expect(run.state).toBe('resolved');
  expect(await takeAll(queue)).toEqual(['c']);
});

test("interrupted items keep their old order, whatever the order of their workers' errors", async () => {
  const { queue, bench, run, abort } = await running('abcde', 4);
  abort(mine);
  for (const item of 'cad') await bench.fail(item, mine);
  queue.add('f');
  queue.add('b');
  await bench.finish('b');
  await run.promise;
  expect(await processAll(queue)).toEqual(['a', 'c', 'd', 'e', 'f', 'b']);
});

// Under Jest, the errors of Node's functions are of another realm than those of the program.
const ofAnotherRealm: unknown = runInNewContext("Object.assign(new Error(), { name: 'AbortError' })");

test.each([
  ['an AbortError', new DOMException('stopped', 'AbortError')],
  ['an AbortError of another realm', ofAnotherRealm],
])('a worker that rejects with %s after an abort was interrupted', async (_, error) => {
  const { queue, bench, run, abort } = await running('a');
  abort(mine);
  await bench.fail('a', error);
  await run.promise;
  expect(await takeNow(queue)).toBe('a');
});

test('an item whose worker rejects after an abort with a value that cannot be read is done', async () => {
  const { queue, bench, run, abort } = await running('a');
  abort(mine);
  const unreadable = {
    get name(): string {
      throw new Error('unreadable');
    },
  };
  const rejected = expect(run.promise).rejects.toBe(unreadable);
  await bench.fail('a', unreadable);
  await rejected;
  expect([queue.processing, queue.length]).toEqual([0, 0]);
});

test('an item that was interrupted and added again meanwhile is queued once, with the newest object', async () => {
  const queue = new WorkQueue<{ key: string; version: number }>({ keyOf: ({ key }) => key });
  queue.add({ key: 'a', version: 1 });
  const controller = new AbortController();
  const run = queue.run(
    ({ key, version }, { signal }) =>
      new Promise((_, reject) => {
        queue.add({ key, version: version + 1 });
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
    controller,
  );
  await settled();
  controller.abort(mine);
  await run;
  expect(await processAll(queue)).toEqual([{ key: 'a', version: 2 }]);
  expect(queue.length).toBe(0);
});

test('after shutdown an interrupted item that was added again goes to one waiting caller, and the others get the end', async () => {
  const { queue, bench, run, abort } = await running('a');
  bench.interruptible('a');
  queue.add('a');
  queue.shutDown();
  const waiting = [watch(queue.get()), watch(queue.get())];
  abort(mine);
  await run.promise;
  await settled();
  checkQueue(queue);
  expect(waiting.map(({ value }) => value)).toEqual([
    { item: 'a', shutdown: false },
    { item: undefined, shutdown: true },
  ]);
});

test('an interrupted item whose worker has called done is not queued again', async () => {
  const { queue, bench, run, abort } = await running('ab', 2);
  for (const item of 'ab') bench.interruptible(item);
  queue.done('a');
  abort(mine);
  await run.promise;
  checkQueue(queue);
  expect(await processAll(queue)).toEqual(['b']);
});

test('an AbortError without an abort is an error like any other', async () => {
  const { queue } = queueWithBench('a');
  const error = new DOMException('stopped', 'AbortError');
  expect(await rejectionOf(queue.run(() => Promise.reject(error)))).toBe(error);
  expect(queue.length).toBe(0);
});

test('a worker that fails for another reason after an abort has failed', async () => {
  const { queue, bench, run, abort } = await running('ab');
  abort();
  await bench.fail('a', mine);
  expect([run.state, run.value]).toEqual(['rejected', mine]);
  expect(await processAll(queue)).toEqual(['b']);
});

test('a run removes its listener from the signal, however it ends', async () => {
  const { signal } = new AbortController();
  const { queue, bench } = queueWithBench('a');
  const run = queue.run(bench.worker, { signal, concurrency: 5 });
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  await settled();
  queue.shutDown();
  await bench.finish('a');
  await run;
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  await rejectionOf(queueWithBench('a').queue.run(() => Promise.reject(mine), { signal }));
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a hundred workers that listen to their signals cause no warning of Node', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on('warning', note);
  const stop = new AbortController();
  const queue = new WorkQueue<number>();
  for (let i = 0; i < 100; i++) queue.add(i);
  const running = queue.run((_, { signal }) => sleep(60_000, undefined, { signal }), {
    concurrency: 100,
    signal: stop.signal,
  });
  while (queue.processing < 100) await new Promise(setImmediate);
  stop.abort(new Error('enough'));
  await running;
  await new Promise(setImmediate);
  process.off('warning', note);
  expect(warnings).toEqual([]);
  expect([queue.length, queue.processing]).toEqual([100, 0]);
});
