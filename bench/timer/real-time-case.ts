/** The real clock: a hundred thousand requests time out over ten seconds. How late, and at what cost? */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { SystemTimer, TimerTask } from 'escapement';
import { TimerWheel } from 'timer-wheel';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import type { Target } from '../lib/target.ts';
import { DelaySequence } from './delay-sequence.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';
import { LatenessRecorder } from './lateness-recorder.ts';

/** 100 000 over 10 s; a smoke run keeps the rate. */
const TIMERS_PER_MS = 10;
/** Nothing is due while the requests are still being added: that would measure the adding. */
const MIN_DELAY_SHARE = 0.05;
/** What is not called this long after the last deadline never will be. */
const GRACE_MS = 3_000;
/** The package's own advice: a call a second. */
const PACKAGE_ADVANCE_MS = 1_000;

const CPU = 'cpu';
const P99 = 'p99 lateness';
const EARLY = 'early';
const LOST = 'lost';
/** How much later than the host's p99 ours may be, in milliseconds. */
const MOST_LATER_MS = 2;

/** Starts a request's timeout; expiring, it calls `recorder.called(id)`. */
type Start = (id: number, delayMs: number) => void;

interface Driver {
  readonly start: Start;
  stop(): void;
}

class PlainRequest {
  declare readonly id: number;
  declare readonly recorder: LatenessRecorder;

  constructor(id: number, recorder: LatenessRecorder) {
    this.id = id;
    this.recorder = recorder;
  }
}

function expire(request: PlainRequest): void {
  request.recorder.called(request.id);
}

class TaskRequest extends TimerTask {
  declare readonly id: number;
  declare readonly recorder: LatenessRecorder;

  constructor(id: number, recorder: LatenessRecorder, delayMs: number) {
    super(delayMs);
    this.id = id;
    this.recorder = recorder;
  }

  run(): void {
    this.recorder.called(this.id);
  }
}

class HeapRequest extends HeapEntry {
  declare readonly id: number;
  declare readonly recorder: LatenessRecorder;

  constructor(id: number, recorder: LatenessRecorder) {
    super();
    this.id = id;
    this.recorder = recorder;
  }

  expire(): void {
    this.recorder.called(this.id);
  }
}

function driveHost(recorder: LatenessRecorder): Driver {
  const timeouts: NodeJS.Timeout[] = [];
  return {
    start: (id, delayMs) => {
      timeouts.push(setTimeout(expire, delayMs, new PlainRequest(id, recorder)));
    },
    stop: () => {
      timeouts.forEach(clearTimeout);
    },
  };
}

function driveHeap(recorder: LatenessRecorder): Driver {
  const timer = new HeapTimer(() => performance.now(), true);
  return {
    start: (id, delayMs) => {
      timer.add(new HeapRequest(id, recorder), delayMs);
    },
    stop: () => {
      timer.close();
    },
  };
}

function drivePackage(recorder: LatenessRecorder): Driver {
  const wheel = new TimerWheel<PlainRequest>();
  const interval = setInterval(() => {
    wheel.advance().forEach(expire);
  }, PACKAGE_ADVANCE_MS);
  return {
    start: (id, delayMs) => {
      wheel.schedule(new PlainRequest(id, recorder), delayMs);
    },
    stop: () => {
      clearInterval(interval);
    },
  };
}

function driveTasks(recorder: LatenessRecorder): Driver {
  const timer = new SystemTimer();
  return {
    start: (id, delayMs) => {
      timer.add(new TaskRequest(id, recorder, delayMs));
    },
    stop: () => {
      timer.close();
    },
  };
}

function driveScheduled(recorder: LatenessRecorder): Driver {
  const timer = new SystemTimer();
  return {
    start: (id, delayMs) => {
      timer.schedule(delayMs, expire, new PlainRequest(id, recorder));
    },
    stop: () => {
      timer.close();
    },
  };
}

function openWith(
  drive: (recorder: LatenessRecorder) => Driver,
  mayLose = false,
): (size: number) => Promise<ScenarioOutcome> {
  return async (size) => {
    const durationMs = size / TIMERS_PER_MS;
    const delays = new DelaySequence(Math.ceil(durationMs * MIN_DELAY_SHARE), durationMs);
    const recorder = new LatenessRecorder(size);
    const driver = drive(recorder);
    const before = process.cpuUsage();
    startAll(size, delays, recorder, driver.start);
    await finishedOrGivenUp(recorder, durationMs + GRACE_MS);
    const { user, system } = process.cpuUsage(before);
    driver.stop();
    const { p50, p99, max, early, lost } = recorder.summarize();
    return {
      values: {
        [CPU]: (user + system) / 1_000,
        'p50 lateness': p50,
        [P99]: p99,
        'max lateness': max,
        [EARLY]: early,
        [LOST]: lost,
      },
      problem: recorder.check(mayLose),
    };
  };
}

function startAll(size: number, delays: DelaySequence, recorder: LatenessRecorder, start: Start): void {
  for (let id = 0; id < size; id++) {
    const delayMs = delays.next();
    recorder.expect(id, delayMs);
    start(id, delayMs);
  }
}

async function finishedOrGivenUp(recorder: LatenessRecorder, limitMs: number): Promise<void> {
  const giveUp = new AbortController();
  const limit = sleep(limitMs, undefined, { signal: giveUp.signal }).catch(() => undefined);
  await Promise.race([recorder.finished, limit]);
  giveUp.abort();
}

function targetsOf(contestant: string): Target[] {
  return [
    { kind: 'limit', contestant, metric: EARLY, atMost: 0 },
    { kind: 'limit', contestant, metric: LOST, atMost: 0 },
    { kind: 'excess', contestant, metric: P99, atMost: MOST_LATER_MS },
    { kind: 'ratio', contestant, metric: CPU, atLeast: 1 },
  ];
}

export const realTimeCase: ScenarioCase = {
  kind: 'scenario',
  name: 'real time: ten timeouts a millisecond',
  note:
    'All are added at once, due over the following ten seconds. CPU is the whole process: user, system, collector. ' +
    'Early: the host counts from the start of the turn of the event loop, in whole milliseconds. timer-wheel is ' +
    'advanced once a second, as its documentation says; its buckets are 1.024 s wide, and when only part of one is ' +
    'due, version 1.0.0 forgets entries of the rest.',
  size: { full: 100_000, quick: 10_000, of: 'timers' },
  rounds: 2,
  metrics: [
    { name: CPU, unit: 'ms' },
    { name: 'p50 lateness', unit: 'ms' },
    { name: P99, unit: 'ms' },
    { name: 'max lateness', unit: 'ms', isAside: true },
    { name: EARLY, unit: '' },
    { name: LOST, unit: '' },
  ],
  contestants: [
    { name: 'setTimeout', role: 'baseline', open: openWith(driveHost) },
    { name: 'binary heap', role: 'rival', open: openWith(driveHeap) },
    { name: 'timer-wheel', role: 'rival', open: openWith(drivePackage, true) },
    { name: 'ours: TimerTask', role: 'ours', open: openWith(driveTasks) },
    { name: 'ours: schedule', role: 'ours', open: openWith(driveScheduled) },
  ],
  targets: [...targetsOf('ours: TimerTask'), ...targetsOf('ours: schedule')],
};
