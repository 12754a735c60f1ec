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
import { monitorEventLoopDelay, performance, type IntervalHistogram } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import TinyQueue from 'tinyqueue';
import { cpuUsSince } from '../lib/machine.ts';
import { liveBytes } from '../lib/memory.ts';
import { NS_PER_MS, US_PER_MS } from '../lib/part.ts';
import { Tally, type HarnessRequest, type OperationClasses, type Purgatory } from './operations.ts';
import type { PurgatoryKind } from './purgatories.ts';
import { expiredShareInTheory, RequestStream, toleratedShare, type Workload } from './workload.ts';

/** A request that has not completed this long after its timeout is lost. */
const GRACE_MS = 5_000;
/** Interval at which the event loop is sampled. The histogram includes it, so it is subtracted. */
const LOOP_RESOLUTION_MS = 1;
const MS_PER_S = 1_000;

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
  const tally = new Tally(num);
  const before = await liveBytes();
  const purgatory = kind.newPurgatory();
  const run = new HarnessRun(workload, tally, kind.classes.Request, purgatory);
  try {
    const measured = await run.measure();
    onDone();
    const leftBytes = (await liveBytes()) - before;
    const expiredShare = tally.expired / num;
    const lateShare = run.late / num;
    const expiredInTheory = expiredShareInTheory(workload.options);
    const problem =
      tally.check() ??
      (kind.isExact ? run.checkEntries() : undefined) ??
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

type Measured = Omit<
  HarnessResult,
  'leftBytes' | 'expiredShare' | 'expiredInTheory' | 'lateShare' | 'problem'
>;

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
  deliver(nowMs: number, complete: (request: HarnessRequest, key: string) => void): void {
    for (let next = this.#queue.peek(); next !== undefined && next.atMs <= nowMs; next = this.#queue.peek()) {
      this.#queue.pop();
      complete(next.request, next.key);
      if (next.request.hasExpired && next.expiresAtMs <= nowMs) this.late++;
    }
  }
}

class HarnessRun {
  readonly #workload: Workload;
  readonly #tally: Tally;
  readonly #Request: OperationClasses['Request'];
  readonly #purgatory: Purgatory;
  readonly #stream: RequestStream;
  readonly #completions = new CompletionQueue();
  #timeout: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #startMs = 0;
  #sentAllAtMs = Number.NaN;
  #peakHeapBytes = 0;
  #turns = 0;
  #deadSum = 0;
  #inexactTurns = 0;

  constructor(workload: Workload, tally: Tally, Request: OperationClasses['Request'], purgatory: Purgatory) {
    this.#workload = workload;
    this.#tally = tally;
    this.#Request = Request;
    this.#purgatory = purgatory;
    this.#stream = new RequestStream(workload);
  }

  get late(): number {
    return this.#completions.late;
  }

  async measure(): Promise<Measured> {
    const loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
    loopDelay.enable();
    const cpuBefore = process.cpuUsage();
    this.#startMs = performance.now();
    await new Promise<void>((resolve) => {
      this.#tally.onAllDone = resolve;
      this.#turn();
    });
    const elapsedMs = performance.now() - this.#startMs;
    const cpuMs = cpuUsSince(cpuBefore) / US_PER_MS;
    loopDelay.disable();
    this.#stop();
    // If the loop was late, the last requests have expired before the turn that would have completed them.
    this.#completions.deliver(performance.now(), () => undefined);
    const { num } = this.#workload.options;
    return {
      elapsedMs,
      targetRatePerS: (num * MS_PER_S) / this.#stream.lastArrivalMs,
      actualRatePerS: (num * MS_PER_S) / (this.#sentAllAtMs - this.#startMs),
      cpuMs,
      loopDelayP99Ms: delayAt(loopDelay, 99),
      peakHeapBytes: this.#peakHeapBytes,
      deadEntries: this.#deadSum / Math.max(1, this.#turns),
    };
  }

  /** For exact purgatories: at every turn the number of watch entries was that of the pending requests. */
  checkEntries(): string | undefined {
    const { watched } = this.#purgatory;
    if (this.#inexactTurns > 0)
      return `${this.#inexactTurns} times there were too many watch entries or too few`;
    return watched === 0 ? undefined : `${watched} watch entries are left`;
  }

  readonly #turn = (): void => {
    const nowMs = performance.now();
    this.#complete(nowMs);
    this.#send(nowMs - this.#startMs);
    this.#sample();
    this.#scheduleTurn();
  };

  #complete(nowMs: number): void {
    if (this.#workload.options.completeBy === 'force') {
      this.#completions.deliver(nowMs, (request) => request.forceComplete());
    } else {
      this.#completions.deliver(nowMs, (_, key) => this.#purgatory.checkAndComplete(key));
    }
  }

  #send(elapsedMs: number): void {
    const purgatory = this.#purgatory;
    const Request = this.#Request;
    const stream = this.#stream;
    const { timeoutMs } = this.#workload.options;
    while (stream.arrivesAtMs <= elapsedMs) {
      const keys = stream.takeKeys();
      const { latencyMs } = stream;
      const request = new Request(stream.taken, latencyMs, timeoutMs, this.#tally);
      purgatory.tryCompleteElseWatch(request, keys);
      if (latencyMs < timeoutMs) {
        this.#completions.add(request, keys[0] as string, request.completesAtMs - latencyMs + timeoutMs);
      }
      stream.advance();
    }
    if (Number.isNaN(this.#sentAllAtMs) && this.#isAllSent) this.#sentAllAtMs = performance.now();
  }

  get #isAllSent(): boolean {
    return this.#stream.arrivesAtMs === Number.POSITIVE_INFINITY;
  }

  #sample(): void {
    if (!this.#isAllSent) {
      const waiting = this.#stream.taken - this.#tally.completed;
      const dead = this.#purgatory.watched - waiting * this.#workload.options.keys;
      if (dead !== 0) this.#inexactTurns++;
      this.#deadSum += dead;
      this.#turns++;
    }
    this.#peakHeapBytes = Math.max(this.#peakHeapBytes, getHeapStatistics().used_heap_size);
  }

  #scheduleTurn(): void {
    const nextAtMs = Math.min(this.#startMs + this.#stream.arrivesAtMs, this.#completions.nextAtMs);
    const waitMs = nextAtMs - performance.now();
    if (waitMs === Number.POSITIVE_INFINITY) this.#giveUpLater();
    else if (waitMs <= 0) this.#immediate = setImmediate(this.#turn);
    else this.#timeout = setTimeout(this.#turn, Math.ceil(waitMs));
  }

  /** All requests are sent and no completion is due: the rest expires. */
  #giveUpLater(): void {
    this.#timeout = setTimeout(this.#tally.onAllDone, this.#workload.options.timeoutMs + GRACE_MS);
  }

  #stop(): void {
    clearTimeout(this.#timeout);
    clearImmediate(this.#immediate);
  }
}

function delayAt(loopDelay: IntervalHistogram, percentile: number): number {
  return Math.max(0, loopDelay.percentile(percentile) / NS_PER_MS - LOOP_RESOLUTION_MS);
}
