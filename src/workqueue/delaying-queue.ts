import { systemClock, type Clock } from '../core/clock.ts';
import { outOfRange, wrongType } from '../core/errors.ts';
import { checkOptions, objectWith, type OptionTable } from '../core/options.ts';
import type { SignalOptions } from '../core/signal-options.ts';
import { SystemTimer } from '../timer/system-timer.ts';
import { WaitingItems } from './waiting-items.ts';
import { INTERNALS } from './work-queue-internals.ts';
import { WORK_QUEUE_OPTIONS, type WorkQueueOptions } from './work-queue-options.ts';
import { WorkQueue } from './work-queue.ts';

/** Options of a `DelayingQueue`. All are checked when it is made. */
export interface DelayingQueueOptions<T> extends WorkQueueOptions<T> {
  /** For the durations that are measured, and for a timer of its own. @default that of `timer`, or systemClock */
  readonly clock?: Clock;
  /**
   * Where items wait. A timer that is passed in can be shared, and is not closed here.
   *
   * @default a SystemTimer of its own, made when it is needed and closed at shutdown
   */
  readonly timer?: SystemTimer;
}

const OPTIONS = {
  ...WORK_QUEUE_OPTIONS,
  timer: [objectWith('a SystemTimer', 'schedule', 'reschedule', 'cancel', 'close'), undefined],
} satisfies OptionTable<DelayingQueueOptions<unknown>>;

/**
 * A work queue whose items may be added later.
 *
 * An item waits at most once: asked for again, the earlier of the two times holds. An `add` brings a waiting item
 * forward, so that it is not processed a second time later.
 */
export class DelayingQueue<T> extends WorkQueue<T> {
  readonly #waiting: WaitingItems<T>;
  readonly #isTimerShared: boolean;
  #timer: SystemTimer | undefined;
  /** What was dropped at shutdown, until somebody asks. */
  #dropped: T[] = [];

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` or RangeError `ERR_OUT_OF_RANGE` - an option of another type or value.
   * TypeError `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(options: DelayingQueueOptions<T> = {}) {
    requireDelayingQueueOptions('DelayingQueue', options);
    const { timer, ...rest } = options;
    const { clock = timer?.clock ?? systemClock } = rest;
    super({ ...rest, clock });
    this.#timer = timer;
    this.#isTimerShared = timer !== undefined;
    this.#waiting = new WaitingItems(
      () => (this.#timer ??= new SystemTimer({ name: this.name, clock })),
      (item) => {
        this.#due(item);
      },
    );
    this[INTERNALS].waiting = this.#waiting;
  }

  /** Items that wait for their time. O(1). */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether an item waits for its time, or is parked. */
  isWaiting(item: T): boolean {
    return this.#waiting.has(this[INTERNALS].keyOf(item));
  }

  /** Queues an item now, as `WorkQueue.add`. One that waits is brought forward. */
  override add(item: T): void {
    super.add(item);
    if (this.#waiting.size > 0) this.#waiting.remove(this[INTERNALS].keyOf(item));
  }

  /**
   * Queues an item after `delayMs` milliseconds, never early. Waiting already, it keeps the earlier of the two times.
   * Queued or held, it is queued once more then. Ignored after shutdown.
   *
   * @param delayMs - 0 or less: now. `Infinity`: it is parked until it is added or cancelled.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `delayMs` is `NaN`.
   * @throws EscapementError `ERR_TIMER_CLOSED` - the timer that was passed in is closed: the item does not wait.
   */
  addAfter(item: T, delayMs: number): void {
    if (typeof delayMs !== 'number') throw wrongType('delayMs', 'a number of milliseconds', delayMs);
    if (Number.isNaN(delayMs)) throw outOfRange('delayMs', 'a number of milliseconds', delayMs);
    if (this.shuttingDown) return;
    if (delayMs <= 0) this.add(item);
    else this.#waiting.add(this[INTERNALS].keyOf(item), item, delayMs);
    this[INTERNALS].metrics?.retried();
  }

  /** Takes an item out that waits: it is not queued then. @returns whether it waited. */
  cancelDelayed(item: T): boolean {
    return this.#waiting.size > 0 && this.#waiting.remove(this[INTERNALS].keyOf(item));
  }

  /**
   * As `WorkQueue.shutDown`. Items that wait are dropped, and their timers cancelled.
   *
   * @returns what was dropped, by its times; each item once, so nothing the second time.
   */
  override shutDown(): T[] {
    super.shutDown();
    this.#dropWaiting();
    return this.#dropped.splice(0);
  }

  /** As `WorkQueue.shutDownWithDrain`. Items that wait are not waited for: `shutDown` returns them, before or after. */
  override shutDownWithDrain(options: SignalOptions = {}): Promise<void> {
    const drained = super.shutDownWithDrain(options);
    if (this.shuttingDown) this.#dropWaiting(); // or the options were wrong, and nothing has changed
    return drained;
  }

  #dropWaiting(): void {
    if (this.#waiting.size > 0) this.#dropped = this.#waiting.clear();
    if (!this.#isTimerShared) this.#timer?.close();
  }

  /** The time of an item has come. It is accepted already, so a full queue takes it. */
  #due(item: T): void {
    const { items, keyOf } = this[INTERNALS];
    items.add(keyOf(item), item);
  }
}

/** For a subclass to call before this class does, so that the error names the subclass. */
export function requireDelayingQueueOptions<T>(subject: string, options: DelayingQueueOptions<T>): void {
  checkOptions(subject, options, OPTIONS);
}
