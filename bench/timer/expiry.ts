/** Requests that expire: a million in one catch-up pump, and a hundred thousand over ten seconds of real time. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ManualClock, systemClock, SystemTimer } from 'escapement';
import type { OpenBulk, Scenario } from '../lib/kinds.ts';
import { spentBy } from '../lib/machine.ts';
import { baseline, expectCount, ours, rival, unable, US_PER_MS } from '../lib/part.ts';
import type { Contestant, Measurement } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { Tally } from '../lib/work.ts';
import { HeapTimer } from './heap-timer.ts';
import {
  DROP_IN_KIND,
  expire,
  HEAP,
  HOST,
  reportTo,
  SCHEDULE,
  TASK,
  WHEEL,
  type RequestWheel,
} from './kinds.ts';
import { newRing, type Request, type TimerKind } from './ring.ts';

const MIN_DELAY_MS = 5_000;
const MAX_DELAY_MS = 65_000;
const CATCH_UP_AT_MS = 70_000;

/** Timers whose time the case moves. */
interface ManualTimers<Timers> {
  readonly timers: Timers;
  /** Moves the time, which runs nothing. */
  readonly advance?: (timeMs: number) => void;
  /** Runs what is due. */
  readonly run: () => unknown;
}

function catchUpWith<Timers, R extends Request<Timers>>(
  { Request: RequestOf, pending, close }: TimerKind<Timers, R>,
  make: () => ManualTimers<Timers>,
): OpenBulk {
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
  return { timers, advance: (timeMs) => clock.advance(timeMs), run: () => timers.poll() };
}

function manualHeap(): ManualTimers<HeapTimer> {
  let nowMs = 0;
  const timers = new HeapTimer(() => nowMs, false);
  const advance = (timeMs: number): void => {
    nowMs = timeMs;
  };
  return { timers, advance, run: () => timers.runDue() };
}

function manualWheel(): ManualTimers<RequestWheel> {
  const timers = WHEEL.open();
  return { timers, run: () => timers.advance(CATCH_UP_AT_MS).forEach(expire) };
}

export const catchUp = [
  unable(
    'setTimeout',
    'its time cannot be set, and blocking a process for 65 s would measure something else',
  ),
  baseline('binary heap', catchUpWith(HEAP, manualHeap)),
  rival('timer-wheel', catchUpWith(WHEEL, manualWheel)),
  ours('ours: TimerTask', catchUpWith(TASK, manualTimer)),
  ours('ours: schedule', catchUpWith(SCHEDULE, manualTimer)),
];

/** 100 000 over 10 s; a smoke run has the same rate. */
const TIMERS_PER_MS = 10;
/** Nothing is due while requests are being added: that would measure the adding. */
const MIN_DELAY_SHARE = 0.05;
/** A request that has not expired this long after the last deadline is lost. */
const GRACE_MS = 3_000;
/** As the documentation of timer-wheel advises. */
const WHEEL_ADVANCE_MS = 1_000;

/** Records when each request was due, and how late it expired, on the same clock for every contestant. */
class LatenessRecorder extends Tally {
  readonly #dueAtMs: Float64Array;
  readonly #latenessMs: Float64Array;

  constructor(size: number) {
    super(size);
    this.#dueAtMs = new Float64Array(size);
    this.#latenessMs = new Float64Array(size).fill(Number.NaN);
  }

  /** Call it before the timer is added: the delay of a timer starts after this reading of the clock. */
  expect(id: number, delayMs: number): void {
    this.#dueAtMs[id] = performance.now() + delayMs;
  }

  override complete(id: number): void {
    this.#latenessMs[id] = performance.now() - (this.#dueAtMs[id] ?? Number.NaN);
    super.complete(id);
  }

  /** @param mayLose - whether lost requests are a result of this contestant, not a failure. */
  outcome(mayLose: boolean): Measurement {
    const sorted = this.#latenessMs.filter((ms) => !Number.isNaN(ms)).sort();
    const values = {
      'p50 lateness': quantileOfSorted(sorted, 0.5),
      'p99 lateness': quantileOfSorted(sorted, 0.99),
      'max lateness': quantileOfSorted(sorted, 1),
      early: sorted.filter((ms) => ms < 0).length,
      lost: this.#latenessMs.length - sorted.length,
    };
    const isExcused = mayLose && sorted.length > 0 && this.completed === sorted.length;
    return { values, problem: isExcused ? undefined : this.check() };
  }
}

/** @param drive - advances timers that have no wake-up. @returns a function that stops it. */
function realTimeWith<Timers, R extends Request<Timers>>(
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
    const { cpuUs } = await spentBy(async () => {
      const startMs = systemClock.now();
      for (let id = 0; id < size; id++) {
        const delayMs = delays.next();
        recorder.expect(id, delayMs);
        requests[id] = new kind.Request(id, timers, delayMs, startMs);
      }
      const abort = new AbortController();
      const limit = sleep(durationMs + GRACE_MS, undefined, { signal: abort.signal });
      await Promise.race([recorder.finished, limit.catch(() => undefined)]);
      abort.abort();
    });
    stop?.();
    kind.close(timers, requests);
    const { values, problem } = recorder.outcome(mayLose);
    return { values: { cpu: cpuUs / US_PER_MS, ...values }, problem };
  };
}

function advanceEachSecond(wheel: RequestWheel): () => void {
  const interval = setInterval(() => wheel.advance().forEach(expire), WHEEL_ADVANCE_MS);
  return () => clearInterval(interval);
}

export const realTime = [
  baseline('setTimeout', realTimeWith(HOST)),
  rival('binary heap', realTimeWith(HEAP)),
  rival('timer-wheel', realTimeWith(WHEEL, true, advanceEachSecond)),
  ours('ours: TimerTask', realTimeWith(TASK)),
  ours('ours: schedule', realTimeWith(SCHEDULE)),
];

/** Sets all timers in one turn, and waits until all have expired. */
function fireAllWith<Timers, R extends Request<Timers>>(
  { Request: RequestOf, open, close }: TimerKind<Timers, R>,
  minMs: number,
  maxMs: number,
): Scenario {
  return async (size) => {
    const tally = new Tally(size);
    reportTo(tally);
    const timers = open();
    const delays = new DelaySequence(minMs, maxMs);
    const { cpuUs } = await spentBy(() => {
      for (let id = 0; id < size; id++) new RequestOf(id, timers, delays.next(), 0);
      return tally.finished;
    });
    close(timers, []);
    return { values: { cpu: cpuUs / size }, problem: tally.check() };
  };
}

export const fireAll = (minMs: number, maxMs: number): Contestant<Scenario>[] => [
  baseline('setTimeout', fireAllWith(HOST, minMs, maxMs)),
  ours('ours: setTimeout', fireAllWith(DROP_IN_KIND, minMs, maxMs)),
  ours('ours: schedule', fireAllWith(SCHEDULE, minMs, maxMs)),
];
