import type { Clock } from '../core/clock.ts';
import type { SystemTimer } from '../timer/system-timer.ts';
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
  /** Its name. */
  readonly name: string;
  /** Watch entries under all keys. */
  readonly watched: number;
  /** Operations with a pending timeout. */
  readonly numDelayed: number;
  /** Number of keys with operations. */
  readonly watchedKeys: number;
}

/** A `WorkQueue`, `DelayingQueue` or `RateLimitingQueue`, whatever its items are. */
export interface WorkQueueShown {
  /** Its name. */
  readonly name: string;
  /** Items that are ready. */
  readonly length: number;
  /** Items that workers hold. */
  readonly processing: number;
  /** Items whose delay has not passed. */
  readonly waiting?: number;
}

/** A `DiskQueue`. */
export interface DiskQueueShown {
  /** Its name. */
  readonly name: string;
  /** Messages that are not acknowledged. */
  readonly depth: number;
  /** Size of those, in bytes. */
  readonly bytes: number;
}

/** Samples that are kept of a timer: five minutes. */
const MAX_SAMPLES = 300;

/** Delay of the probe that shows how late a timer is, in milliseconds. */
const PROBE_DELAY_MS = 100;

/** What was seen of a timer. */
class TimerWatch {
  readonly timer: TimerShown;
  readonly #atMs: number[] = [];
  readonly #sizes: number[] = [];
  readonly #latenessMs: number[] = [];

  constructor(timer: TimerShown) {
    this.timer = timer;
  }

  sample(wallMs: number): void {
    keep(this.#atMs, wallMs);
    keep(this.#sizes, this.timer.size);
    this.#probe();
  }

  toJson(): TimerJson {
    const { nowMs, size, dueNow, levels } = this.timer.inspect();
    const ascending = [...this.#latenessMs].sort((a, b) => a - b);
    return {
      ...{ name: this.timer.name, nowMs, size, dueNow },
      levels: levels.map(({ tickMs, wheelSize, currentTimeMs, buckets }) => ({
        ...{ tickMs, wheelSize, currentTimeMs, buckets },
      })),
      history: { atMs: this.#atMs, size: this.#sizes },
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

  sample(clock: Clock): void {
    const wallMs = clock.wallNow();
    for (const timer of this.#timers) timer.sample(wallMs);
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

function purgatoryToJson({ name, watched, numDelayed, watchedKeys }: PurgatoryShown): PurgatoryJson {
  return { name, watched, delayed: numDelayed, watchedKeys, keys: [] };
}

function workQueueToJson({ name, length, processing, waiting = 0 }: WorkQueueShown): WorkQueueJson {
  return { name, depth: length, inProgress: processing, waiting, retries: [] };
}

function diskQueueToJson({ name, depth, bytes }: DiskQueueShown): DiskQueueJson {
  return { name, depth, bytes, inFlight: 0, segments: [] };
}
