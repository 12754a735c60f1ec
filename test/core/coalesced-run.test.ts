import { expect, test } from 'vitest';
import { CoalescedRun } from '../../src/core/coalesced-run.ts';

function held(): { run: CoalescedRun; ends: (() => void)[] } {
  const ends: (() => void)[] = [];
  return { run: new CoalescedRun(() => new Promise((resolve) => ends.push(resolve))), ends };
}

test('a coalesced run starts inside the call of its trigger, and is idle after its job', async () => {
  const { run, ends } = held();
  expect(run.running).toBeUndefined();
  run.trigger();
  expect(ends).toHaveLength(1);
  const { running } = run;
  ends[0]?.();
  await running;
  expect([ends.length, run.running]).toEqual([1, undefined]);
});

test('triggers during a run are followed by one more run, after it', async () => {
  const { run, ends } = held();
  run.trigger();
  run.trigger();
  run.trigger();
  expect(ends).toHaveLength(1);
  const { running } = run;
  ends[0]?.();
  await Promise.resolve();
  await Promise.resolve();
  expect(ends).toHaveLength(2);
  ends[1]?.();
  await running;
  expect([ends.length, run.running]).toEqual([2, undefined]);
});

test('a job that triggers its own run is run once more, and never inside itself', async () => {
  let depth = 0;
  const depths: number[] = [];
  const run = new CoalescedRun(async () => {
    depths.push(++depth);
    if (depths.length < 3) run.trigger();
    await Promise.resolve();
    depth--;
  });
  run.trigger();
  await run.running;
  expect(depths).toEqual([1, 1, 1]);
});
