/** A million tasks fall due while nobody looks, and one pump catches up: every cascade, every call, at once. */
import { ManualClock, SystemTimer, TimerTask } from 'escapement';
import { TimerWheel } from 'timer-wheel';
import { TIME } from '../lib/measurement.ts';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { DelaySequence } from './delay-sequence.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';

const MIN_DELAY_MS = 5_000;
const MAX_DELAY_MS = 65_000;
const CATCH_UP_AT_MS = 70_000;
const MOST_NS = 400;

/** Counts how often each request ran: all must, and none twice. */
class Tally {
  readonly #runs: Uint8Array;

  constructor(size: number) {
    this.#runs = new Uint8Array(size);
  }

  add(id: number): void {
    this.#runs[id] = (this.#runs[id] ?? 0) + 1;
  }

  check(): string | undefined {
    const wrong = this.#runs.findIndex((runs) => runs !== 1);
    return wrong === -1 ? undefined : `request ${wrong} ran ${this.#runs[wrong] ?? 0} times`;
  }
}

class TaskRequest extends TimerTask {
  declare readonly id: number;
  declare readonly tally: Tally;

  constructor(id: number, tally: Tally, delayMs: number) {
    super(delayMs);
    this.id = id;
    this.tally = tally;
  }

  run(): void {
    this.tally.add(this.id);
  }
}

class HeapRequest extends HeapEntry {
  declare readonly id: number;
  declare readonly tally: Tally;

  constructor(id: number, tally: Tally) {
    super();
    this.id = id;
    this.tally = tally;
  }

  expire(): void {
    this.tally.add(this.id);
  }
}

class PlainRequest {
  declare readonly id: number;
  declare readonly tally: Tally;

  constructor(id: number, tally: Tally) {
    this.id = id;
    this.tally = tally;
  }
}

function expire(request: PlainRequest): void {
  request.tally.add(request.id);
}

function delaysFromStart(): DelaySequence {
  return new DelaySequence(MIN_DELAY_MS, MAX_DELAY_MS);
}

function openTasks(size: number): BulkRun {
  return openOurs(size, (timer, tally, delays) => {
    for (let id = 0; id < size; id++) timer.add(new TaskRequest(id, tally, delays.next()));
  });
}

function openScheduled(size: number): BulkRun {
  return openOurs(size, (timer, tally, delays) => {
    for (let id = 0; id < size; id++) timer.schedule(delays.next(), expire, new PlainRequest(id, tally));
  });
}

function openOurs(
  size: number,
  fill: (timer: SystemTimer, tally: Tally, delays: DelaySequence) => void,
): BulkRun {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, autoStart: false });
  const tally = new Tally(size);
  fill(timer, tally, delaysFromStart());
  clock.advance(CATCH_UP_AT_MS);
  return {
    run: () => timer.poll(),
    check: () => tally.check() ?? (timer.size === 0 ? undefined : `${timer.size} tasks are left`),
    close: () => {
      timer.close();
    },
  };
}

function openHeap(size: number): BulkRun {
  let nowMs = 0;
  const timer = new HeapTimer(() => nowMs, false);
  const tally = new Tally(size);
  const delays = delaysFromStart();
  for (let id = 0; id < size; id++) timer.add(new HeapRequest(id, tally), delays.next());
  nowMs = CATCH_UP_AT_MS;
  return {
    run: () => timer.runDue(),
    check: () => tally.check(),
    close: () => {
      timer.close();
    },
  };
}

function openPackage(size: number): BulkRun {
  const wheel = new TimerWheel<PlainRequest>();
  const tally = new Tally(size);
  const delays = delaysFromStart();
  for (let id = 0; id < size; id++) wheel.schedule(new PlainRequest(id, tally), delays.next());
  return {
    run: () => {
      const due = wheel.advance(CATCH_UP_AT_MS);
      for (const request of due) expire(request);
      return due.length;
    },
    check: () => tally.check(),
    close: () => undefined,
  };
}

export const expireCase: BulkCase = {
  kind: 'bulk',
  name: 'expire all in one catch-up pump, delays 5–65 s',
  note: 'timer-wheel: hands the due ones over bucket by bucket, not in order of time within the 1.024 s of a bucket.',
  size: { full: 1_000_000, quick: 100_000, of: 'timers' },
  contestants: [
    {
      name: 'setTimeout',
      role: 'rival',
      open: {
        cannot: 'its time cannot be set, and blocking a process for 65 s would measure something else',
      },
    },
    { name: 'binary heap', role: 'baseline', open: openHeap },
    { name: 'timer-wheel', role: 'rival', open: openPackage },
    { name: 'ours: TimerTask', role: 'ours', open: openTasks },
    { name: 'ours: schedule', role: 'ours', open: openScheduled },
  ],
  targets: [
    { kind: 'limit', contestant: 'ours: TimerTask', metric: TIME, atMost: MOST_NS },
    { kind: 'limit', contestant: 'ours: schedule', metric: TIME, atMost: MOST_NS },
  ],
};
