import { systemClock, type Clock } from '../core/clock.ts';
import { checkOptions, objectWith, readOptions, type OptionTable } from '../core/options.ts';
import type { SignalOptions } from '../core/signal-options.ts';
import { invalidTimeout } from '../core/validate.ts';
import { SystemTimer } from '../timer/system-timer.ts';
import { WaitingItems } from './waiting-items.ts';
import { INTERNALS, WORK_QUEUE_OPTIONS, WorkQueue, type WorkQueueOptions } from './work-queue.ts';

/** Options of a `DelayingQueue`. All are checked by its constructor. */
export interface DelayingQueueOptions<T> extends WorkQueueOptions<T> {
  /** The clock of measured durations, and of a timer of its own. @default that of `timer`, or systemClock */
  readonly clock?: Clock | undefined;
  /**
   * The timer of the delays. It can be shared, and is not closed by the queue.
   *
   * @default a SystemTimer of its own, made when it is needed and closed at shutdown
   */
  readonly timer?: SystemTimer | undefined;
}

const OPTIONS = {
  ...WORK_QUEUE_OPTIONS,
  timer: [objectWith('a SystemTimer', 'schedule', 'reschedule', 'cancel', 'close'), undefined],
} satisfies OptionTable<DelayingQueueOptions<unknown>>;

/**
 * A work queue whose items may be added with a delay.
 *
 * An item waits at most once: of two due times the earlier one holds. An `add` promotes a waiting item, so that it is not
 * processed a second time later.
 */
export class DelayingQueue<T> extends WorkQueue<T> {
  readonly #waiting: WaitingItems<T>;
  readonly #isTimerShared: boolean;
  #timer: SystemTimer | undefined;
  /** Items that were dropped at shutdown and that `shutDown` has not returned yet. */
  #dropped: T[] = [];

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` or RangeError `ERR_OUT_OF_RANGE` - an option of another type or value.
   * TypeError `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(options: DelayingQueueOptions<T> = {}) {
    const { timer, ...rest } = readOptions('DelayingQueue', options, OPTIONS);
    const { clock = timer?.clock ?? systemClock } = options;
    super({ ...rest, clock });
    this.#timer = timer;
    this.#isTimerShared = timer !== undefined;
    this.#waiting = new WaitingItems(
      () => (this.#timer ??= new SystemTimer({ name: this.name, clock })),
      // It was accepted before, so `maxSize` does not matter.
      (key, item) => {
        this[INTERNALS].items.add(key, item);
      },
    );
    this[INTERNALS].waiting = this.#waiting;
  }

  /** Number of waiting items. O(1). */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether an item is waiting: delayed, or parked. */
  isWaiting(item: T): boolean {
    return this.#waiting.has(this[INTERNALS].keyOf(item));
  }

  /** Queues an item now, as `WorkQueue.add`. A waiting item is promoted. */
  override add(item: T): void {
    super.add(item);
    if (this.#waiting.size > 0) this.#waiting.remove(this[INTERNALS].keyOf(item));
  }

  /**
   * Queues an item after `delayMs` milliseconds, never early. An item that is waiting already keeps the earlier due time. An item
   * that is queued or held is queued once more then. Ignored after shutdown.
   *
   * @param delayMs - 0 or less: now. `Infinity`: it is parked until it is added or cancelled.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `delayMs` is `NaN`.
   * @throws EscapementError `ERR_TIMER_CLOSED` - the timer that was passed in is closed: the item is not added.
   */
  addAfter(item: T, delayMs: number): void {
    if (typeof delayMs !== 'number' || Number.isNaN(delayMs)) throw invalidTimeout('delayMs', delayMs);
    if (this.shuttingDown) return;
    if (delayMs <= 0) this.add(item);
    else {
      const key = this[INTERNALS].keyOf(item);
      // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- keyOf may have shut it down
      if (this.shuttingDown) return;
      this.#waiting.add(key, item, delayMs);
    }
    this[INTERNALS].metrics?.retried();
  }

  /** Removes a waiting item, which is not queued then. @returns whether it was waiting. */
  cancelDelayed(item: T): boolean {
    return this.#waiting.size > 0 && this.#waiting.remove(this[INTERNALS].keyOf(item));
  }

  /**
   * As `WorkQueue.shutDown`. Waiting items are dropped, and their timers cancelled.
   *
   * @returns the dropped items in order of their due times; an empty array the second time.
   */
  override shutDown(): T[] {
    super.shutDown();
    this.#dropWaiting();
    return this.#dropped.splice(0);
  }

  /** As `WorkQueue.shutDownWithDrain`. Waiting items are dropped: `shutDown` returns them, before or after. */
  override shutDownWithDrain(options: SignalOptions = {}): Promise<void> {
    const drained = super.shutDownWithDrain(options);
    if (this.shuttingDown) this.#dropWaiting(); // unless the options were invalid
    return drained;
  }

  #dropWaiting(): void {
    if (this.#waiting.size > 0) this.#dropped = this.#waiting.clear();
    if (!this.#isTimerShared) this.#timer?.close();
  }
}

/** Checks the options of a subclass, so that the error names it. */
export function requireDelayingQueueOptions<T>(subject: string, options: DelayingQueueOptions<T>): void {
  checkOptions(subject, options, OPTIONS);
}
