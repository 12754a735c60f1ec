import { setTimeout as sleep } from 'node:timers/promises';
import { Traffic } from './clients/traffic.ts';
import type { ExampleResult, FollowerCopy, Outage } from './example-result.ts';
import { machineNowMs } from './machine-clock.ts';
import type { ExampleOptions } from './options.ts';
import { FOLLOWERS, type Cluster } from './processes/cluster.ts';
import { StatusSampler } from './status-sampler.ts';
import type { LeaderStatus } from './wire.ts';

const [VICTIM] = FOLLOWERS;
const REPLICAS = 1 + FOLLOWERS.length;
/** Of the duration. */
const KILLED_AT = 0.35;
const RESTARTED_AT = 0.7;

/** Told of what happens, while it does. */
export interface Observer {
  event(text: string): void;
  status(status: LeaderStatus): void;
}

/** What the steps of a run share. */
interface Run {
  readonly cluster: Cluster;
  readonly options: ExampleOptions;
  readonly signal: AbortSignal;
  readonly observer: Observer;
}

/** Starts a cluster, sends it traffic, and breaks it meanwhile. Rejects when interrupted. Stop the cluster afterwards. */
export async function runExample(run: Run): Promise<ExampleResult> {
  const { cluster } = run;
  await cluster.start();
  const failed = new AbortController();
  void cluster.leaderEnd.then((how) => {
    failed.abort(new Error(`the leader ended meanwhile, with ${how}`));
  });
  try {
    return await withTraffic({ ...run, signal: AbortSignal.any([run.signal, failed.signal]) });
  } catch (error) {
    failed.signal.throwIfAborted();
    throw error;
  }
}

async function withTraffic(run: Run): Promise<ExampleResult> {
  const { cluster, options, signal, observer } = run;
  await cluster.inSyncIs(REPLICAS, signal);
  observer.event(`in sync: ${cluster.processes.map(({ name, pid }) => `${name} (pid ${pid})`).join(', ')}`);
  const traffic = new Traffic(await cluster.leaderPort, options);
  const hangUp = (): void => {
    traffic.close();
  };
  signal.addEventListener('abort', hangUp);
  const sampler = new StatusSampler(cluster, (status) => {
    observer.status(status);
  });
  try {
    traffic.start();
    const [outage] = await Promise.all([breakAndMend(run), sleep(options.durationMs, undefined, { signal })]);
    await traffic.stopProducing();
    observer.event('producers have their answers; consumers read to the end');
    await sampler.stop();
    return { ...(await settle(run, traffic)), outage, mostWatched: sampler.mostWatched };
  } finally {
    signal.removeEventListener('abort', hangUp);
    await sampler.stop();
    traffic.close();
  }
}

/** The follower gets no chance to say goodbye: its session must expire. */
async function breakAndMend({ cluster, options, signal, observer }: Run): Promise<Outage> {
  await sleep(options.durationMs * KILLED_AT, undefined, { signal });
  const victim = cluster.follower(VICTIM);
  const killedAtMs = machineNowMs();
  const end = await victim.kill();
  observer.event(
    `${VICTIM} (pid ${victim.pid}) killed: ${String(end.signal)}; what it has not yet copied waits`,
  );
  await cluster.inSyncIs(REPLICAS - 1, signal);
  const droppedAfterMs = machineNowMs() - killedAtMs;
  observer.event(
    `session of ${VICTIM} expired after ${droppedAfterMs.toFixed(0)} ms: what waited for it completes`,
  );
  const restInMs = options.durationMs * (RESTARTED_AT - KILLED_AT) - droppedAfterMs;
  await sleep(Math.max(restInMs, 0), undefined, { signal });
  const restartedAtMs = machineNowMs();
  const { pid } = await cluster.startFollower(VICTIM);
  observer.event(`${VICTIM} started again (pid ${pid}), with an empty log`);
  await cluster.inSyncIs(REPLICAS, signal);
  const rejoinedAfterMs = machineNowMs() - restartedAtMs;
  observer.event(
    `${VICTIM} has caught up and is in sync again, ${rejoinedAfterMs.toFixed(0)} ms after its start`,
  );
  return { member: VICTIM, end, droppedAfterMs, rejoinedAfterMs };
}

/** Lets everybody finish, one after the other, and looks at what is left. */
async function settle(
  { cluster, options, signal, observer }: Run,
  traffic: Traffic,
): Promise<Omit<ExampleResult, 'outage' | 'mostWatched'>> {
  await cluster.inSyncIs(REPLICAS, signal);
  const ends = (await cluster.status(signal)).partitions.map(({ logEnd }) => logEnd);
  await traffic.finishConsuming(ends);
  const logs = await traffic.readAll(ends);
  const copies = await Promise.all(FOLLOWERS.map((member) => copyOf(cluster, member)));
  await cluster.stopFollowers();
  observer.event('consumers and followers have finished');
  const { load, consumers } = traffic;
  const { counts, acks, latenciesMs, namedBehind } = load;
  const afterwards = await cluster.status(signal);
  return {
    options,
    minInSync: cluster.minInSync,
    counts,
    acks,
    latenciesMs: latenciesMs.toSorted((a, b) => a - b),
    namedBehind,
    logs,
    consumers,
    copies,
    afterwards,
  };
}

async function copyOf(cluster: Cluster, member: (typeof FOLLOWERS)[number]): Promise<FollowerCopy> {
  const { startedAtMs } = cluster.follower(member);
  return { member, startedAtMs, partitions: await cluster.copies(member) };
}
