import { expect, test } from 'vitest';
import { remoteBroker } from '../../../bench/scaling/remote-broker.ts';
import { ManualClock } from '../../../src/core/manual-clock.ts';
import { Client, EmbeddedBroker, Task } from '../../../src/tasks.ts';

test('a round trip takes time, and what was asked is counted', async () => {
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
  expect(remote).toMatchObject({ asked: 2, askedInVain: 1 });
  await remote.broker.close();
});
