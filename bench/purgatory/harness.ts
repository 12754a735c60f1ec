/**
 * Kafka's `TestPurgatoryPerformance` in one thread, with the meaning it had in Scala: a request completes when its
 * own latency is over. (The Java port of 2024 waits for the timeout instead.)
 *
 *      arrivals, exponential ──► send ──► purgatory ──► timeout ──► expired
 *                                  │          ▲
 *            latency < timeout ──► heap ──► forceComplete, or checkAndComplete(key)
 *
 * WHY one thread: Kafka has a generator, a completion thread and a reaper beside the purgatory; here all of it is
 * the load of one event loop. Every turn delivers the completions that are due, then sends the requests that have
 * arrived, and sleeps until there is more. It never leaves a request out: whoever is slow falls behind.
 */
import { monitorEventLoopDelay, performance, type IntervalHistogram } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { liveBytes } from '../lib/heap-size.ts';
import { CompletionQueue } from './completion-queue.ts';
import type { HarnessKind, HarnessPurgatory } from './harness-purgatories.ts';
import { Tally } from './tally.ts';
import { expiredShareInTheory, RequestStream, toleratedShare, type Workload } from './workload.ts';

/** A request that has not completed so long after its timeout never will. */
const GRACE_MS = 5_000;
/** How often the event loop is looked at. The histogram counts it in, so it is taken off. */
const LOOP_RESOLUTION_MS = 1;
const NS_PER_MS = 1e6;
const US_PER_MS = 1_000;
const MS_PER_S = 1_000;

export interface HarnessResult {
  /** From the start until the last request has completed. */
  readonly elapsedMs: number;
  /** Requests a second that the arrivals drawn ask for, and those that were sent. */
  readonly targetRatePerS: number;
  readonly actualRatePerS: number;
  /** User and system time of the process. */
  readonly cpuMs: number;
  readonly loopDelayP99Ms: number;
  /** The most that the heap ever held, garbage included. */
  readonly peakHeapBytes: number;
  /** What is alive when every request has completed, beyond what was before the first. */
  readonly leftBytes: number;
  /** Watch entries of requests that had completed already, on average over the turns until all were sent. */
  readonly deadEntries: number;
  readonly expiredShare: number;
  readonly expiredInTheory: number;
  /** Of those that expired, who should have completed: the event loop came to them after their timeout. */
  readonly lateShare: number;
  /** What is wrong, or undefined. A machine too slow, or too busy, is not: that shows in the share that was late. */
  readonly problem: string | undefined;
}

/** @param onDone - called when the last request has completed, before anything is looked at. */
export async function runHarness(
  workload: Workload,
  kind: HarnessKind,
  onDone: () => void = () => undefined,
): Promise<HarnessResult> {
  const { num, timeoutMs } = workload.options;
  const run = new HarnessRun(workload);
  const before = await liveBytes();
  const purgatory = kind.open(timeoutMs, run.tally);
  try {
    const measured = await run.measure(purgatory);
    onDone();
    const leftBytes = (await liveBytes()) - before;
    const expiredShare = run.tally.expired / num;
    const lateShare = run.late / num;
    const expiredInTheory = expiredShareInTheory(workload.options);
    const problem =
      run.tally.check() ??
      (kind.isExact ? run.checkEntries(purgatory) : undefined) ??
      checkShare(expiredShare - lateShare, expiredInTheory, num);
    return { ...measured, leftBytes, expiredShare, expiredInTheory, lateShare, problem };
  } finally {
    purgatory.close();
  }
}

/** What is wrong with the share of requests that expired. */
export function checkShare(actual: number, theory: number, requests: number): string | undefined {
  const tolerated = toleratedShare(theory, requests);
  if (Math.abs(actual - theory) <= tolerated) return undefined;
  return `${percent(actual)} expired; ${percent(theory)} should, give or take ${percent(tolerated)}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

type Measured = Pick<
  HarnessResult,
  | 'elapsedMs'
  | 'targetRatePerS'
  | 'actualRatePerS'
  | 'cpuMs'
  | 'loopDelayP99Ms'
  | 'peakHeapBytes'
  | 'deadEntries'
>;

class HarnessRun {
  readonly tally: Tally;
  readonly #workload: Workload;
  readonly #stream: RequestStream;
  readonly #completions = new CompletionQueue();
  #finish: () => void = () => undefined;
  #timeout: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #startMs = 0;
  #sentAllAtMs = Number.NaN;
  #peakHeapBytes = 0;
  #turns = 0;
  #deadSum = 0;
  #inexactTurns = 0;

  constructor(workload: Workload) {
    this.#workload = workload;
    this.#stream = new RequestStream(workload);
    this.tally = new Tally(workload.options.num, () => {
      this.#finish();
    });
  }

  get late(): number {
    return this.#completions.late;
  }

  async measure(purgatory: HarnessPurgatory): Promise<Measured> {
    const loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
    loopDelay.enable();
    const cpuBefore = process.cpuUsage();
    this.#startMs = performance.now();
    await new Promise<void>((resolve) => {
      this.#finish = resolve;
      this.#turn(purgatory);
    });
    const elapsedMs = performance.now() - this.#startMs;
    const { user, system } = process.cpuUsage(cpuBefore);
    loopDelay.disable();
    this.#stop();
    const { num } = this.#workload.options;
    return {
      elapsedMs,
      targetRatePerS: (num * MS_PER_S) / this.#stream.lastArrivalMs,
      actualRatePerS: (num * MS_PER_S) / (this.#sentAllAtMs - this.#startMs),
      cpuMs: (user + system) / US_PER_MS,
      loopDelayP99Ms: delayAt(loopDelay, 99),
      peakHeapBytes: this.#peakHeapBytes,
      deadEntries: this.#deadSum / Math.max(1, this.#turns),
    };
  }

  /** For a purgatory that keeps none of the dead: it has never had one, nor forgotten one of the living. */
  checkEntries({ watched }: HarnessPurgatory): string | undefined {
    if (this.#inexactTurns > 0)
      return `${this.#inexactTurns} times there were too many watch entries or too few`;
    return watched === 0 ? undefined : `${watched} watch entries are left`;
  }

  #turn(purgatory: HarnessPurgatory): void {
    const nowMs = performance.now();
    this.#complete(purgatory, nowMs);
    this.#send(purgatory, nowMs - this.#startMs);
    this.#sample(purgatory);
    this.#scheduleTurn(purgatory);
  }

  #complete(purgatory: HarnessPurgatory, nowMs: number): void {
    if (this.#workload.options.completeBy === 'force') {
      this.#completions.deliver(nowMs, (request) => request.forceComplete());
    } else {
      this.#completions.deliver(nowMs, (_, key) => purgatory.checkAndComplete(key));
    }
  }

  #send(purgatory: HarnessPurgatory, elapsedMs: number): void {
    const stream = this.#stream;
    const { timeoutMs } = this.#workload.options;
    while (stream.arrivesAtMs <= elapsedMs) {
      const keys = stream.takeKeys();
      const { latencyMs } = stream;
      const request = purgatory.send(stream.taken, latencyMs, keys);
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

  #sample(purgatory: HarnessPurgatory): void {
    if (!this.#isAllSent) {
      const waiting = this.#stream.taken - this.tally.completed;
      const dead = purgatory.watched - waiting * this.#workload.options.keys;
      if (dead !== 0) this.#inexactTurns++;
      this.#deadSum += dead;
      this.#turns++;
    }
    this.#peakHeapBytes = Math.max(this.#peakHeapBytes, getHeapStatistics().used_heap_size);
  }

  #scheduleTurn(purgatory: HarnessPurgatory): void {
    const nextAtMs = Math.min(this.#startMs + this.#stream.arrivesAtMs, this.#completions.nextAtMs);
    const waitMs = nextAtMs - performance.now();
    if (waitMs === Number.POSITIVE_INFINITY) this.#giveUpLater();
    else if (waitMs <= 0) this.#immediate = setImmediate(() => { this.#turn(purgatory); }); // prettier-ignore
    else this.#timeout = setTimeout(() => { this.#turn(purgatory); }, Math.ceil(waitMs)); // prettier-ignore
  }

  /** Nothing is left to do but to wait for timeouts. */
  #giveUpLater(): void {
    this.#timeout = setTimeout(this.#finish, this.#workload.options.timeoutMs + GRACE_MS);
  }

  #stop(): void {
    clearTimeout(this.#timeout);
    clearImmediate(this.#immediate);
  }
}

function delayAt(loopDelay: IntervalHistogram, percentile: number): number {
  return Math.max(0, loopDelay.percentile(percentile) / NS_PER_MS - LOOP_RESOLUTION_MS);
}
