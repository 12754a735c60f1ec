/**
 * Kafka's `TestPurgatoryPerformance` in one thread, as its Scala version defined it: a request completes at the end of
 * its own latency. (The Java port of 2024 waits for the timeout instead.)
 *
 *      arrivals, exponential ──► send ──► purgatory ──► timeout ──► expired
 *                                  │          ▲
 *            latency < timeout ──► heap ──► forceComplete
 *
 * WHY one thread: Kafka has a generator, a completion thread and a reaper beside the purgatory; here one event loop
 * does all of it. Every turn delivers the completions that are due, then sends the requests that have arrived, and
 * sleeps until the next. It skips no request: a slow contestant falls behind.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import TinyQueue from 'tinyqueue';
import { forceCollection } from '../lib/collector.ts';
import { closing } from '../lib/folder.ts';
import { spentBy } from '../lib/machine.ts';
import { expectCount, MS_PER_S, NS_PER_MS, US_PER_MS } from '../lib/part.ts';
import { RequestTally, type HarnessRequest, type Purgatory } from './operations.ts';
import type { PurgatoryKind } from './purgatories.ts';
import { expiredShareInTheory, type Workload } from './workload.ts';

/** A request that has not completed this long after its timeout is lost. */
const GRACE_MS = 5_000;
/** Interval at which the event loop is sampled. The histogram includes it, so it is subtracted. */
const LOOP_RESOLUTION_MS = 1;

export interface HarnessResult {
  /** Time from the start until the last request has completed. */
  readonly elapsedMs: number;
  /** Requests a second as drawn, and as sent. */
  readonly targetRatePerS: number;
  readonly actualRatePerS: number;
  /** User and system time of the process. */
  readonly cpuMs: number;
  readonly loopDelayP99Ms: number;
  /** Largest size of the heap, garbage included. */
  readonly peakHeapBytes: number;
  /** Watch entries of completed requests, the mean over the turns until all were sent. */
  readonly deadEntries: number;
  readonly expiredShare: number;
  readonly expiredInTheory: number;
  /** Share of requests that expired although their latency was shorter: the event loop was late. */
  readonly lateShare: number;
  /** Failed self-check. A machine that is too slow fails none: that shows in the late share. */
  readonly problem: string | undefined;
}

export function runHarness(workload: Workload, kind: PurgatoryKind): Promise<HarnessResult> {
  forceCollection();
  return closing(kind.newPurgatory(), (purgatory) => sendAll(workload, kind, purgatory));
}

/** Half a percentage point. */
const SHARE_TOLERANCE = 0.005;
/** For short runs: one in sixteen thousand deviates by more standard deviations by chance. */
const DEVIATIONS = 4;

/** Compares the share of requests that expired with theory. @returns the problem, or undefined. */
export function checkShare(actual: number, theory: number, requests: number): string | undefined {
  const byChance = DEVIATIONS * Math.sqrt((theory * (1 - theory)) / requests);
  const tolerated = Math.max(SHARE_TOLERANCE, byChance);
  if (Math.abs(actual - theory) <= tolerated) return undefined;
  return `${percent(actual)} expired; ${percent(theory)} should, give or take ${percent(tolerated)}`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

interface Scheduled {
  readonly request: HarnessRequest;
  readonly expiresAtMs: number;
}

/** Completions by time in a heap, as the `DelayQueue` of Kafka's harness. */
export class CompletionQueue {
  readonly #queue = new TinyQueue<Scheduled>([], (a, b) => a.request.completesAtMs - b.request.completesAtMs);

  /** Number of delivered requests that had expired, because they were delivered after their timeout. */
  late = 0;

  add(request: HarnessRequest, expiresAtMs: number): void {
    this.#queue.push({ request, expiresAtMs });
  }

  /** Time of the first completion; `Infinity` if there is none. */
  get nextAtMs(): number {
    return this.#queue.peek()?.request.completesAtMs ?? Number.POSITIVE_INFINITY;
  }

  /** Completes and removes all that are due until `nowMs`, earliest first. */
  deliver(nowMs: number): void {
    while (this.nextAtMs <= nowMs) {
      const { request, expiresAtMs } = this.#queue.pop() as Scheduled;
      request.forceComplete();
      if (request.hasExpired && expiresAtMs <= nowMs) this.late++;
    }
  }
}

async function sendAll(
  { options, arrivalsMs, latenciesMs, keys }: Workload,
  { classes: { Request }, isExact }: PurgatoryKind,
  purgatory: Purgatory,
): Promise<HarnessResult> {
  const { num, timeoutMs } = options;
  const tally = new RequestTally(num);
  const completions = new CompletionQueue();
  let timeout: NodeJS.Timeout | undefined;
  let immediate: NodeJS.Immediate | undefined;
  let sent = 0;
  let sentAllAtMs = Number.NaN;
  let peakHeapBytes = 0;
  let turns = 0;
  let deadSum = 0;
  let inexactTurns = 0;
  const nextArrivalMs = (): number => arrivalsMs[sent] ?? Number.POSITIVE_INFINITY;

  const send = (elapsedMs: number): void => {
    for (; nextArrivalMs() <= elapsedMs; sent++) {
      const latencyMs = latenciesMs[sent] as number;
      const request = new Request(sent, latencyMs, timeoutMs, tally);
      purgatory.tryCompleteElseWatch(request, keys);
      if (latencyMs < timeoutMs) completions.add(request, request.completesAtMs - latencyMs + timeoutMs);
    }
    if (Number.isNaN(sentAllAtMs) && sent === num) sentAllAtMs = performance.now();
  };

  const sample = (): void => {
    peakHeapBytes = Math.max(peakHeapBytes, getHeapStatistics().used_heap_size);
    if (sent === num) return;
    const dead = purgatory.watched - (sent - tally.completed) * keys.length;
    if (dead !== 0) inexactTurns++;
    deadSum += dead;
    turns++;
  };

  const turn = (): void => {
    const nowMs = performance.now();
    completions.deliver(nowMs);
    send(nowMs - startMs);
    sample();
    const waitMs = Math.min(startMs + nextArrivalMs(), completions.nextAtMs) - performance.now();
    // When all requests are sent and no completion is due, the rest expires.
    if (waitMs === Infinity) timeout = setTimeout(tally.finish, timeoutMs + GRACE_MS);
    else if (waitMs <= 0) immediate = setImmediate(turn);
    else timeout = setTimeout(turn, Math.ceil(waitMs));
  };

  const loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loopDelay.enable();
  const startMs = performance.now();
  const { elapsedMs, cpuUs } = await spentBy(() => {
    turn();
    return tally.finished;
  });
  loopDelay.disable();
  clearTimeout(timeout);
  clearImmediate(immediate);
  // If the loop was late, the last requests have expired before the turn that would have completed them.
  completions.deliver(performance.now());
  const [expiredShare, lateShare] = [tally.expired / num, completions.late / num];
  const expiredInTheory = expiredShareInTheory(options);
  const wrongEntries =
    expectCount(inexactTurns, 0, 'times there were too many watch entries or too few') ??
    expectCount(purgatory.watched, 0, 'watch entries are left');
  return {
    elapsedMs,
    targetRatePerS: (num * MS_PER_S) / (arrivalsMs[num - 1] as number),
    actualRatePerS: (num * MS_PER_S) / (sentAllAtMs - startMs),
    cpuMs: cpuUs / US_PER_MS,
    loopDelayP99Ms: Math.max(0, loopDelay.percentile(99) / NS_PER_MS - LOOP_RESOLUTION_MS),
    peakHeapBytes,
    deadEntries: deadSum / Math.max(1, turns),
    ...{ expiredShare, expiredInTheory, lateShare },
    problem:
      tally.check() ??
      (isExact ? wrongEntries : undefined) ??
      checkShare(expiredShare - lateShare, expiredInTheory, num),
  };
}
