import { SystemTimer, type TimerSnapshot } from 'escapement';
import { CountingClock } from './server/counting-clock.ts';
import { DeadlineServer } from './server/deadline-server.ts';
import type { DemoResult } from './demo-result.ts';
import { LoadProcess } from './load/load-process.ts';
import { LoadSampler } from './server/load-sampler.ts';
import { shareAbove } from './server/lognormal.ts';
import { SERVICE_TIME, type DemoOptions } from './options.ts';
import { ascending } from './quantile.ts';

/** What a run shows while it lasts. */
export interface Progress {
  readonly elapsedMs: number;
  readonly requests: number;
  readonly timedOut: number;
  readonly snapshot: TimerSnapshot;
}

/** Starts the server and its clients, and measures until the last answer. Leaves nothing open. */
export async function runDemo(
  options: DemoOptions,
  interrupted: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<DemoResult> {
  const clock = new CountingClock();
  const timer = new SystemTimer({ name: 'request-deadlines', clock });
  const server = new DeadlineServer({
    timer,
    clock,
    timeoutMs: options.timeoutMs,
    serviceTime: SERVICE_TIME,
  });
  try {
    const load = new LoadProcess({ ...options, port: await server.listen() });
    interrupted.addEventListener('abort', () => {
      load.stop();
    });
    if (interrupted.aborted) load.stop();
    await load.started;
    const sampler = new LoadSampler(timer, server, (snapshot, elapsedMs) => {
      onProgress({ elapsedMs, requests: server.requests, timedOut: server.timedOut, snapshot });
    });
    const costs = await measureCosts(load).finally(() => {
      sampler.stop();
    });
    // Clients that hung up are noticed by now.
    await server.close();
    return {
      options,
      isInterrupted: interrupted.aborted,
      expectedShare: shareAbove(SERVICE_TIME, options.timeoutMs),
      ...countsOf(server),
      ...costs,
      wakeUps: clock.wakeUps,
      leftInTimer: timer.size,
      peakRssBytes: sampler.peakRssBytes,
      samples: sampler.samples,
      peak: sampler.fullest,
    };
  } finally {
    await server.close();
    timer.close();
  }
}

type Counts = Pick<
  DemoResult,
  'requests' | 'answered' | 'timedOut' | 'abandoned' | 'connections' | 'peakInFlight' | 'latenessMs'
>;

function countsOf(server: DeadlineServer): Counts {
  const { requests, answered, timedOut, abandoned, connections, peakInFlight } = server;
  const latenessMs = ascending(server.latenessMs);
  return { requests, answered, timedOut, abandoned, connections, peakInFlight, latenessMs };
}

type Costs = Pick<DemoResult, 'load' | 'cpuUserMs' | 'cpuSystemMs' | 'elapsedMs' | 'loopBusy'>;

/** What the load costs this process, which is the server's. */
async function measureCosts(loadProcess: LoadProcess): Promise<Costs> {
  const startMs = performance.now();
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  const load = await loadProcess.result;
  const { user, system } = process.cpuUsage(cpu);
  return {
    load,
    cpuUserMs: user / 1_000,
    cpuSystemMs: system / 1_000,
    elapsedMs: performance.now() - startMs,
    loopBusy: performance.eventLoopUtilization(loop).utilization,
  };
}
