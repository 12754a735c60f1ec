import { systemClock, type Clock } from '../core/clock.ts';
import { integer, orInfinity, readOptions, type OptionTable, type Resolved } from '../core/options.ts';
import { requireClock } from '../core/require-clock.ts';
import { requireFunction, requireString } from '../core/validate.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';

/** Options of a `WorkQueue`. All are checked when it is made. */
export interface WorkQueueOptions<T> {
  /** For metrics and errors. @default 'workqueue' */
  readonly name?: string;
  /** For the durations that are measured. @default systemClock */
  readonly clock?: Clock;
  /** Gets the measurements that docs/workqueue.md lists. @default none */
  readonly metrics?: MetricsProvider;
  /**
   * What items are told apart by: items of equal keys are the same item. It must always say the same of an item.
   *
   * @default the item itself, as a `Map` compares: an object is equal to itself alone
   * @example (pod) => `${pod.namespace}/${pod.name}`
   */
  readonly keyOf?: (item: T) => unknown;
  /**
   * Items that may be ready at once: an integer of at least 1. When there are as many, `add` throws
   * `ERR_QUEUE_FULL`, and `addWhenRoom` waits. It holds back who brings new items, not those that the queue has
   * accepted: an item added again while it is held, or one whose delay is over, is queued all the same.
   *
   * @default Infinity
   */
  readonly maxSize?: number;
}

export const WORK_QUEUE_OPTIONS = {
  name: [requireString, 'workqueue'],
  clock: [requireClock, systemClock],
  metrics: [requireMetrics, undefined],
  keyOf: [requireFunction, identity],
  maxSize: [orInfinity(integer(1)), Infinity],
} satisfies OptionTable<WorkQueueOptions<unknown>>;

/** The options with every default filled in. */
export type ResolvedWorkQueueOptions<T> = Resolved<WorkQueueOptions<T>, typeof WORK_QUEUE_OPTIONS>;

export function resolveWorkQueueOptions<T>(options: WorkQueueOptions<T>): ResolvedWorkQueueOptions<T> {
  return readOptions('WorkQueue', options, WORK_QUEUE_OPTIONS);
}

function identity(item: unknown): unknown {
  return item;
}
