import TinyQueue from 'tinyqueue';
import type { TimerTaskList } from './timer-table.ts';

/**
 * The buckets that wait, earliest first: what lets the timer sleep until something is due and never tick through
 * empty time. It holds buckets and not tasks, so it stays below `wheelSize × levels` however many tasks wait.
 *
 * A heap cannot give up an element in its middle, so a bucket that is emptied by cancellation stays queued and
 * counts as absent; it is dropped when it comes to the top, or filled again before that.
 *
 * Costs: `offer` and taking out are O(log buckets), amortised over the entries of a bucket.
 */
export class DelayQueue {
  readonly #heap = new TinyQueue<TimerTaskList>([], compareBuckets);

  /** Puts a bucket in that is not. Its expiration stays for as long as it is queued. */
  offer(bucket: TimerTaskList, expirationMs: number): void {
    bucket.expirationMs = expirationMs;
    bucket.isQueued = true;
    this.#heap.push(bucket);
  }

  /** The earliest bucket that holds tasks. */
  peek(): TimerTaskList | undefined {
    for (let bucket = this.#heap.peek(); bucket !== undefined; bucket = this.#heap.peek()) {
      if (!bucket.isEmpty) return bucket;
      this.#drop();
    }
    return undefined;
  }

  /** Takes out the earliest bucket if it holds tasks and expires at or before `nowMs`. */
  poll(nowMs: number): TimerTaskList | undefined {
    const bucket = this.peek();
    if (bucket === undefined || bucket.expirationMs > nowMs) return undefined;
    this.#drop();
    return bucket;
  }

  /** The expirations of the buckets that hold tasks, ascending, equal ones repeated. O(buckets log buckets). */
  expirations(): number[] {
    const waiting = this.#heap.data.filter((bucket) => !bucket.isEmpty);
    return waiting.map((bucket) => bucket.expirationMs).sort((a, b) => a - b);
  }

  /** Every bucket in the heap, in no order, empty ones included: for the integrity checker. */
  get buckets(): readonly TimerTaskList[] {
    return this.#heap.data;
  }

  #drop(): void {
    const bucket = this.#heap.pop();
    if (bucket !== undefined) bucket.isQueued = false;
  }
}

/** Of two buckets that expire together the finer one goes first: its tasks arrived in it earlier. */
function compareBuckets(a: TimerTaskList, b: TimerTaskList): number {
  return a.expirationMs - b.expirationMs || a.tickMs - b.tickMs;
}
