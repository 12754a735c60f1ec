import { basename } from 'node:path';
import type { DiskQueueSnapshot } from '../diskqueue/message-log.ts';
import type { PurgatorySnapshot } from '../purgatory/purgatory.ts';
import type { SystemTimer } from '../timer/system-timer.ts';
import type { WorkQueueSnapshot } from '../workqueue/work-queue.ts';
import type {
  DiskQueueJson,
  PurgatoryJson,
  RuntimeJson,
  TimerJson,
  WorkQueueJson,
} from './dashboard-json.ts';

/* The parts of the process that are shown besides tasks. They are what the classes of those names have. */

/** A `SystemTimer`. */
export type TimerShown = Pick<SystemTimer, 'name' | 'clock' | 'size' | 'inspect' | 'schedule'>;

/** A `DelayedOperationPurgatory`, whatever its keys and operations are. */
export interface PurgatoryShown {
  /** Returns its state. */
  inspect(): PurgatorySnapshot;
}

/** A `WorkQueue`, `DelayingQueue` or `RateLimitingQueue`, whatever its items are. */
export interface WorkQueueShown {
  /** Returns its state. */
  inspect(): WorkQueueSnapshot;
}

/** A `DiskQueue`. */
export interface DiskQueueShown {
  /** Returns its state. */
  inspect(): DiskQueueSnapshot;
}

/** Samples that are kept of a timer: five minutes. */
const MAX_SAMPLES = 300;

/** Delay of the probe that shows how late a timer is, in milliseconds. */
const PROBE_DELAY_MS = 100;

/** What was seen of a timer. */
class TimerWatch {
  readonly timer: TimerShown;
  readonly #sizes: number[] = [];
  readonly #latenessMs: number[] = [];

  constructor(timer: TimerShown) {
    this.timer = timer;
  }

  sample(): void {
    keep(this.#sizes, this.timer.size);
    this.#probe();
  }

  toJson(): TimerJson {
    const { nowMs, size, dueNow, levels } = this.timer.inspect();
    const ascending = [...this.#latenessMs].sort((a, b) => a - b);
    return {
      ...{ name: this.timer.name, nowMs, size, dueNow, levels },
      history: this.#sizes,
      lateness: {
        medianMs: ascending[ascending.length >> 1] ?? 0,
        longestMs: ascending.at(-1) ?? 0,
      },
    };
  }

  #probe(): void {
    const { timer } = this;
    try {
      const dueMs = timer.clock.now() + PROBE_DELAY_MS;
      timer.schedule(PROBE_DELAY_MS, () => {
        keep(this.#latenessMs, Math.max(0, timer.clock.now() - dueMs));
      });
    } catch {
      // The timer is closed, or its clock is invalid: it has no lateness.
    }
  }
}

function keep(values: number[], value: number): void {
  values.push(value);
  if (values.length > MAX_SAMPLES) values.shift();
}

/** The parts of a dashboard. */
export interface PartsShown {
  readonly timers: readonly TimerShown[];
  readonly purgatories: readonly PurgatoryShown[];
  readonly workQueues: readonly WorkQueueShown[];
  readonly diskQueues: readonly DiskQueueShown[];
}

/** Reads the parts, and samples the timers. */
export class RuntimeParts {
  readonly #parts: PartsShown;
  readonly #timers: readonly TimerWatch[];

  constructor(parts: PartsShown) {
    this.#parts = parts;
    this.#timers = parts.timers.map((timer) => new TimerWatch(timer));
  }

  get pendingTimers(): number {
    return this.#timers.reduce((sum, { timer }) => sum + timer.size, 0);
  }

  sample(): void {
    for (const timer of this.#timers) timer.sample();
  }

  toJson(): RuntimeJson {
    const { purgatories, workQueues, diskQueues } = this.#parts;
    return {
      timers: this.#timers.map((timer) => timer.toJson()),
      purgatories: purgatories.map(purgatoryToJson),
      workQueues: workQueues.map(workQueueToJson),
      diskQueues: diskQueues.map(diskQueueToJson),
    };
  }
}

function purgatoryToJson(purgatory: PurgatoryShown): PurgatoryJson {
  const { keys, ...numbers } = purgatory.inspect();
  return { ...numbers, keys: keys.map((one) => ({ ...one, key: nameOf(one.key) })) };
}

function workQueueToJson(queue: WorkQueueShown): WorkQueueJson {
  const { retries, ...numbers } = queue.inspect();
  return { ...numbers, retries: retries.map((one) => ({ ...one, key: nameOf(one.key) })) };
}

function diskQueueToJson(queue: DiskQueueShown): DiskQueueJson {
  const { segments, cursor, ...numbers } = queue.inspect();
  const named = <Place extends { readonly file: string }>(place: Place): Place => ({
    ...{ ...place, file: basename(place.file) },
  });
  return { ...numbers, segments: segments.map(named), cursor: cursor && named(cursor) };
}

/** Most characters of a key that are sent. */
const MOST_CHARACTERS = 200;

/** Returns a key as text: JSON, if it is an object. */
function nameOf(key: unknown): string {
  let text: string | undefined;
  try {
    text = typeof key === 'object' ? JSON.stringify(key) : `${key as string | number}`;
  } catch {
    // It cannot be written.
  }
  return (text ?? typeof key).slice(0, MOST_CHARACTERS);
}
