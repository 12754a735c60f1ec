import type { TimerWheels } from './timer-wheels.ts';
import type { TimingWheel } from './timing-wheel.ts';

/** A bucket that holds tasks. */
export interface BucketSnapshot {
  /** Its index in the ring. */
  readonly index: number;
  /** When it expires, in milliseconds on the timer's clock. */
  readonly expirationMs: number;
  /** Number of tasks in the bucket. */
  readonly size: number;
}

/** A wheel. */
export interface LevelSnapshot {
  /** The time span of a bucket. */
  readonly tickMs: number;
  /** Number of buckets in the ring. */
  readonly wheelSize: number;
  /** The length of a turn: `tickMs × wheelSize`. */
  readonly intervalMs: number;
  /** The wheel's clock, a multiple of `tickMs`. */
  readonly currentTimeMs: number;
  /** The buckets that hold tasks, by index. */
  readonly buckets: BucketSnapshot[];
}

/** The state of a timer, as a picture of its wheels needs it: a copy. */
export interface TimerSnapshot {
  /** The time of the snapshot on the timer's clock. */
  readonly nowMs: number;
  /** Number of pending tasks, including those that are due. */
  readonly size: number;
  /** Number of tasks that are due and have not run yet. */
  readonly dueNow: number;
  /** The wheels, finest first. */
  readonly levels: LevelSnapshot[];
  /** The expirations of all buckets that hold tasks, ascending, equal ones repeated. */
  readonly delayQueue: number[];
}

/** Copies the state of the wheels. */
export function takeSnapshot(wheels: TimerWheels, nowMs: number): TimerSnapshot {
  const levels: LevelSnapshot[] = [];
  for (let wheel: TimingWheel | undefined = wheels.first; wheel; wheel = wheel.overflowWheel) {
    levels.push(levelOf(wheel));
  }
  return {
    nowMs,
    size: wheels.table.size,
    dueNow: wheels.due.size,
    levels,
    delayQueue: wheels.delayQueue.expirations(),
  };
}

function levelOf(wheel: TimingWheel): LevelSnapshot {
  const { tickMs, wheelSize, intervalMs, currentTimeMs } = wheel;
  const buckets = wheel.buckets.flatMap((bucket, index) =>
    bucket === undefined || bucket.isEmpty
      ? []
      : [{ index, expirationMs: bucket.expirationMs, size: bucket.size }],
  );
  return { tickMs, wheelSize, intervalMs, currentTimeMs, buckets };
}
