import { systemClock, type Clock } from '../core/clock.ts';
import { objectWith, readOptions, type OptionTable, type Resolved } from '../core/options.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { requireClock } from '../core/require-clock.ts';
import { requireBoolean, requireFunction, requireString } from '../core/validate.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';
import type { Timer } from '../timer/timer.ts';
import type { DelayedOperation } from './delayed-operation.ts';

/** What a key is told apart by. */
export type PlainKey = string | number | bigint | symbol;

/** Options of a `DelayedOperationPurgatory`. All are checked when it is made. */
export interface PurgatoryOptions<K, T extends DelayedOperation = DelayedOperation> {
  /**
   * Where the timeouts of the operations wait. A timer that is passed in can be shared, and is not closed here.
   *
   * @default a SystemTimer of its own, closed with the purgatory
   */
  readonly timer?: Timer;
  /** With false no operation ever times out. @default true */
  readonly timerEnabled?: boolean;
  /**
   * Makes a structured key something that can be compared: keys of equal results are the same key.
   *
   * @default the key itself, as a `Map` compares: an object is equal to itself alone
   * @example (partition) => `${partition.topic}-${partition.index}`
   */
  readonly keyOf?: (key: K) => PlainKey;
  /**
   * Called with each error that an operation throws. The check that threw is over by then: `forceComplete` has the reason
   * `'forced'`. It never stops another operation.
   *
   * @default the error is thrown in a turn of its own: an uncaught exception of the host
   */
  readonly onError?: (error: unknown, operation: NoInfer<T>) => void;
  /**
   * Gets the measurements that docs/purgatory.md lists. With it every operation costs two readings of the clock,
   * and one that expires is asked once more whether its condition holds.
   *
   * @default none
   */
  readonly metrics?: MetricsProvider;
  /** For the durations that are measured, and for the purgatory's own timer. @default systemClock */
  readonly clock?: Clock;
}

const OPTIONS = {
  timer: [objectWith('a Timer', 'add', 'close'), undefined],
  timerEnabled: [requireBoolean, true],
  keyOf: [requireFunction, undefined],
  onError: [requireFunction, reportUncaught],
  metrics: [requireMetrics, undefined],
  clock: [requireClock, systemClock],
} satisfies OptionTable<PurgatoryOptions<unknown>>;

/** The options with every default filled in. */
export type ResolvedPurgatoryOptions<K, T extends DelayedOperation> = Resolved<
  PurgatoryOptions<K, T>,
  typeof OPTIONS
>;

export function resolvePurgatoryOptions<K, T extends DelayedOperation>(
  name: string,
  options: PurgatoryOptions<K, T>,
): ResolvedPurgatoryOptions<K, T> {
  requireString('name', name);
  return readOptions('DelayedOperationPurgatory', options, OPTIONS);
}
