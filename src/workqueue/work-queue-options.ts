import { systemClock, type Clock } from '../core/clock.ts';
import { wrongType } from '../core/errors.ts';
import { requireClock } from '../core/require-clock.ts';
import {
  requireFunction,
  requireIntegerAtLeast,
  requireOptions,
  type OptionNames,
} from '../core/validate.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import { requireMetrics } from '../metrics/require-metrics.ts';

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

export const WORK_QUEUE_OPTIONS: OptionNames<WorkQueueOptions<unknown>> = {
  ...{ name: true, clock: true, metrics: true, keyOf: true, maxSize: true },
};

/** The options with every default filled in. */
export interface ResolvedWorkQueueOptions<T> {
  readonly name: string;
  readonly clock: Clock;
  readonly metrics: MetricsProvider | undefined;
  readonly keyOf: (item: T) => unknown;
  readonly maxSize: number;
}

export function resolveWorkQueueOptions<T>(options: WorkQueueOptions<T>): ResolvedWorkQueueOptions<T> {
  requireOptions('WorkQueue', options, WORK_QUEUE_OPTIONS);
  const { name = 'workqueue', clock = systemClock, metrics, keyOf = identity, maxSize = Infinity } = options;
  if (typeof name !== 'string') throw wrongType('name', 'a string', name);
  requireClock('clock', clock);
  if (metrics !== undefined) requireMetrics('metrics', metrics);
  requireFunction('keyOf', keyOf);
  if (maxSize !== Infinity) requireIntegerAtLeast('maxSize', 1, maxSize);
  return { name, clock, metrics, keyOf, maxSize };
}

function identity(item: unknown): unknown {
  return item;
}
