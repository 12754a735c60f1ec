/** One key that many wait for: what a check costs each of them, when it completes one. */
import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import { KafkaOperation, KafkaPurgatory } from './kafka-purgatory.ts';
import { NaiveOperation, NaivePurgatory } from './naive-purgatory.ts';
import { LONG_MS } from './waiting-operations.ts';

const KEY = 'topic-0';
/** Looks at watchers in the timed section, however many wait: enough to time, in the smoke run too. */
const LOOKS = 2_000_000;

/** What one check is told about, and what it tells back. */
class Crowd {
  /** The number of the operation whose condition holds; -1: of none. */
  readyId = -1;
  looks = 0;
  completed = 0;
  said = 0;
  checks = 0;

  /** @param watched - what the purgatory has still; of `size` at first, each check took one. */
  check(watched: number, size: number): string | undefined {
    if (this.completed !== this.checks) return `${this.checks} checks completed ${this.completed}`;
    if (this.said !== this.checks) return `${this.checks} checks said they had completed ${this.said}`;
    const left = size - this.checks;
    if (watched !== left) return `${watched} wait, not ${left}`;
    const due = looksIn(this.checks, size);
    return this.looks === due ? undefined : `${this.looks} looks at conditions, not ${due}`;
  }
}

/** Each check has one operation less to look at than the one before it. */
export function looksIn(checks: number, size: number): number {
  return checks * size - (checks * (checks - 1)) / 2;
}

class OurWatcher extends DelayedOperation {
  declare readonly id: number;
  declare readonly crowd: Crowd;

  constructor(id: number, crowd: Crowd) {
    super(LONG_MS);
    this.id = id;
    this.crowd = crowd;
  }

  tryComplete(): boolean {
    this.crowd.looks++;
    return this.crowd.readyId === this.id && this.forceComplete();
  }

  onComplete(): void {
    this.crowd.completed++;
  }

  onExpiration(): void {
    throw new Error('a watcher expired');
  }
}

class NaiveWatcher extends NaiveOperation {
  declare readonly id: number;
  declare readonly crowd: Crowd;

  constructor(id: number, crowd: Crowd) {
    super(LONG_MS);
    this.id = id;
    this.crowd = crowd;
  }

  tryComplete(): boolean {
    this.crowd.looks++;
    return this.crowd.readyId === this.id && this.forceComplete();
  }

  onComplete(): void {
    this.crowd.completed++;
  }

  onExpiration(): void {
    throw new Error('a watcher expired');
  }
}

class KafkaWatcher extends KafkaOperation {
  declare readonly id: number;
  declare readonly crowd: Crowd;

  constructor(id: number, crowd: Crowd) {
    super(LONG_MS);
    this.id = id;
    this.crowd = crowd;
  }

  tryComplete(): boolean {
    this.crowd.looks++;
    return this.crowd.readyId === this.id && this.forceComplete();
  }

  onComplete(): void {
    this.crowd.completed++;
  }

  onExpiration(): void {
    throw new Error('a watcher expired');
  }
}

interface CrowdedPurgatory {
  watch(id: number, crowd: Crowd): void;
  checkAndComplete(key: string): number;
  readonly watched: number;
  close(): void;
}

function ours(): CrowdedPurgatory {
  const purgatory = new DelayedOperationPurgatory<string, OurWatcher>('bench');
  return {
    watch: (id, crowd) => purgatory.tryCompleteElseWatch(new OurWatcher(id, crowd), [KEY]),
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => purgatory.close({ pending: 'drop' }),
  };
}

function naive(): CrowdedPurgatory {
  const purgatory = new NaivePurgatory();
  return {
    watch: (id, crowd) => purgatory.tryCompleteElseWatch(new NaiveWatcher(id, crowd), [KEY]),
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => {
      purgatory.close();
    },
  };
}

function kafka(): CrowdedPurgatory {
  const purgatory = new KafkaPurgatory();
  return {
    watch: (id, crowd) => purgatory.tryCompleteElseWatch(new KafkaWatcher(id, crowd), [KEY]),
    checkAndComplete: (key) => purgatory.checkAndComplete(key),
    get watched() {
      return purgatory.watched;
    },
    close: () => {
      purgatory.close();
    },
  };
}

function openWith(make: () => CrowdedPurgatory): (size: number) => BulkRun {
  return (size) => {
    const purgatory = make();
    const crowd = new Crowd();
    for (let id = 0; id < size; id++) purgatory.watch(id, crowd);
    crowd.looks = 0;
    // Those that complete are spread over the key's list.
    const checks = Math.min(Math.ceil(LOOKS / size), size);
    const stride = Math.floor(size / checks);
    return {
      run: () => {
        for (; crowd.checks < checks; crowd.checks++) {
          crowd.readyId = crowd.checks * stride;
          crowd.said += purgatory.checkAndComplete(KEY);
        }
        return crowd.looks;
      },
      check: () => crowd.check(purgatory.watched, size),
      close: () => {
        purgatory.close();
      },
    };
  };
}

function crowdedKey(size: number, label: string): BulkCase {
  return {
    kind: 'bulk',
    name: `one key, ${label} wait for it: a check that completes one of them, per watcher`,
    note: 'A check looks at all of them. Its cost is linear as long as this is the same for ten times as many, caches apart.',
    size: { full: size, quick: Math.ceil(size / 10), of: 'watchers' },
    contestants: [
      { name: 'setTimeout + Map', role: 'baseline', open: openWith(naive) },
      { name: "Kafka's design", role: 'rival', open: openWith(kafka) },
      { name: 'ours', role: 'ours', open: openWith(ours) },
    ],
  };
}

export const crowdedKeyCases: readonly BulkCase[] = [
  crowdedKey(10_000, '10 000'),
  crowdedKey(100_000, '100 000'),
];
