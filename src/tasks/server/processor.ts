import { BackOff } from '../../core/back-off.ts';
import { inOwnTurn, TurnBudget } from '../../core/own-turn.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import type { LeasedTask } from '../broker/broker.ts';
import { endedWithin, settledWithin } from '../timed-work.ts';
import type { LeaseKeeper } from './leases.ts';
import { recover } from './maintenance.ts';
import type { Reports } from './reports.ts';
import { serverClosed, TaskRun, type RunSettings, type RunTable, type Timestamp } from './run.ts';

/**
 * Takes tasks while slots are free, and starts them: one loop, whatever the concurrency.
 *
 *      free slots?  ──► queues that may have tasks? ──► their quotas ──► dequeue, all queues at once ──► start the runs
 *        ▲ no: until a slot is free    ▲ no: until a notification, or the time to poll          │
 *        └─────────────────────────────┴────────────────────────────────────────────────────────┘
 *
 * One call takes as many tasks as there are free slots. A queue whose dequeue has failed rests for a while, and does not keep the
 * others from being served. (asynq tries a failing broker again without any wait.)
 */
export class Processor {
  readonly #settings: RunSettings;
  readonly #latch: Latch;
  readonly #runs: RunTable;
  readonly #leases: LeaseKeeper;
  readonly #reports: Reports;
  readonly #picker: QueuePicker;
  readonly #isPolling: boolean;
  /** Back-offs of the queues whose dequeue has failed. */
  readonly #backOffs = new Map<string, BackOff>();
  readonly #turn = new HostTurn();
  #nextPollMs = 0;
  #isStopped = false;
  #loop: Promise<void> = Promise.resolve();

  /** @param latch - woken by `runs` too. */
  constructor(settings: RunSettings, latch: Latch, runs: RunTable, leases: LeaseKeeper, reports: Reports) {
    const { options } = settings;
    this.#settings = settings;
    this.#latch = latch;
    this.#runs = runs;
    this.#leases = leases;
    this.#reports = reports;
    this.#picker = new QueuePicker(options.queues, options.strictPriority);
    this.#isPolling = options.broker.maintenance.includes('dequeue');
  }

  start(): void {
    this.#loop = this.#run();
  }

  notify(queue: string): void {
    if (this.#picker.markReady(queue)) this.#latch.wake();
  }

  notifyAll(): void {
    this.#picker.markAllReady();
    this.#latch.wake();
  }

  stop(): void {
    this.#isStopped = true;
    this.#latch.wake();
  }

  /** Waits for the runs, and interrupts those that have not ended in time. */
  async shutdown(): Promise<void> {
    const { options, timer } = this.#settings;
    const { shutdownTimeoutMs, graceMs, leaseMs } = options;
    const runs = this.#runs;
    this.stop();
    const idle = this.#loop.then(() => runs.empty());
    const isWorking = (): boolean => runs.size > 0;
    if ((await endedWithin(timer, shutdownTimeoutMs, idle, isWorking)) || !isWorking()) return;
    const reason = serverClosed();
    // The last one first: each goes to the head of its queue when it ends.
    for (const run of runs.list().sort((a, b) => b.leased.epoch - a.leased.epoch)) run.interrupt(reason);
    // The grace ends by itself; a write that takes longer than the lease makes no difference.
    await settledWithin(timer, graceMs + leaseMs, idle);
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const { capacityLeft } = this.#runs;
      if (capacityLeft === 0) await this.#latch.wait();
      else if (this.#isPolling && this.#nowMs() >= this.#nextPollMs) this.#poll();
      else if (this.#picker.hasReady) await this.#round(capacityLeft);
      else if (this.#isPolling) await this.#latch.wait(this.#nextPollMs - this.#nowMs());
      else await this.#latch.wait();
    }
  }

  async #round(capacity: number): Promise<void> {
    const quotas = this.#picker.pick(capacity);
    const [first] = quotas;
    for (const { queue } of quotas) this.#picker.markEmpty(queue); // a notification from now on may be of a new task
    if (quotas.length === 1 && first !== undefined) await this.#take(first);
    else await Promise.all(quotas.map((quota) => this.#take(quota)));
    if (!this.#picker.hasReady) this.#setNextPoll();
  }

  /** Starts what one queue returns, without waiting for the other queues. Never rejects. */
  async #take({ queue, limit }: Quota): Promise<void> {
    const { broker, leaseMs } = this.#settings.options;
    const leasedAt: Timestamp = { nowMs: broker.clock.now(), wallNowMs: broker.clock.wallNow() };
    let taken: readonly LeasedTask[];
    try {
      taken = await broker.dequeue(queue, limit, leaseMs);
    } catch (error) {
      this.#rest(queue, error);
      return;
    }
    this.#backOffs.delete(queue);
    if (taken.length === limit) this.#picker.markReady(queue);
    const runs = taken
      .filter((leased) => this.#mayRun(leased))
      .map((leased) => new TaskRun(leased, leasedAt, this.#settings));
    for (const run of runs) this.#runs.add(run);
    if (runs.length > 0) await this.#start(runs);
  }

  /** A broker that was opened again has counted tasks as recovered whose worker was in the process that died. */
  #mayRun(leased: LeasedTask): boolean {
    const { options } = this.#settings;
    if (leased.recoveries <= options.maxRecoveries) return true;
    void recover(options, this.#reports, leased, leased.recoveries);
    return false;
  }

  async #start(runs: readonly TaskRun[]): Promise<void> {
    if (!this.#isStopped) this.#leases.watch(runs);
    for (const [i, run] of runs.entries()) {
      let nowMs = this.#nowMs();
      if (this.#turn.isDue(nowMs)) {
        await this.#turn.next();
        nowMs = this.#nowMs();
      }
      if (this.#isStopped) {
        // The last one first: each goes to the head of its queue. Brokers keep the order of calls.
        await Promise.all(Array.from(runs.slice(i).reverse(), (left) => left.putBack()));
        return;
      }
      this.#reports.started(run);
      run.start(nowMs);
    }
  }

  /** Leaves a queue alone for a while, whatever is notified. */
  #rest(queue: string, error: unknown): void {
    const { options, timer } = this.#settings;
    const backOff = this.#backOffs.get(queue) ?? new BackOff();
    this.#backOffs.set(queue, backOff);
    this.#picker.markReady(queue);
    this.#picker.setResting(queue, true);
    if (!this.#isStopped) timer.schedule(backOff.next(), this.#endRest, queue);
    options.logger.warn({ queue, err: error }, 'tasks not taken');
    this.#reports.health(error);
  }

  readonly #endRest = (queue: string): void => {
    this.#picker.setResting(queue, false);
    this.#latch.wake();
  };

  /** Called also while other queues have tasks: asynq's clients do not notify of theirs. */
  #poll(): void {
    this.#picker.markAllReady();
    this.#setNextPoll();
  }

  /** Waits as asynq does: from half the interval to one and a half. */
  #setNextPoll(): void {
    this.#nextPollMs = this.#nowMs() + this.#settings.options.pollIntervalMs * (0.5 + Math.random());
  }

  #nowMs(): number {
    return this.#settings.timer.clock.now();
  }
}

/**
 * Where one loop waits until it may have something to do. A wake-up before the wait is kept, so that none is missed between a
 * check and the wait that follows it.
 */
export class Latch {
  readonly #timer: SystemTimer;
  #isSet = false;
  #resolve: (() => void) | undefined;

  constructor(timer: SystemTimer) {
    this.#timer = timer;
  }

  wake(): void {
    if (this.#resolve === undefined) {
      this.#isSet = true;
      return;
    }
    const resolve = this.#resolve;
    this.#resolve = undefined;
    resolve();
  }

  /** Resolves when it is woken, or after `timeoutMs`. */
  async wait(timeoutMs?: number): Promise<void> {
    if (this.#isSet) {
      this.#isSet = false;
      return;
    }
    const woken = new Promise<void>((resolve) => {
      this.#resolve = resolve;
    });
    if (timeoutMs === undefined) return woken;
    const id = this.#timer.schedule(timeoutMs, wake, this);
    await woken;
    this.#timer.cancel(id);
  }
}

const wake = (latch: Latch): void => {
  latch.wake();
};

/** How long handlers may hold the event loop before the host has its turn, in milliseconds. */
const LONGEST_TURN_MS = 10;

/**
 * Gives the host its turn between handlers that never wait: after many of them, or after a few slow ones. Otherwise no lease would
 * be renewed and no cancellation received while there are tasks.
 */
class HostTurn {
  readonly #budget = new TurnBudget();
  #startedMs = 0;
  /** Whether the start of this turn of the event loop is known. */
  #isTimed = false;

  /** Called before a handler. @returns whether the host is due a turn first: see `next`. */
  isDue(nowMs: number): boolean {
    if (!this.#isTimed) this.#time(nowMs);
    return this.#budget.spend() || nowMs - this.#startedMs > LONGEST_TURN_MS;
  }

  next(): Promise<void> {
    return this.#budget.next();
  }

  #time(nowMs: number): void {
    this.#isTimed = true;
    this.#startedMs = nowMs;
    inOwnTurn(() => {
      this.#isTimed = false;
    });
  }
}

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

interface Quota {
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
    if (first === undefined) return [];
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
