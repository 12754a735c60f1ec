import { getEventListeners } from 'node:events';
import { parallelizeUntil } from 'escapement';
import { describe, expect, test } from 'vitest';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { Workbench } from './support/workbench.ts';

const mine = new Error('mine');
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** The bench as a function of pieces. */
const runOn =
  (bench: Workbench<number>) =>
  (piece: number): unknown =>
    bench.worker(piece, { signal: new AbortController().signal, numRequeues: 0 });

describe('every piece once', () => {
  test.each([
    [1, 10, 1],
    [3, 10, 1],
    [3, 10, 4],
    [10, 3, 1],
    [4, 4, 100],
    [7, 1_000, 13],
    [1, 0, 1],
  ])('by %d workers, %d pieces in chunks of %d', async (workers, pieces, chunkSize) => {
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

  test('in order by one worker, also if they return no promise', async () => {
    const seen: number[] = [];
    await parallelizeUntil(1, 100, (piece) => seen.push(piece), { chunkSize: 7 });
    expect(seen).toEqual(upTo(100));
  });

  test('as many at once as there are workers, and no more', async () => {
    const bench = new Workbench<number>();
    const all = watch(parallelizeUntil(3, 5, runOn(bench)));
    await settled();
    expect(bench.items).toEqual([0, 1, 2]);
    await bench.finish(1);
    expect(bench.items).toEqual([0, 2, 3]);
    for (const piece of [0, 2, 3, 4]) await bench.finish(piece);
    expect([all.state, bench.most]).toEqual(['resolved', 3]);
  });

  test('a chunk belongs to one worker, who runs it in order', async () => {
    const bench = new Workbench<number>();
    const all = watch(parallelizeUntil(2, 5, runOn(bench), { chunkSize: 3 }));
    await settled();
    expect(bench.items).toEqual([0, 3]);
    await bench.finish(0);
    expect(bench.items).toEqual([3, 1]);
    for (const piece of [1, 3, 2, 4]) await bench.finish(piece);
    expect([all.state, bench.begun]).toEqual(['resolved', [0, 3, 1, 2, 4]]);
  });

  test('pieces that never wait do not starve the host', async () => {
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
});

describe('the first error stops new pieces, running ones end, then it rejects', () => {
  test('with that error', async () => {
    const bench = new Workbench<number>();
    const all = watch(parallelizeUntil(2, 5, runOn(bench)));
    await settled();
    await bench.fail(0, mine);
    expect([all.state, bench.items]).toEqual(['pending', [1]]);
    await bench.finish(1);
    expect([all.state, all.value, bench.begun]).toEqual(['rejected', mine, [0, 1]]);
  });

  test('all errors in an AggregateError when there are several, in the order they came', async () => {
    const bench = new Workbench<number>();
    const all = watch(parallelizeUntil(3, 5, runOn(bench)));
    await settled();
    const errors = [new Error('second piece'), new Error('first piece')];
    await bench.fail(1, errors[0]);
    await bench.fail(0, errors[1]);
    await bench.finish(2);
    expect(all.value).toBeInstanceOf(AggregateError);
    expect(all.value).toMatchObject({ errors, message: '2 pieces have failed' });
  });

  test('the rest of the chunk is not run', async () => {
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

  test.each([undefined, null, 0])('whatever was thrown: %o', async (thrown) => {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- pieces do
    const all = watch(parallelizeUntil(1, 2, () => Promise.reject(thrown)));
    await settled();
    expect([all.state, all.value]).toEqual(['rejected', thrown]);
  });

  test('the last piece is one like any other', async () => {
    expect(await rejectionOf(parallelizeUntil(1, 3, (piece) => piece === 2 && Promise.reject(mine)))).toBe(
      mine,
    );
  });
});

describe('an abort rejects with the reason', () => {
  test('beforehand: nothing runs', async () => {
    const seen: number[] = [];
    const options = { signal: AbortSignal.abort(mine) };
    expect(await rejectionOf(parallelizeUntil(2, 5, (piece) => seen.push(piece), options))).toBe(mine);
    expect(seen).toEqual([]);
  });

  test('meanwhile: what runs is waited for', async () => {
    const bench = new Workbench<number>();
    const controller = new AbortController();
    const all = watch(parallelizeUntil(2, 5, runOn(bench), controller));
    await settled();
    controller.abort(mine);
    await bench.finish(0);
    expect([all.state, bench.items]).toEqual(['pending', [1]]);
    await bench.finish(1);
    expect([all.state, all.value, bench.begun]).toEqual(['rejected', mine, [0, 1]]);
  });

  test('pieces that reject because of it are no errors of their own', async () => {
    const bench = new Workbench<number>();
    const controller = new AbortController();
    const all = watch(parallelizeUntil(2, 5, runOn(bench), controller));
    await settled();
    controller.abort(mine);
    await bench.fail(0, mine);
    await bench.fail(1, new DOMException('stopped', 'AbortError'));
    expect(all.value).toBe(mine);
  });

  test('pieces that fail for another reason are', async () => {
    const bench = new Workbench<number>();
    const controller = new AbortController();
    const all = watch(parallelizeUntil(2, 5, runOn(bench), controller));
    await settled();
    controller.abort(mine);
    const other = new Error('other');
    await bench.fail(0, other);
    await bench.finish(1);
    expect(all.value).toMatchObject({ errors: [mine, other] });
  });

  test('when all pieces were started it comes too late', async () => {
    const bench = new Workbench<number>();
    const controller = new AbortController();
    const all = watch(parallelizeUntil(2, 2, runOn(bench), controller));
    await settled();
    controller.abort(mine);
    for (const piece of [0, 1]) await bench.finish(piece);
    expect(all.state).toBe('resolved');
  });

  test('from inside a piece', async () => {
    const controller = new AbortController();
    const seen: number[] = [];
    const all = parallelizeUntil(
      1,
      5,
      (piece) => {
        seen.push(piece);
        controller.abort(mine);
      },
      controller,
    );
    expect([await rejectionOf(all), seen]).toEqual([mine, [0]]);
  });

  test('nothing listens to the signal', async () => {
    const { signal } = new AbortController();
    await parallelizeUntil(2, 5, () => Promise.resolve(), { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('onNotRun', () => {
  test('is told which pieces were not run, ascending, before the promise rejects', async () => {
    const log: unknown[] = [];
    const bench = new Workbench<number>();
    const onNotRun = (pieces: number[]): unknown => log.push(pieces);
    const all = watch(parallelizeUntil(2, 9, runOn(bench), { chunkSize: 3, onNotRun }));
    all.promise.catch(() => log.push('rejected'));
    await settled();
    await bench.finish(0);
    await bench.fail(3, mine);
    await bench.finish(1);
    expect([all.value, log]).toEqual([mine, [[2, 4, 5, 6, 7, 8], 'rejected']]);
  });

  test('is not called when all were run, also if the last one failed', async () => {
    const onNotRun = (): never => expect.fail('nothing was left out');
    await parallelizeUntil(2, 5, () => undefined, { onNotRun });
    const lastFails = (piece: number): unknown => piece === 4 && Promise.reject(mine);
    expect(await rejectionOf(parallelizeUntil(1, 5, lastFails, { onNotRun }))).toBe(mine);
    await parallelizeUntil(1, 0, () => undefined, { onNotRun, signal: AbortSignal.abort() });
  });

  test.each([1, 2 ** 40])(
    'nobody counts what was not run if nobody wants to know: chunks of %d',
    async (chunkSize) => {
      const run = (): never => {
        throw mine;
      };
      expect(await rejectionOf(parallelizeUntil(1, Number.MAX_SAFE_INTEGER, run, { chunkSize }))).toBe(mine);
    },
  );
});
