/** Many operations whose timeouts are over at once: off their keys, completed, expired. */
import { performance } from 'node:perf_hooks';
import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { NaiveOperation, NaivePurgatory } from './naive-purgatory.ts';
import { SeededRandom } from './seeded-random.ts';
import { Tally } from './tally.ts';
import { KEYS_PER_OPERATION } from './waiting-operations.ts';

/** Nothing is due while the operations are still being added. */
const OPERATIONS_PER_MS = 100;
/** Both count in milliseconds, and one of them rounds up. */
const SPARE_MS = 2;
const KEYS = 1_000;
const SEED = 7;

class OurTimeout extends DelayedOperation {
  declare readonly id: number;
  declare readonly tally: Tally;

  constructor(id: number, tally: Tally, delayMs: number) {
    super(delayMs);
    this.id = id;
    this.tally = tally;
  }

  tryComplete(): boolean {
    return false;
  }

  onComplete(): void {
    // The last one must be counted as expired before the run ends: see onExpiration.
  }

  onExpiration(): void {
    this.tally.expire();
    this.tally.complete(this.id);
  }
}

class NaiveTimeout extends NaiveOperation {
  declare readonly id: number;
  declare readonly tally: Tally;

  constructor(id: number, tally: Tally, delayMs: number) {
    super(delayMs);
    this.id = id;
    this.tally = tally;
  }

  tryComplete(): boolean {
    return false;
  }

  onComplete(): void {
    // As above.
  }

  onExpiration(): void {
    this.tally.expire();
    this.tally.complete(this.id);
  }
}

interface TimingPurgatory {
  watch(id: number, tally: Tally, delayMs: number, keys: readonly string[]): void;
  readonly watched: number;
  close(): void;
}

function ours(): TimingPurgatory {
  const purgatory = new DelayedOperationPurgatory<string, OurTimeout>('bench');
  return {
    watch: (id, tally, delayMs, keys) =>
      purgatory.tryCompleteElseWatch(new OurTimeout(id, tally, delayMs), keys),
    get watched() {
      return purgatory.watched;
    },
    close: () => purgatory.close({ pending: 'drop' }),
  };
}

function naive(): TimingPurgatory {
  const purgatory = new NaivePurgatory();
  return {
    watch: (id, tally, delayMs, keys) =>
      purgatory.tryCompleteElseWatch(new NaiveTimeout(id, tally, delayMs), keys),
    get watched() {
      return purgatory.watched;
    },
    close: () => {
      purgatory.close();
    },
  };
}

/** All wait, and their time is over; what the run waits for is their completion, in turns of the event loop. */
function openWith(make: () => TimingPurgatory): (size: number) => BulkRun {
  return (size) => {
    const purgatory = make();
    let finish: () => void = () => undefined;
    const tally = new Tally(size, () => {
      finish();
    });
    fill(purgatory, size, tally);
    return {
      run: async () => {
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return size;
      },
      check: () =>
        tally.check() ?? (purgatory.watched === 0 ? undefined : `${purgatory.watched} entries are left`),
      close: () => {
        purgatory.close();
      },
    };
  };
}

function fill(purgatory: TimingPurgatory, size: number, tally: Tally): void {
  const delayMs = Math.ceil(size / OPERATIONS_PER_MS);
  const random = new SeededRandom(SEED);
  for (let id = 0; id < size; id++) {
    const keys = Array.from({ length: KEYS_PER_OPERATION }, () => `topic-${random.nextInt(KEYS)}`);
    purgatory.watch(id, tally, delayMs, keys);
  }
  const dueAtMs = performance.now() + delayMs + SPARE_MS;
  while (performance.now() < dueAtMs);
}

export const expiryCase: BulkCase = {
  kind: 'bulk',
  name: 'expire: all at once, 3 keys each out of a thousand',
  note:
    'They fall due while the program is busy; timed is from there until the last has expired. Ours expires them in ' +
    'order, 10 000 in a turn of the event loop; the host all in one turn.',
  size: { full: 100_000, quick: 10_000, of: 'operations' },
  contestants: [
    { name: 'setTimeout + Map', role: 'baseline', open: openWith(naive) },
    { name: 'ours', role: 'ours', open: openWith(ours) },
  ],
};
