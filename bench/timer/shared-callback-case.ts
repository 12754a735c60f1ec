/** Fill with one callback for all and a small integer as its argument: a timer without an object of the user's. */
import { performance } from 'node:perf_hooks';
import { SystemTimer } from 'escapement';
import { TimerWheel, type TimerHandle } from 'timer-wheel';
import { BYTES, TIME } from '../lib/measurement.ts';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { DelaySequence } from './delay-sequence.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';
import { activeTimeouts } from './host-waiting-set.ts';
import { checkWaiting, emptyRing, keepOne } from './waiting-set.ts';

const MIN_DELAY_MS = 5_000;
const MAX_DELAY_MS = 65_000;
/** Past every delay, as in the package's waiting set. */
const PAST_ALL_MS = 2 ** 31;
const OURS = 'ours: schedule';

/** What is still to come, so that one that falls due by mistake shows. */
let fired = 0;

function expire(argument: number): void {
  fired += argument < 0 ? 0 : 1;
}

function delaysFromStart(): DelaySequence {
  fired = 0;
  return new DelaySequence(MIN_DELAY_MS, MAX_DELAY_MS);
}

/** Handles are kept: a timer that cannot be cancelled is not what anybody fills a million of. */
function openHost(size: number): BulkRun {
  const delays = delaysFromStart();
  const handles = emptyRing<NodeJS.Timeout>(size);
  const foreign = activeTimeouts();
  return {
    run: () => {
      for (let index = 0; index < size; index++) handles[index] = setTimeout(expire, delays.next(), index);
      return size;
    },
    check: () => checkWaiting(activeTimeouts() - foreign, size, fired),
    close: () => {
      for (const handle of handles) clearTimeout(handle);
      keepOne(handles);
    },
  };
}

/** A heap needs something to sift: its entry is an object, whatever the user has. */
class CallbackEntry extends HeapEntry {
  declare readonly callback: (argument: number) => void;
  declare readonly argument: number;

  constructor(callback: (argument: number) => void, argument: number) {
    super();
    this.callback = callback;
    this.argument = argument;
  }

  expire(): void {
    this.callback(this.argument);
  }
}

function openHeap(size: number): BulkRun {
  const delays = delaysFromStart();
  const timer = new HeapTimer(() => performance.now(), true);
  const entries = emptyRing<CallbackEntry>(size);
  return {
    run: () => {
      for (let index = 0; index < size; index++) {
        const entry = new CallbackEntry(expire, index);
        entries[index] = entry;
        timer.add(entry, delays.next());
      }
      return size;
    },
    check: () => checkWaiting(timer.size, size, fired),
    close: () => {
      timer.close();
      keepOne(entries);
    },
  };
}

function openPackage(size: number): BulkRun {
  const delays = delaysFromStart();
  const wheel = new TimerWheel<number>();
  const handles = emptyRing<TimerHandle>(size);
  return {
    run: () => {
      for (let index = 0; index < size; index++) handles[index] = wheel.schedule(index, delays.next());
      return size;
    },
    check: () => checkWaiting(new Set(wheel.advance(PAST_ALL_MS)).size, size, 0),
    close: () => {
      keepOne(handles);
    },
  };
}

function openOurs(size: number): BulkRun {
  const delays = delaysFromStart();
  const timer = new SystemTimer();
  const ids = new Float64Array(size);
  return {
    run: () => {
      for (let index = 0; index < size; index++) ids[index] = timer.schedule(delays.next(), expire, index);
      return size;
    },
    check: () =>
      new Set(ids).size === size ? checkWaiting(timer.size, size, fired) : 'two timers have the same id',
    close: () => {
      timer.close();
    },
  };
}

export const sharedCallbackCase: BulkCase = {
  kind: 'bulk',
  name: 'fill with one shared callback: no object per timer, delays 5–65 s',
  note: 'Handles and ids go to an array that was there before, so the bytes are those of the timers alone.',
  size: { full: 1_000_000, quick: 100_000, of: 'timers' },
  measuresBytes: true,
  contestants: [
    { name: 'setTimeout', role: 'baseline', open: openHost },
    { name: 'binary heap', role: 'rival', open: openHeap },
    { name: 'timer-wheel', role: 'rival', open: openPackage },
    { name: OURS, role: 'ours', open: openOurs },
  ],
  targets: [
    { kind: 'ratio', contestant: OURS, metric: TIME, atLeast: 8 },
    { kind: 'limit', contestant: OURS, metric: BYTES, atMost: 40 },
  ],
};
