/** Requests that expire: a million in one catch-up pump, and a hundred thousand over ten seconds of real time. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ManualClock, systemClock, SystemTimer } from 'escapement';
import { bulk, scenario, type BulkRun, type Scenario } from '../lib/kinds.ts';
import { cpuUsSince } from '../lib/machine.ts';
import { aside, atLeast, atMost, baseline, expectCount, metric, ours, rival, TIME } from '../lib/part.ts';
import { unable, US_PER_MS } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import type { Target } from '../lib/result.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { HeapTimer } from './heap-timer.ts';
import { expire, HEAP, HOST, reportTo, SCHEDULE, TASK, WHEEL } from './kinds.ts';
import type { ExpirationListener, RequestWheel } from './kinds.ts';
import { newRing, type Request, type TimerKind } from './ring.ts';

const MIN_DELAY_MS = 5_000;
const MAX_DELAY_MS = 65_000;
const CATCH_UP_AT_MS = 70_000;
const MOST_NS = 300;

/** Counts how often each request expired: each must, once. */
class Tally implements ExpirationListener {
  readonly #runs: Uint8Array;

  constructor(size: number) {
    this.#runs = new Uint8Array(size);
  }

  expired(id: number): void {
    this.#runs[id] = (this.#runs[id] ?? 0) + 1;
  }

  check(): string | undefined {
    const wrong = this.#runs.findIndex((runs) => runs !== 1);
    return wrong === -1 ? undefined : `request ${wrong} expired ${this.#runs[wrong] ?? 0} times`;
  }
}

/** Timers whose time the case moves. */
interface ManualTimers<Timers> {
  readonly timers: Timers;
  /** Moves the time, which runs nothing. */
  readonly advance?: (timeMs: number) => void;
  /** Runs what is due. */
  readonly run: () => unknown;
}

function catchUp<Timers, R extends Request<Timers>>(
  { Request: RequestOf, pending, close }: TimerKind<Timers, R>,
  make: () => ManualTimers<Timers>,
): (size: number) => BulkRun {
  return (size) => {
    const tally = new Tally(size);
    reportTo(tally);
    const { timers, advance, run } = make();
    const delays = new DelaySequence(MIN_DELAY_MS, MAX_DELAY_MS);
    for (let id = 0; id < size; id++) new RequestOf(id, timers, delays.next(), 0);
    advance?.(CATCH_UP_AT_MS);
    return {
      run,
      check: () => tally.check() ?? expectCount(pending(timers, [], undefined), 0, 'requests are pending'),
      close: () => close(timers, []),
    };
  };
}

function manualTimer(): ManualTimers<SystemTimer> {
  const clock = new ManualClock();
  const timers = new SystemTimer({ clock, autoStart: false });
  return {
    timers,
    advance: (timeMs) => clock.advance(timeMs),
    run: () => timers.poll(),
  };
}

function manualHeap(): ManualTimers<HeapTimer> {
  let nowMs = 0;
  const timers = new HeapTimer(() => nowMs, false);
  return {
    timers,
    advance: (timeMs) => {
      nowMs = timeMs;
    },
    run: () => timers.runDue(),
  };
}

function manualWheel(): ManualTimers<RequestWheel> {
  const timers = WHEEL.open();
  return {
    timers,
    run: () => timers.advance(CATCH_UP_AT_MS).forEach(expire),
  };
}

export const catchUpCase = bulk({
  name: 'expire all in one catch-up pump, delays 5–65 s',
  note: 'timer-wheel returns due requests bucket by bucket, not in order of time within the 1.024 s of a bucket.',
  size: { full: 1_000_000, quick: 100_000, of: 'timers' },
  contestants: [
    unable(
      'setTimeout',
      'its time cannot be set, and blocking a process for 65 s would measure something else',
    ),
    baseline('binary heap', catchUp(HEAP, manualHeap)),
    rival('timer-wheel', catchUp(WHEEL, manualWheel)),
    ours('ours: TimerTask', catchUp(TASK, manualTimer)),
    ours('ours: schedule', catchUp(SCHEDULE, manualTimer)),
  ],
  targets: [atMost('ours: TimerTask', TIME, MOST_NS), atMost('ours: schedule', TIME, MOST_NS)],
});

/** 100 000 over 10 s; a smoke run has the same rate. */
const TIMERS_PER_MS = 10;
/** Nothing is due while requests are being added: that would measure the adding. */
const MIN_DELAY_SHARE = 0.05;
/** A request that has not expired this long after the last deadline is lost. */
const GRACE_MS = 3_000;
/** As the documentation of timer-wheel advises. */
const WHEEL_ADVANCE_MS = 1_000;

const CPU = 'cpu';
const P99 = 'p99 lateness';
const EARLY = 'early';
const LOST = 'lost';
/** How much later than the host's p99 ours may be. */
const MOST_LATER_MS = 2;

/** Records when each request was due, and how late it expired, on the same clock for every contestant. */
class LatenessRecorder implements ExpirationListener {
  readonly #dueAtMs: Float64Array;
  readonly #latenessMs: Float64Array;
  readonly #size: number;
  #calls = 0;
  #twice = 0;
  #finish: () => void = () => undefined;
  /** Resolves when every request has expired. */
  readonly finished: Promise<void>;

  constructor(size: number) {
    this.#size = size;
    this.#dueAtMs = new Float64Array(size);
    this.#latenessMs = new Float64Array(size).fill(Number.NaN);
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Call it before the timer is added: the delay of a timer starts after this reading of the clock. */
  expect(id: number, delayMs: number): void {
    this.#dueAtMs[id] = performance.now() + delayMs;
  }

  expired(id: number): void {
    if (!Number.isNaN(this.#latenessMs[id])) this.#twice++;
    this.#latenessMs[id] = performance.now() - (this.#dueAtMs[id] ?? Number.NaN);
    if (++this.#calls === this.#size) this.#finish();
  }

  /** @param mayLose - whether lost requests are a result of this contestant, not a failure. */
  check(mayLose: boolean): string | undefined {
    if (this.#twice > 0) return `${this.#twice} requests expired twice`;
    if (this.#calls === this.#size || (mayLose && this.#calls > 0)) return undefined;
    return `${this.#calls} of ${this.#size} requests expired`;
  }

  values(): Record<string, number> {
    const sorted = this.#latenessMs.filter((ms) => !Number.isNaN(ms)).sort();
    return {
      'p50 lateness': quantileOfSorted(sorted, 0.5),
      [P99]: quantileOfSorted(sorted, 0.99),
      'max lateness': quantileOfSorted(sorted, 1),
      [EARLY]: sorted.filter((ms) => ms < 0).length,
      [LOST]: this.#size - sorted.length,
    };
  }
}

/** @param drive - advances timers that have no wake-up. @returns a function that stops it. */
function realTime<Timers, R extends Request<Timers>>(
  kind: TimerKind<Timers, R>,
  mayLose = false,
  drive?: (timers: Timers) => () => void,
): Scenario {
  return async (size) => {
    const durationMs = size / TIMERS_PER_MS;
    const delays = new DelaySequence(Math.ceil(durationMs * MIN_DELAY_SHARE), durationMs);
    const recorder = new LatenessRecorder(size);
    reportTo(recorder);
    const timers = kind.open();
    const stop = drive?.(timers);
    const requests = newRing<R>(size);
    const before = process.cpuUsage();
    const startMs = systemClock.now();
    for (let id = 0; id < size; id++) {
      const delayMs = delays.next();
      recorder.expect(id, delayMs);
      requests[id] = new kind.Request(id, timers, delayMs, startMs);
    }
    await finishedWithin(recorder, durationMs + GRACE_MS);
    const cpuMs = cpuUsSince(before) / US_PER_MS;
    stop?.();
    kind.close(timers, requests);
    return { values: { [CPU]: cpuMs, ...recorder.values() }, problem: recorder.check(mayLose) };
  };
}

function advanceEachSecond(wheel: RequestWheel): () => void {
  const interval = setInterval(() => wheel.advance().forEach(expire), WHEEL_ADVANCE_MS);
  return () => clearInterval(interval);
}

async function finishedWithin(recorder: LatenessRecorder, limitMs: number): Promise<void> {
  const abort = new AbortController();
  const limit = sleep(limitMs, undefined, { signal: abort.signal }).catch(() => undefined);
  await Promise.race([recorder.finished, limit]);
  abort.abort();
}

function realTimeTargets(contestant: string): Target[] {
  return [
    atMost(contestant, EARLY, 0),
    atMost(contestant, LOST, 0),
    { kind: 'excess', contestant, metric: P99, atMost: MOST_LATER_MS },
    atLeast(contestant, CPU, 1),
  ];
}

export const realTimeCase = scenario({
  name: 'real time: ten timeouts a millisecond',
  note:
    'All are added at once, due over the following ten seconds. CPU is the whole process: user, system, collector. ' +
    'Early: the host counts from the start of the turn of the event loop, in whole milliseconds. timer-wheel is ' +
    'advanced once a second, as its documentation advises; its buckets are 1.024 s wide, and when only part of one is ' +
    'due, version 1.0.0 loses entries of the rest.',
  size: { full: 100_000, quick: 10_000, of: 'timers' },
  rounds: 2,
  metrics: [
    metric(CPU, 'ms'),
    metric('p50 lateness', 'ms'),
    metric(P99, 'ms'),
    aside('max lateness', 'ms'),
    metric(EARLY),
    metric(LOST),
  ],
  contestants: [
    baseline('setTimeout', realTime(HOST)),
    rival('binary heap', realTime(HEAP)),
    rival('timer-wheel', realTime(WHEEL, true, advanceEachSecond)),
    ours('ours: TimerTask', realTime(TASK)),
    ours('ours: schedule', realTime(SCHEDULE)),
  ],
  targets: [...realTimeTargets('ours: TimerTask'), ...realTimeTargets('ours: schedule')],
});
