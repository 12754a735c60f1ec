import { getEventListeners } from 'node:events';
import { type ParallelizeOptions, parallelizeUntil } from 'escapement';
import { expect, test } from 'vitest';
import { throwing } from '../timer/support/errors.ts';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { Workbench } from './support/workbench.ts';

const mine = new Error('mine');
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Pieces that have begun on a bench, with a signal that `abort` aborts. */
async function started(workers: number, pieces: number, options: ParallelizeOptions = {}) {
  const bench = new Workbench<number>();
  const controller = new AbortController();
  const { signal } = controller;
  const run = (piece: number): unknown => bench.worker(piece, { signal, numRequeues: 0 });
  const all = watch(parallelizeUntil(workers, pieces, run, { signal, ...options }));
  await settled();
  return { bench, all, abort: (reason: unknown) => controller.abort(reason) };
}

test.each([
  [1, 10, 1],
  [3, 10, 1],
  [3, 10, 4],
  [10, 3, 1],
  [4, 4, 100],
  [7, 1_000, 13],
  [1, 0, 1],
])('every piece runs once: %d workers, %d pieces, chunks of %d', async (workers, pieces, chunkSize) => {
  const seen: number[] = [];
  await parallelizeUntil(
    workers,
    pieces,
    async (piece) => {
      await Promise.resolve();
      seen.push(piece);
    },
    { chunkSize },
  );
  expect(seen.sort((a, b) => a - b)).toEqual(upTo(pieces));
});

test('one worker runs the pieces in order, also if they return no promise', async () => {
  const seen: number[] = [];
  await parallelizeUntil(1, 100, (piece) => seen.push(piece), { chunkSize: 7 });
  expect(seen).toEqual(upTo(100));
});

test('at most as many pieces run at once as there are workers', async () => {
  const { bench, all } = await started(3, 5);
  expect(bench.items).toEqual([0, 1, 2]);
  await bench.finish(1);
  expect(bench.items).toEqual([0, 2, 3]);
  for (const piece of [0, 2, 3, 4]) await bench.finish(piece);
  expect([all.state, bench.most]).toEqual(['resolved', 3]);
});

test('one worker runs the pieces of a chunk in order', async () => {
  const { bench, all } = await started(2, 5, { chunkSize: 3 });
  expect(bench.items).toEqual([0, 3]);
  await bench.finish(0);
  expect(bench.items).toEqual([3, 1]);
  for (const piece of [1, 3, 2, 4]) await bench.finish(piece);
  expect([all.state, bench.begun]).toEqual(['resolved', [0, 3, 1, 2, 4]]);
});

test('pieces that never wait do not block the event loop', async () => {
  let isAborted = false;
  const controller = new AbortController();
  setTimeout(() => {
    isAborted = true;
    controller.abort(mine);
  }, 5);
  const all = parallelizeUntil(2, 1e12, () => undefined, { signal: controller.signal, chunkSize: 1e6 });
  await expect(all).rejects.toBe(mine);
  expect(isAborted).toBe(true);
});

test('parallelizeUntil rejects with the error of a piece, when running pieces have ended', async () => {
  const { bench, all } = await started(2, 5);
  await bench.fail(0, mine);
  expect([all.state, bench.items]).toEqual(['pending', [1]]);
  await bench.finish(1);
  expect([all.state, all.value, bench.begun]).toEqual(['rejected', mine, [0, 1]]);
});

test('parallelizeUntil rejects with an AggregateError of several errors, in their order', async () => {
  const { bench, all } = await started(3, 5);
  const errors = [new Error('second piece'), new Error('first piece')];
  await bench.fail(1, errors[0]);
  await bench.fail(0, errors[1]);
  await bench.finish(2);
  expect(all.value).toBeInstanceOf(AggregateError);
  expect(all.value).toMatchObject({ errors, message: '2 pieces have failed' });
});

test('after an error the rest of its chunk does not run', async () => {
  const seen: number[] = [];
  const error = await rejectionOf(
    parallelizeUntil(
      1,
      10,
      (piece) => {
        seen.push(piece);
        if (piece === 1) throw mine;
      },
      { chunkSize: 5 },
    ),
  );
  expect([error, seen]).toEqual([mine, [0, 1]]);
});

test.each([undefined, null, 0])('parallelizeUntil rejects with whatever was thrown: %o', async (thrown) => {
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- pieces do
  const all = watch(parallelizeUntil(1, 2, () => Promise.reject(thrown)));
  await settled();
  expect([all.state, all.value]).toEqual(['rejected', thrown]);
});

test('an aborted signal rejects, and no piece runs', async () => {
  const seen: number[] = [];
  const options = { signal: AbortSignal.abort(mine) };
  expect(await rejectionOf(parallelizeUntil(2, 5, (piece) => seen.push(piece), options))).toBe(mine);
  expect(seen).toEqual([]);
});

test('an abort rejects when running pieces have ended', async () => {
  const { bench, all, abort } = await started(2, 5);
  abort(mine);
  await bench.finish(0);
  expect([all.state, bench.items]).toEqual(['pending', [1]]);
  await bench.finish(1);
  expect([all.state, all.value, bench.begun]).toEqual(['rejected', mine, [0, 1]]);
});

test.each([5, 2])(
  'an abort of 2 workers rejects with its reason alone, if their pieces fail because of it: %d pieces',
  async (pieces) => {
    const { bench, all, abort } = await started(2, pieces);
    abort(mine);
    await bench.fail(0, mine);
    await bench.fail(1, new DOMException('stopped', 'AbortError'));
    expect(all.value).toBe(mine);
  },
);

test('an error of a piece for another reason than the abort is reported', async () => {
  const { bench, all, abort } = await started(2, 5);
  abort(mine);
  const other = new Error('other');
  await bench.fail(0, other);
  await bench.finish(1);
  expect(all.value).toMatchObject({ message: 'aborted, and a piece has failed', errors: [mine, other] });
});

test('an abort after the start of the last piece has no effect if all succeed', async () => {
  const { bench, all, abort } = await started(2, 2);
  abort(mine);
  for (const piece of [0, 1]) await bench.finish(piece);
  expect(all.state).toBe('resolved');
});

test('the listener on the signal is removed', async () => {
  const { signal } = new AbortController();
  await parallelizeUntil(2, 5, () => Promise.resolve(), { signal });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('onNotRun receives the pieces that were not run, in ascending order, before the promise rejects', async () => {
  const log: unknown[] = [];
  const onNotRun = (pieces: number[]): unknown => log.push(pieces);
  const { bench, all } = await started(2, 9, { chunkSize: 3, onNotRun });
  all.promise.catch(() => log.push('rejected'));
  await bench.finish(0);
  await bench.fail(3, mine);
  await bench.finish(1);
  expect([all.value, log]).toEqual([mine, [[2, 4, 5, 6, 7, 8], 'rejected']]);
});

test('onNotRun is not called if all pieces ran, also if the last one failed', async () => {
  const onNotRun = (): never => expect.fail('nothing was left out');
  await parallelizeUntil(2, 5, () => undefined, { onNotRun });
  const lastFails = (piece: number): unknown => piece === 4 && Promise.reject(mine);
  expect(await rejectionOf(parallelizeUntil(1, 5, lastFails, { onNotRun }))).toBe(mine);
  await parallelizeUntil(1, 0, () => undefined, { onNotRun, signal: AbortSignal.abort() });
});

test.each([1, 2 ** 40])(
  'without onNotRun the pieces that were not run are not computed: chunks of %d',
  async (chunkSize) => {
    const all = parallelizeUntil(1, Number.MAX_SAFE_INTEGER, throwing(mine), { chunkSize });
    expect(await rejectionOf(all)).toBe(mine);
  },
);
