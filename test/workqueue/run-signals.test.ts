import { setTimeout as sleep } from 'node:timers/promises';
import { WorkQueue } from 'escapement';
import { expect, test } from 'vitest';

test('a hundred workers that listen to their signals are no leak to Node', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => {
    warnings.push(warning);
  };
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
