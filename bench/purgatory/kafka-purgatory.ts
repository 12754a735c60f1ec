/**
 * A small model of Kafka's design on our timer, which measures the cost of operations that do not know their watchers.
 *
 *      key map                       operations
 *      'a' ──► [A, B, C, …]          A: completed, and still listed under 'a' and 'b'
 *      'b' ──► [A, C, …]
 *
 * A completed operation stays in the lists of all its keys until the key is checked, or until a purge goes through
 * every list of every key. A purge runs when more than 1 000 operations are estimated to be dead. The estimate is made
 * whenever the timer has advanced, every 200 ms at least. Locks, shards and metrics are left out, because one thread
 * does not need them.
 */
import { SystemTimer, TimerTask } from 'escapement';

/** Kafka's `purge.interval.requests`. */
const DEFAULT_PURGE_INTERVAL = 1_000;
/** Longest step by which its `ExpirationReaper` advances the clock. */
const REAPER_WAIT_MS = 200;

export abstract class KafkaOperation extends TimerTask {
  declare isCompleted: boolean;

  constructor(delayMs: number) {
    super(delayMs);
    this.isCompleted = false;
  }

  abstract tryComplete(): boolean;
  abstract onComplete(): void;
  abstract onExpiration(): void;

  forceComplete(): boolean {
    if (this.isCompleted) return false;
    this.isCompleted = true;
    this.cancel();
    this.onComplete();
    return true;
  }

  override run(): void {
    if (this.forceComplete()) this.onExpiration();
  }
}

export interface KafkaPurgatoryOptions {
  /** A timer that the caller advances, and then calls `afterAdvance`. @default a timer of its own and a reaper */
  readonly timer?: SystemTimer;
  readonly purgeInterval?: number;
}

export class KafkaPurgatory {
  readonly #lists = new Map<string, KafkaOperation[]>();
  readonly #timer: SystemTimer;
  readonly #purgeInterval: number;
  #estimatedTotal = 0;
  #isClosed = false;
  /** Number of entries in all lists, dead ones included. Kafka counts them on every call. */
  watched = 0;
  purges = 0;

  constructor({ timer, purgeInterval = DEFAULT_PURGE_INTERVAL }: KafkaPurgatoryOptions = {}) {
    this.#purgeInterval = purgeInterval;
    this.#timer = timer ?? new SystemTimer({ name: 'kafka', autoStart: false });
    if (timer === undefined) void this.#reap();
  }

  /** Number of operations that wait for their timeout. */
  get numDelayed(): number {
    return this.#timer.size;
  }

  tryCompleteElseWatch(operation: KafkaOperation, keys: readonly string[]): boolean {
    if (operation.tryComplete()) return true;
    for (const key of keys) this.#watch(operation, key);
    this.#estimatedTotal++;
    if (operation.tryComplete()) return true;
    this.#timer.add(operation);
    return false;
  }

  /** Tries the operations listed under a key, and removes those that are completed. */
  checkAndComplete(key: string): number {
    const list = this.#lists.get(key);
    if (list === undefined) return 0;
    let completed = 0;
    this.#keep(key, list, (operation) => {
      if (operation.isCompleted) return false;
      if (!operation.tryComplete()) return true;
      completed++;
      return false;
    });
    return completed;
  }

  /** Purges if enough operations seem to be dead, as Kafka does whenever its timer has advanced. */
  afterAdvance(): void {
    if (this.#estimatedTotal - this.numDelayed <= this.#purgeInterval) return;
    this.#estimatedTotal = this.numDelayed;
    this.purges++;
    for (const [key, list] of this.#lists) this.#keep(key, list, ({ isCompleted }) => !isCompleted);
  }

  /** Pending operations neither complete nor expire, as in Kafka. */
  close(): void {
    this.#isClosed = true;
    this.#timer.close();
    this.#lists.clear();
  }

  #watch(operation: KafkaOperation, key: string): void {
    const list = this.#lists.get(key);
    if (list === undefined) this.#lists.set(key, [operation]);
    else list.push(operation);
    this.watched++;
  }

  /** Removes operations for which `stays` is false, in place; removes the key of an empty list. */
  #keep(key: string, list: KafkaOperation[], stays: (operation: KafkaOperation) => boolean): void {
    let kept = 0;
    for (const operation of list) if (stays(operation)) list[kept++] = operation;
    this.watched -= list.length - kept;
    list.length = kept;
    if (kept === 0) this.#lists.delete(key);
  }

  /** Kafka's reaper thread. */
  async #reap(): Promise<void> {
    while (!this.#isClosed) {
      await this.#timer.advanceClock(REAPER_WAIT_MS);
      this.afterAdvance();
    }
  }
}
