import type { ItemQueue } from './item-queue.ts';
import type { WaitingItems } from './waiting-items.ts';
import type { WorkQueueMetrics } from './work-queue-metrics.ts';

/** The door for the integrity checker, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.workqueue.internals');

/** What the queues built on another one, and the integrity checker, see of it. */
export interface WorkQueueInternals<T> {
  readonly items: ItemQueue<T>;
  readonly metrics: WorkQueueMetrics | undefined;
  /** What an item is told apart by. */
  readonly keyOf: (item: T) => unknown;
  /** Of a queue with delays. */
  waiting: WaitingItems<T> | undefined;
}
