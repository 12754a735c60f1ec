import { expect, test } from 'vitest';
import { remoteBroker } from '../../../bench/scaling/serving.ts';
import { ManualClock } from '../../../src/core/manual-clock.ts';
import { Client, EmbeddedBroker, Task } from '../../../src/tasks.ts';

test('a remote broker takes a round trip for each poll and counts the polls', async () => {
  const clock = new ManualClock();
  const here = await EmbeddedBroker.open({ clock });
  const remote = remoteBroker(here, 2);
  expect(remote.broker.maintenance).toContain('dequeue');
  await new Client({ broker: here }).enqueue(new Task('work'));

  const taken: number[] = [];
  const take = async (): Promise<void> => {
    taken.push((await remote.broker.dequeue('default', 10, 1_000)).length);
  };
  void take();
  await clock.advanceAsync(1.9);
  expect(taken).toEqual([]);
  await clock.advanceAsync(0.1);
  expect(taken).toEqual([1]);

  void take();
  await clock.advanceAsync(2);
  expect(taken).toEqual([1, 0]);
  expect(remote.polls).toBe(2);
  await remote.broker.close();
});
