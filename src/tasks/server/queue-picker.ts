/** A queue that is served. */
interface PickedQueue {
  readonly name: string;
  readonly weight: number;
  /** In smooth weighted round robin: how far it is behind its share. */
  credit: number;
  /** Whether it may have tasks. */
  isReady: boolean;
  /** Whether it is skipped at present. */
  isResting: boolean;
  quota: number;
}

/** How many tasks to take from a queue. */
export interface Quota {
  readonly queue: string;
  readonly limit: number;
}

/**
 * Chooses the queues from which the next tasks are taken.
 *
 * HOW. Only queues that may have tasks are chosen. With strict priority the first of them gets all free slots. Otherwise smooth
 * weighted round robin distributes slots one by one (as in nginx: at each pick every queue gains its weight, the one with the most
 * credit is picked and pays the sum), so shares hold over any number of rounds, and an empty queue neither gains nor loses credit.
 * Whole rounds are computed at once. O(queues) a call, plus O(queues) for each slot of the last, partial round.
 *
 * WHY not asynq's shuffled list: it takes one task at a time from the first queue that has one; here a round takes many, with one
 * call per queue.
 */
export class QueuePicker {
  readonly #queues: readonly PickedQueue[];
  readonly #byName: ReadonlyMap<string, PickedQueue>;
  readonly #isStrict: boolean;

  /** @param priorities - integers of at least 1 by the names of the queues. */
  constructor(priorities: Readonly<Record<string, number>>, isStrict: boolean) {
    const divisor = Object.values(priorities).reduce(greatestCommonDivisor, 0);
    this.#queues = Object.entries(priorities)
      .map(([name, priority]) => ({
        name,
        weight: priority / divisor,
        credit: 0,
        isReady: true,
        isResting: false,
        quota: 0,
      }))
      .sort((a, b) => b.weight - a.weight);
    this.#byName = new Map(this.#queues.map((queue) => [queue.name, queue]));
    this.#isStrict = isStrict;
  }

  /** Whether a queue may have tasks, and does not rest. */
  get hasReady(): boolean {
    return this.#queues.some(isPickable);
  }

  /** A queue may have tasks. @returns whether it is served here. */
  markReady(name: string): boolean {
    const queue = this.#byName.get(name);
    if (queue !== undefined) queue.isReady = true;
    return queue !== undefined;
  }

  markAllReady(): void {
    for (const queue of this.#queues) queue.isReady = true;
  }

  /** A queue has no tasks until it is marked ready. */
  markEmpty(name: string): void {
    const queue = this.#byName.get(name);
    if (queue !== undefined) queue.isReady = false;
  }

  /** Skips a queue, or stops skipping it. */
  setResting(name: string, isResting: boolean): void {
    const queue = this.#byName.get(name);
    if (queue !== undefined) queue.isResting = isResting;
  }

  /**
   * Distributes slots among the queues that may have tasks; slots that a queue does not fill are for the next call. With strict
   * priority it returns one queue at a time.
   */
  pick(slots: number): Quota[] {
    const ready = this.#queues.filter(isPickable);
    const [first] = ready;
    if (first === undefined || slots <= 0) return [];
    if (this.#isStrict || ready.length === 1) return [{ queue: first.name, limit: slots }];
    deal(ready, slots);
    return ready.filter(({ quota }) => quota > 0).map(({ name, quota }) => ({ queue: name, limit: quota }));
  }
}

function isPickable({ isReady, isResting }: PickedQueue): boolean {
  return isReady && !isResting;
}

/** After as many picks as the sum of the weights, each queue was picked as often as its weight, and all credits are as before. */
function deal(queues: readonly PickedQueue[], slots: number): void {
  const sum = queues.reduce((total, { weight }) => total + weight, 0);
  const rounds = Math.floor(slots / sum);
  for (const queue of queues) queue.quota = queue.weight * rounds;
  for (let left = slots - rounds * sum; left > 0; left--) pickOne(queues, sum);
}

function pickOne(queues: readonly PickedQueue[], sum: number): void {
  let most: PickedQueue | undefined;
  for (const queue of queues) {
    queue.credit += queue.weight;
    if (most === undefined || queue.credit > most.credit) most = queue;
  }
  if (most === undefined) return;
  most.credit -= sum;
  most.quota++;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
