import { afterEach, describe, expect, it } from 'vitest';
import { Cluster } from '../../examples/replicated-log/processes/cluster.ts';

const LONG_MS = 20_000;

let cluster: Cluster | undefined;
afterEach(() => cluster?.stop());

async function start(): Promise<Cluster> {
  cluster = new Cluster({ partitions: 2, minInSync: 2, sessionTimeoutMs: 500 });
  await cluster.start();
  await cluster.inSyncIs(3);
  return cluster;
}

describe('a cluster of real processes', () => {
  it('goes on without a follower killed by SIGKILL, takes it back, and leaves no process', async () => {
    const { client, processes } = await start();
    const victim = cluster?.follower('follower-1');
    const survivor = cluster?.follower('follower-2');
    expect(processes.map(({ isRunning }) => isRunning)).toEqual([true, true, true]);

    expect(await victim?.kill()).toEqual({ code: null, signal: 'SIGKILL' });
    expect(victim?.isRunning).toBe(false);
    const path = `/produce?acks=all&timeoutMs=${LONG_MS}`;
    const answer = await client.post(path, { partitions: [{ partition: 1, values: ['a', 'b'] }] });
    expect(answer).toMatchObject({
      status: 200,
      body: { partitions: [{ firstOffset: 0, inSync: ['leader', 'follower-2'] }] },
    });
    expect((await cluster?.status())?.purgatories).toMatchObject({
      produce: { watched: 0, completed: { tried: 1, expired: 0 } },
      sessions: { completed: { expired: 1 } },
    });

    await cluster?.startFollower('follower-1');
    await cluster?.inSyncIs(3);
    expect((await cluster?.copies('follower-1'))?.map(({ values }) => values)).toEqual([[], ['a', 'b']]);

    await cluster?.stop();
    expect(processes.map(({ isRunning }) => isRunning)).toEqual([false, false, false, false]);
    expect(await survivor?.ended).toEqual({ code: 0, signal: null });
  });

  it('says so when a process ends before it listens', async () => {
    cluster = new Cluster({ partitions: -1, minInSync: 2, sessionTimeoutMs: NaN });
    const starting = cluster.start();
    await cluster.processes[0]?.kill();

    await expect(starting).rejects.toThrow('leader ended before it listened, with SIGKILL');
  });
});
