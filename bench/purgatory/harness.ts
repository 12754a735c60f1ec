/**
 * Kafka's `TestPurgatoryPerformance` in one thread, as its Scala version defined it: a request completes at the end of
 * its own latency. (The Java port of 2024 waits for the timeout instead.)
 *
 *      arrivals, exponential ──► send ──► purgatory ──► timeout ──► expired
 *                                  │          ▲
 *            latency < timeout ──► heap ──► forceComplete, or checkAndComplete(key)
 *
 * WHY one thread: Kafka has a generator, a completion thread and a reaper beside the purgatory; here one event loop
 * does all of it. Every turn delivers the completions that are due, then sends the requests that have arrived, and
 * sleeps until the next. It skips no request: a slow contestant falls behind.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import TinyQueue from 'tinyqueue';
import { spentBy } from '../lib/machine.ts';
import { liveBytes } from '../lib/memory.ts';
import { expectCount, MS_PER_S, NS_PER_MS, US_PER_MS } from '../lib/part.ts';
import { RequestTally, type HarnessRequest, type OperationClasses, type Purgatory } from './operations.ts';
import type { PurgatoryKind } from './purgatories.ts';
import {
  expiredShareInTheory,
  RequestStream,
  toleratedShare,
  type CompleteBy,
  type Workload,
} from './workload.ts';

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
  /** Live bytes after the last request has completed, minus those before the first. */
  readonly leftBytes: number;
  /** Watch entries of completed requests, the mean over the turns until all were sent. */
  readonly deadEntries: number;
  readonly expiredShare: number;
  readonly expiredInTheory: number;
  /** Share of requests that expired although their latency was shorter: the event loop was late. */
  readonly lateShare: number;
  /** Failed self-check. A machine that is too slow fails none: that shows in the late share. */
  readonly problem: string | undefined;
}

/** @param onDone - called when the last request has completed, before memory is measured. */
export async function runHarness(
  workload: Workload,
  kind: PurgatoryKind,
  onDone: () => void = () => undefined,
): Promise<HarnessResult> {
  const { num, completeBy } = workload.options;
  const tally = new RequestTally(num);
  const before = await liveBytes();
  const purgatory = kind.newPurgatory();
  try {
    const { late, inexactTurns, ...measured } = await sendAll(
      workload,
      tally,
      kind.classes.Request,
      purgatory,
    );
    onDone();
    const leftBytes = (await liveBytes()) - before;
    const expiredShare = tally.expired / num;
    const lateShare = late / num;
    const expiredInTheory = expiredShareInTheory(workload.options);
    const entries =
      expectCount(inexactTurns, 0, 'times there were too many watch entries or too few') ??
      expectCount(purgatory.watched, 0, 'watch entries are left');
    const problem =
      tally.check() ??
      (kind.isExact ? entries : undefined) ??
      checkShare(expiredShare - lateShare, expiredInTheory, num, completeBy === 'check' ? lateShare : 0);
    return { ...measured, leftBytes, expiredShare, expiredInTheory, lateShare, problem };
  } finally {
    purgatory.close();
  }
}

/**
 * Compares the share of requests that expired with theory.
 *
 * @param rescued - the largest share of requests that may have completed although they should expire: when the loop is late, the check
 * of another request with the same key may come before the timeout.
 * @returns the problem, or undefined.
 */
export function checkShare(
  actual: number,
  theory: number,
  requests: number,
  rescued = 0,
): string | undefined {
  const tolerated = toleratedShare(theory, requests) + (actual < theory ? rescued : 0);
  if (Math.abs(actual - theory) <= tolerated) return undefined;
  return `${percent(actual)} expired; ${percent(theory)} should, give or take ${percent(tolerated)}`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

interface Scheduled {
  readonly atMs: number;
  readonly request: HarnessRequest;
  readonly key: string;
  readonly expiresAtMs: number;
}

/** Completions by time in a heap, as the `DelayQueue` of Kafka's harness. */
export class CompletionQueue {
  readonly #queue = new TinyQueue<Scheduled>([], (a, b) => a.atMs - b.atMs);

  /** Number of delivered requests that had expired, because they were delivered after their timeout. */
  late = 0;

  /** @param key - one of the keys of the request. */
  add(request: HarnessRequest, key: string, expiresAtMs: number): void {
    this.#queue.push({ atMs: request.completesAtMs, request, key, expiresAtMs });
  }

  /** Time of the first completion; `Infinity` if there is none. */
  get nextAtMs(): number {
    return this.#queue.peek()?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Removes all that complete until `nowMs`, earliest first. */
  deliver(nowMs: number, complete: (request: HarnessRequest, key: string) => unknown): void {
    for (let next = this.#queue.peek(); next !== undefined && next.atMs <= nowMs; next = this.#queue.peek()) {
      this.#queue.pop();
      complete(next.request, next.key);
      if (next.request.hasExpired && next.expiresAtMs <= nowMs) this.late++;
    }
  }
}

interface Sent extends Omit<
  HarnessResult,
  'leftBytes' | 'expiredShare' | 'expiredInTheory' | 'lateShare' | 'problem'
> {
  /** Number of requests that expired because the event loop was late. */
  readonly late: number;
  /** Number of turns after which the watch entries were not those of the pending requests. */
  readonly inexactTurns: number;
}

async function sendAll(
  workload: Workload,
  tally: RequestTally,
  Request: OperationClasses['Request'],
  purgatory: Purgatory,
): Promise<Sent> {
  const { num, keys: keysEach, timeoutMs, completeBy } = workload.options;
  const stream = new RequestStream(workload);
  const completions = new CompletionQueue();
  const [complete, isAllSent] = [completerOf(completeBy, purgatory), () => stream.arrivesAtMs === Infinity];
  let timeout: NodeJS.Timeout | undefined;
  let immediate: NodeJS.Immediate | undefined;
  let sentAllAtMs = Number.NaN;
  let peakHeapBytes = 0;
  let turns = 0;
  let deadSum = 0;
  let inexactTurns = 0;

  const send = (elapsedMs: number): void => {
    while (stream.arrivesAtMs <= elapsedMs) {
      const keys = stream.takeKeys();
      const { latencyMs } = stream;
      const request = new Request(stream.taken, latencyMs, timeoutMs, tally);
      purgatory.tryCompleteElseWatch(request, keys);
      if (latencyMs < timeoutMs) {
        completions.add(request, keys[0] as string, request.completesAtMs - latencyMs + timeoutMs);
      }
      stream.advance();
    }
    if (Number.isNaN(sentAllAtMs) && isAllSent()) sentAllAtMs = performance.now();
  };

  const sample = (): void => {
    if (!isAllSent()) {
      const dead = purgatory.watched - (stream.taken - tally.completed) * keysEach;
      if (dead !== 0) inexactTurns++;
      deadSum += dead;
      turns++;
    }
    peakHeapBytes = Math.max(peakHeapBytes, getHeapStatistics().used_heap_size);
  };

  const turn = (): void => {
    const nowMs = performance.now();
    completions.deliver(nowMs, complete);
    send(nowMs - startMs);
    sample();
    const waitMs = Math.min(startMs + stream.arrivesAtMs, completions.nextAtMs) - performance.now();
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
  completions.deliver(performance.now(), () => undefined);
  return {
    elapsedMs,
    targetRatePerS: (num * MS_PER_S) / stream.lastArrivalMs,
    actualRatePerS: (num * MS_PER_S) / (sentAllAtMs - startMs),
    cpuMs: cpuUs / US_PER_MS,
    loopDelayP99Ms: Math.max(0, loopDelay.percentile(99) / NS_PER_MS - LOOP_RESOLUTION_MS),
    peakHeapBytes,
    deadEntries: deadSum / Math.max(1, turns),
    late: completions.late,
    inexactTurns,
  };
}

function completerOf(
  completeBy: CompleteBy,
  purgatory: Purgatory,
): (request: HarnessRequest, key: string) => unknown {
  if (completeBy === 'force') return (request) => request.forceComplete();
  return (_, key) => purgatory.checkAndComplete(key);
}
