/**
 * Timers, purgatory, work queues and rate limiters. Runs in browsers and other runtimes too.
 *
 * @module escapement
 */
export { systemClock } from './core/clock.ts';
export type { Clock, ClockTimeout } from './core/clock.ts';
export { EscapementError } from './core/errors.ts';
export type { ArgumentError, EscapementErrorCode, EscapementErrorOptions } from './core/errors.ts';
export { ManualClock } from './core/manual-clock.ts';
export type { ManualClockOptions } from './core/manual-clock.ts';
export type { SignalOptions } from './core/signal-options.ts';
export type { MetricsProvider } from './metrics/provider.ts';
export type { TimerSnapshot } from './timer/timer-wheels.ts';
export type { BucketSnapshot, LevelSnapshot } from './timer/timing-wheel.ts';
export { AsyncDelayedOperation } from './purgatory/async-delayed-operation.ts';
export type { Condition } from './purgatory/condition-operation.ts';
export { DelayedOperation } from './purgatory/delayed-operation.ts';
export type { CompletionReason } from './purgatory/delayed-operation.ts';
export { DelayedOperationPurgatory } from './purgatory/purgatory.ts';
export type {
  PurgatoryCloseOptions,
  PurgatorySnapshot,
  WaitOptions,
  WatchedKeySnapshot,
} from './purgatory/purgatory.ts';
export type { PlainKey, PurgatoryOptions } from './purgatory/purgatory-options.ts';
export { SystemTimer } from './timer/system-timer.ts';
export type { TimerId } from './timer/system-timer.ts';
export type {
  Rounding,
  SystemTimerOptions,
  Timer,
  TimerCloseOptions,
  TimerErrorHandler,
} from './timer/timer.ts';
export { TimerTask } from './timer/timer-task.ts';
export { timeoutSignal, withTimeout } from './timer/timeout-signal.ts';
export type { DeadlineTimer, TimeoutSignal } from './timer/timeout-signal.ts';
export { BucketRateLimiter } from './workqueue/bucket-rate-limiter.ts';
export type { BucketRateLimiterOptions } from './workqueue/bucket-rate-limiter.ts';
export { DelayingQueue } from './workqueue/delaying-queue.ts';
export type { DelayingQueueOptions } from './workqueue/delaying-queue.ts';
export { ItemExponentialFailureRateLimiter } from './workqueue/item-exponential-failure-rate-limiter.ts';
export type { ItemExponentialFailureOptions } from './workqueue/item-exponential-failure-rate-limiter.ts';
export { ItemFastSlowRateLimiter } from './workqueue/item-fast-slow-rate-limiter.ts';
export type { ItemFastSlowOptions } from './workqueue/item-fast-slow-rate-limiter.ts';
export type { Lease } from './workqueue/lease.ts';
export { defaultControllerRateLimiter, MaxOfRateLimiter } from './workqueue/max-of-rate-limiter.ts';
export { parallelizeUntil } from './workqueue/parallelize-until.ts';
export type { ParallelizeOptions } from './workqueue/parallelize-until.ts';
export type { RateLimiter } from './workqueue/rate-limiter.ts';
export { RateLimitingQueue } from './workqueue/rate-limiting-queue.ts';
export type { RetryOptions } from './workqueue/rate-limiting-queue.ts';
export { WithJitterRateLimiter } from './workqueue/with-jitter-rate-limiter.ts';
export type { JitterOptions } from './workqueue/with-jitter-rate-limiter.ts';
export { WithMaxWaitRateLimiter } from './workqueue/with-max-wait-rate-limiter.ts';
export { WorkQueue } from './workqueue/work-queue.ts';
export type {
  ItemRetries,
  QueueEnd,
  Taken,
  TakenItem,
  WorkQueueOptions,
  WorkQueueSnapshot,
} from './workqueue/work-queue.ts';
export type { RunOptions, Worker, WorkerContext } from './workqueue/worker-run.ts';
