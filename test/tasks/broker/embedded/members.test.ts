import { EmbeddedBroker } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { expect, test } from 'vitest';

const state = {
  host: 'h',
  pid: 1,
  concurrency: 1,
  queues: {},
  strictPriority: false,
  startedAtMs: 0,
  workers: [],
};

test('the state of a server is read when the servers are listed', async () => {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  let status: 'active' | 'stopped' = 'active';
  await broker.announceServer(() => ({ ...state, id: 'a', status }), 1);
  status = 'stopped';
  expect((await broker.servers()).map((server) => server.status)).toEqual(['stopped']);
});

test('the events of 1 000 schedule entries are kept, and those of the entry with the oldest last event are removed first', async () => {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  const record = (entry: number): Promise<void> =>
    broker.recordEnqueueEvent(`entry ${entry}`, { taskId: 'a', atMs: entry });
  const count = async (entry: number): Promise<number> =>
    (await broker.enqueueEvents(`entry ${entry}`, { page: 1, size: 10 })).length;
  for (let entry = 0; entry < 1_000; entry++) await record(entry);
  await record(0);
  await record(1_000);
  expect([await count(0), await count(1), await count(2), await count(1_000)]).toEqual([2, 0, 1, 1]);
});

test('the events of a schedule entry are removed 90 days after the last one, when another entry has an event', async () => {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  const DAY_MS = 86_400_000;
  const page = { page: 1, size: 10 };
  await broker.recordEnqueueEvent('gone', { taskId: 'a', atMs: DAY_MS });
  await broker.recordEnqueueEvent('kept', { taskId: 'b', atMs: 91 * DAY_MS });
  expect(await broker.enqueueEvents('gone', page)).toHaveLength(1);
  await broker.recordEnqueueEvent('kept', { taskId: 'c', atMs: 92 * DAY_MS });
  expect(await broker.enqueueEvents('gone', page)).toEqual([]);
  expect(await broker.enqueueEvents('kept', page)).toHaveLength(2);
});
