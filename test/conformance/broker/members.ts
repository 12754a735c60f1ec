import type { ScheduleEntry, ServerState } from 'escapement/tasks';
import { expect } from 'vitest';
import { caseWith, type BrokerFactory } from './support.ts';

function serverState(id: string): ServerState {
  const worker = {
    ...{ taskId: 'task', taskType: 'test:task', payload: Uint8Array.of(1, 255), queue: 'low' },
    ...{ startedAtMs: 1_700_000_001_000, deadlineMs: 1_700_000_002_000 },
  };
  return {
    ...{ id, host: 'host', pid: 7, concurrency: 10, queues: { default: 1, low: 3 }, strictPriority: true },
    ...{ status: 'active', startedAtMs: 1_700_000_000_000, workers: [worker] },
  };
}

function entry(id: string): ScheduleEntry {
  return {
    ...{ id, spec: '@every 1m', taskType: 'test:task', payload: Uint8Array.of(200) },
    ...{ options: ['Queue("low")', 'MaxRetry(5)'], nextEnqueueAtMs: 1_700_000_060_000, prevEnqueueAtMs: 0 },
  };
}

const TTL_MS = 60_000;

export function describeMembers(make: BrokerFactory): void {
  const it = caseWith(make);

  it('servers are listed with their state until they withdraw', async (broker) => {
    expect(await broker.servers()).toEqual([]);
    await broker.announceServer(() => serverState('a'), TTL_MS);
    await broker.announceServer(() => serverState('b'), TTL_MS);
    const servers = [...(await broker.servers())].sort((x, y) => x.id.localeCompare(y.id));
    expect(servers.map(plain)).toEqual([serverState('a'), serverState('b')].map(plain));
    await broker.withdrawServer(serverState('a'));
    await broker.withdrawServer(serverState('nobody'));
    expect((await broker.servers()).map(({ id }) => id)).toEqual(['b']);
  });

  it('servers are listed with their new state when they announce themselves again', async (broker) => {
    let state = serverState('a');
    await broker.announceServer(() => state, TTL_MS);
    state = { ...state, status: 'stopped', workers: [] };
    await broker.announceServer(() => state, TTL_MS);
    expect(await broker.servers()).toEqual([state]);
  });

  it('schedulers are listed with their entries until they withdraw', async (broker) => {
    expect(await broker.scheduleEntries()).toEqual([]);
    let entries = [entry('1'), entry('2')];
    await broker.announceScheduler('a', () => entries, TTL_MS);
    await broker.announceScheduler('b', () => [], TTL_MS);
    expect((await broker.scheduleEntries()).map(plainEntry).sort(byId)).toEqual(entries.map(plainEntry));
    entries = [entry('3')];
    await broker.announceScheduler('a', () => entries, TTL_MS);
    expect((await broker.scheduleEntries()).map(plainEntry)).toEqual(entries.map(plainEntry));
    await broker.withdrawScheduler('a');
    await broker.withdrawScheduler('nobody');
    expect(await broker.scheduleEntries()).toEqual([]);
  });

  it('the last 1 000 enqueue events of an entry are listed in pages, the newest first', async (broker) => {
    expect(await broker.enqueueEvents('entry', { page: 1, size: 10 })).toEqual([]);
    const events = Array.from({ length: 1_001 }, (_, i) => ({
      taskId: `task ${i}`,
      atMs: 1_700_000_000_000 + i * 1_000,
    }));
    for (const event of events) await broker.recordEnqueueEvent('entry', event);
    await broker.recordEnqueueEvent('other', { taskId: 'other', atMs: 1_700_000_000_000 });
    const newest = events.toReversed();
    expect(await broker.enqueueEvents('entry', { page: 1, size: 2 })).toEqual(newest.slice(0, 2));
    expect(await broker.enqueueEvents('entry', { page: 3, size: 2 })).toEqual(newest.slice(4, 6));
    expect(await broker.enqueueEvents('entry', { page: 1, size: 2_000 })).toEqual(newest.slice(0, 1_000));
    expect(await broker.enqueueEvents('entry', { page: 3, size: 1_000 })).toEqual([]);
  });
}

/** Bytes are bytes, whatever holds them. */
function plain(server: ServerState): unknown {
  const workers = server.workers.map((worker) => ({ ...worker, payload: [...worker.payload] }));
  return { ...server, workers };
}

function plainEntry(one: ScheduleEntry): { id: string } {
  return { ...one, payload: [...one.payload] } as unknown as { id: string };
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id.localeCompare(b.id);
}
