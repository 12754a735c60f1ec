import type { TimerWheels } from './timer-wheels.ts';
import type { TimingWheel } from './timing-wheel.ts';

/** A bucket that holds tasks. */
export interface BucketSnapshot {
  /** Its place in the ring. */
  readonly index: number;
  /** When it expires, in milliseconds on the timer's clock. */
  readonly expirationMs: number;
  /** Tasks in it. */
  readonly size: number;
}

/** One wheel. */
export interface LevelSnapshot {
  /** The time span of a bucket. */
  readonly tickMs: number;
  /** Buckets in the ring. */
  readonly wheelSize: number;
  /** One turn: `tickMs × wheelSize`. */
  readonly intervalMs: number;
  /** The wheel's clock, a multiple of `tickMs`. */
  readonly currentTimeMs: number;
  /** The buckets that hold tasks, by index. */
  readonly buckets: BucketSnapshot[];
}

/** What a picture of the wheels needs: a copy, detached from the timer. */
export interface TimerSnapshot {
  /** The clock when the snapshot was taken. */
  readonly nowMs: number;
  /** Tasks that wait, those that are due included. */
  readonly size: number;
  /** Tasks that are due and have not run yet. */
  readonly dueNow: number;
  /** The wheels, finest first. */
  readonly levels: LevelSnapshot[];
  /** The expirations of all buckets that hold tasks, ascending, equal ones repeated. */
  readonly delayQueue: number[];
}

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
  const buckets: BucketSnapshot[] = [];
  for (const [index, bucket] of wheel.buckets.entries()) {
    if (bucket === undefined || bucket.isEmpty) continue;
    buckets.push({ index, expirationMs: bucket.expirationMs, size: bucket.size });
  }
  return { tickMs, wheelSize, intervalMs, currentTimeMs, buckets };
}
