import type { LeasedTask } from '../broker/broker.ts';
import { BackOff } from './back-off.ts';
import { HostTurn } from './host-turn.ts';
import { serverClosed } from './interruptions.ts';
import { Latch } from './latch.ts';
import { QueuePicker, type Quota } from './queue-picker.ts';
import type { RunTable } from './run-table.ts';
import type { ServerParts } from './server-parts.ts';
import { endedWithin, settledWithin } from './settled-within.ts';
import { TaskRun, type Moment, type RunSettings } from './task-run.ts';
import type { TaskWorker } from './task-worker.ts';

/** What a processor needs. */
export interface ProcessorOptions {
  readonly parts: ServerParts;
  readonly runs: RunTable;
  readonly worker: TaskWorker;
  /** Tasks were taken, and are about to run. */
  readonly onTaken: (runs: readonly TaskRun[]) => void;
  /** They could not be taken. */
  readonly onError: (error: unknown) => void;
}

/**
 * Takes tasks while there is room, and has them worked on: one loop, however many places there are.
 *
 *      room? ──► queues that may have something? ──► their quotas ──► dequeue, all queues at once ──► work
 *        ▲ no: a place becomes free   ▲ no: a hint, or the time to poll          │
 *        └────────────────────────────┴──────────────────────────────────────────┘
 *
 * One call takes as many tasks as there is room for. A queue that the broker cannot be asked for rests for a while (B11),
 * and does not keep the others from being served.
 */
export class Processor {
  readonly #options: ProcessorOptions;
  readonly #settings: RunSettings;
  readonly #picker: QueuePicker;
  readonly #latch: Latch;
  /** Of queues that could not be asked. */
  readonly #backOffs = new Map<string, BackOff>();
  readonly #turn = new HostTurn();
  #nextPollMs = 0;
  #isStopped = false;
  #loop: Promise<void> = Promise.resolve();
  #whenIdle: (() => void) | undefined;

  constructor(options: ProcessorOptions) {
    const { broker, options: serverOptions, timer } = options.parts;
    const { queues, strictPriority, leaseMs, baseContext } = serverOptions;
    this.#options = options;
    this.#settings = { broker, leaseMs, baseContext };
    this.#picker = new QueuePicker(queues, strictPriority);
    this.#latch = new Latch(timer);
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** There may be something in a queue. */
  hint(queue: string): void {
    if (this.#picker.markReady(queue)) this.#latch.wake();
  }

  /** There may be something in any queue. */
  hintAll(): void {
    this.#picker.markAllReady();
    this.#latch.wake();
  }

  /** A place is free. */
  freed(run: TaskRun): void {
    this.#options.runs.remove(run);
    this.#latch.wake();
    if (this.#options.runs.size === 0) this.#whenIdle?.();
  }

  /** Takes nothing more. */
  stop(): void {
    this.#isStopped = true;
    this.#latch.wake();
  }

  /** Waits for what runs; interrupts it when the time for that is over. */
  async shutdown(): Promise<void> {
    const { runs, worker, parts } = this.#options;
    const { shutdownTimeoutMs, leaseMs } = parts.options;
    this.stop();
    const idle = this.#idle();
    const isWorking = (): boolean => runs.size > 0;
    if ((await endedWithin(parts.timer, shutdownTimeoutMs, idle, isWorking)) || !isWorking()) return;
    const reason = serverClosed();
    for (const run of runs.list()) worker.interrupt(run, reason);
    // The grace ends by itself; a write that takes longer than the lease makes no difference.
    await settledWithin(parts.timer, parts.options.graceMs + leaseMs, idle);
  }

  async #idle(): Promise<void> {
    await this.#loop;
    if (this.#options.runs.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  async #run(): Promise<void> {
    const { runs, parts } = this.#options;
    const { clock } = parts.broker;
    while (!this.#isStopped) {
      if (runs.room === 0) await this.#latch.wait();
      else if (this.#picker.hasReady) await this.#round(runs.room);
      else if (parts.broker.isSelfDriven) await this.#latch.wait();
      else if (clock.now() >= this.#nextPollMs) this.#poll();
      else await this.#latch.wait(this.#nextPollMs - clock.now());
    }
  }

  async #round(room: number): Promise<void> {
    const quotas = this.#picker.pick(room);
    const [first] = quotas;
    for (const { queue } of quotas) this.#picker.markEmpty(queue); // a hint from now on may be of something new
    if (quotas.length === 1 && first !== undefined) await this.#take(first);
    else await Promise.all(quotas.map((quota) => this.#take(quota)));
    if (!this.#picker.hasReady) this.#setNextPoll();
  }

  /** What a queue gives is worked on, whatever others say. Never rejects. */

  async #take({ queue, limit }: Quota): Promise<void> {
    const { broker, leaseMs } = this.#settings;
    const moment: Moment = { nowMs: broker.clock.now(), wallNowMs: broker.clock.wallNow() };
    let taken: readonly LeasedTask[];
    try {
      taken = await broker.dequeue(queue, limit, leaseMs);
    } catch (error) {
      this.#rest(queue, error);
      return;
    }
    this.#backOffs.delete(queue);
    if (taken.length === limit) this.#picker.markReady(queue);
    if (taken.length > 0) await this.#work(taken.map((leased) => this.#enter(leased, moment)));
  }

  #enter(leased: LeasedTask, moment: Moment): TaskRun {
    const run = new TaskRun(leased, moment, this.#settings);
    this.#options.runs.add(run);
    return run;
  }

  /** The host has its turn now and then: else handlers that never wait would keep leases from being renewed. */
  async #work(runs: readonly TaskRun[]): Promise<void> {
    const { worker, onTaken } = this.#options;
    const { clock } = this.#settings.broker;
    if (!this.#isStopped) onTaken(runs);
    for (const [i, run] of runs.entries()) {
      let nowMs = clock.now();
      if (this.#turn.isDue(nowMs)) {
        await this.#turn.next();
        nowMs = clock.now();
      }
      if (this.#mustStop()) {
        await this.#putBack(runs.slice(i));
        return;
      }
      worker.work(run, nowMs);
    }
  }

  /** A call, because it may change while the loop waits, and the compiler does not know. */
  #mustStop(): boolean {
    return this.#isStopped;
  }

  /** The last one first: each goes to the head of its queue. */
  async #putBack(runs: readonly TaskRun[]): Promise<void> {
    for (const run of runs.toReversed()) await this.#options.worker.putBack(run);
  }

  /** The broker could not be asked for a queue: it is left alone for a while, whatever hints say. */
  #rest(queue: string, error: unknown): void {
    const { parts, onError } = this.#options;
    const backOff = this.#backOffs.get(queue) ?? new BackOff();
    this.#backOffs.set(queue, backOff);
    this.#picker.markReady(queue);
    this.#picker.setResting(queue, true);
    if (!this.#isStopped) parts.timer.schedule(backOff.next(), this.#endRest, queue);
    parts.logger.warn({ queue, err: error }, 'tasks not taken');
    onError(error);
  }

  readonly #endRest = (queue: string): void => {
    this.#picker.setResting(queue, false);
    this.#latch.wake();
  };

  #poll(): void {
    this.#picker.markAllReady();
    this.#setNextPoll();
  }

  /** asynq's: from half the interval to one and a half. */
  #setNextPoll(): void {
    const { broker, options } = this.#options.parts;
    this.#nextPollMs = broker.clock.now() + options.pollIntervalMs * (0.5 + Math.random());
  }
}
