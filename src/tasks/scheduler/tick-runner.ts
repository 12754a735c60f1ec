import { setMaxListeners, type EventEmitter } from 'node:events';
import { BackOff } from '../../core/back-off.ts';
import { CoalescedRun } from '../../core/coalesced-run.ts';
import { EscapementError } from '../../core/errors.ts';
import { reportUncaught } from '../../core/report-uncaught.ts';
import { MINUTE_MS } from '../../core/units.ts';
import { isThenable } from '../../core/validate.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import { isUnavailable } from '../broker/broker-errors.ts';
import type { NewTask, TaskRecord } from '../broker/broker.ts';
import { emit } from '../reporting.ts';
import { settledWithin } from '../timed-work.ts';
import { TaskInfo } from '../info.ts';
import type { ScheduledEntry } from './scheduled-entry.ts';
import type { ResolvedSchedulerOptions, ScheduleTick } from './scheduler-options.ts';

/** Without jitter: each entry has its own ticks, so schedulers do not return to the broker in step. */
const PAUSES = { firstMs: 250, longestMs: 30_000, jitter: 0 };

/** How long the schema of a task may take, in milliseconds. */
const LONGEST_CHECK_MS = 2 * MINUTE_MS;

/** Events of a `Scheduler`. */
export interface SchedulerEvents {
  /** This scheduler has enqueued the task of a tick. */
  enqueued: [info: TaskInfo, tick: ScheduleTick];
  /** Another scheduler was first. */
  enqueuedElsewhere: [tick: ScheduleTick];
  /** The broker has refused the task, or was unavailable until the next tick was due. */
  enqueueFailed: [error: unknown, tick: ScheduleTick];
  /** A callback of the options has thrown. Without a listener it is an uncaught exception. */
  error: [error: unknown];
}

/** Outcome of a call to the broker; `lost`: the broker was unavailable until the next tick was due. */
type Outcome<R> =
  | { readonly kind: 'answered'; readonly answer: R }
  | { readonly kind: 'refused' | 'lost'; readonly error: unknown };

/**
 * Enqueues the ticks that are due: those of an entry one after another, oldest first; those of different entries concurrently. Every
 * scheduler tries every tick, and the broker accepts it from the first one (`enqueueTick`).
 */
export class TickRunner {
  readonly #options: ResolvedSchedulerOptions;
  readonly #timer: SystemTimer;
  readonly #emitter: EventEmitter<SchedulerEvents>;
  readonly #stopping = new AbortController();
  readonly #runs = new Map<ScheduledEntry, CoalescedRun>();

  constructor(options: ResolvedSchedulerOptions, timer: SystemTimer, emitter: EventEmitter<SchedulerEvents>) {
    this.#options = options;
    this.#timer = timer;
    this.#emitter = emitter;
    setMaxListeners(0, this.#stopping.signal); // each entry may wait: many listeners are not a leak
  }

  /** Enqueues the due ticks of an entry: called at each tick. */
  serve(entry: ScheduledEntry): void {
    const run = this.#runs.get(entry) ?? new CoalescedRun(() => this.#serve(entry));
    this.#runs.set(entry, run);
    run.trigger();
  }

  /** Completes a pending call of the broker, and starts none for this entry. */
  async remove(entry: ScheduledEntry): Promise<void> {
    entry.isRemoved = true;
    await this.#runs.get(entry)?.running;
    this.#runs.delete(entry);
  }

  /** Waits for pending calls of the broker; starts and repeats none. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const run of this.#runs.values()) await run.running;
  }

  async #serve(entry: ScheduledEntry): Promise<void> {
    while (entry.needsMark && this.#isServed(entry)) await this.#readMark(entry);
    for (const atMs of entry.dueAt(this.#wallNow())) {
      if (!this.#isServed(entry) || !(await this.#enqueue(entry, atMs))) break;
    }
  }

  /** The entry still needs its mark if the broker was unavailable until the next tick was due. */
  async #readMark(entry: ScheduledEntry): Promise<void> {
    const { broker, logger } = this.#options;
    const outcome = await this.#persist(entry, () => broker.lastTickMs(entry.queue, entry.id));
    if (outcome.kind === 'answered') {
      entry.setMark(outcome.answer, this.#wallNow());
      return;
    }
    const fields = { err: outcome.error, entryId: entry.id };
    logger.error(fields, 'scheduler: the last tick cannot be read, so missed ticks are unknown');
    if (outcome.kind === 'refused') entry.setMark(undefined, this.#wallNow());
  }

  /** @returns false if the broker was unavailable until the next tick was due. */
  async #enqueue(entry: ScheduledEntry, atMs: number): Promise<boolean> {
    const { preEnqueue } = this.#options;
    const tick: ScheduleTick = { entryId: entry.id, at: new Date(atMs) };
    this.#call(() => preEnqueue?.(entry.task, entry.options, tick));
    const outcome = await this.#attempt(entry, atMs);
    if (outcome.kind === 'answered') {
      entry.enqueued(atMs);
      await this.#report(outcome.answer, tick);
      return true;
    }
    if (outcome.kind === 'lost') {
      entry.giveUp(atMs);
      this.serve(entry); // once more: with backfill the tick is still due
    } else entry.settle(atMs);
    this.#reportFailure(entry, outcome.error, tick);
    return outcome.kind === 'refused';
  }

  async #attempt(entry: ScheduledEntry, atMs: number): Promise<Outcome<TaskRecord | undefined>> {
    const { broker } = this.#options;
    let task: NewTask;
    try {
      const checked = entry.task.check?.(entry.task);
      if (checked !== undefined) {
        // A schema that hangs delays its entry, but neither for ever nor the shutdown.
        const isChecked = await settledWithin(this.#timer, LONGEST_CHECK_MS, checked, this.#stopping.signal);
        if (!isChecked) return { kind: 'lost', error: checkExpired() };
        await checked;
      }
      task = entry.taskAt(atMs);
    } catch (error) {
      return { kind: 'refused', error };
    }
    return this.#persist(entry, () => broker.enqueueTick(task, { entryKey: entry.id, atMs }));
  }

  /** Calls the broker again while it is unavailable, until the entry's next tick is due. */
  async #persist<R>(entry: ScheduledEntry, call: () => Promise<R>): Promise<Outcome<R>> {
    const untilMs = entry.spec.next(this.#wallNow()) ?? Infinity;
    const backOff = new BackOff(PAUSES);
    for (;;) {
      try {
        return { kind: 'answered', answer: await call() };
      } catch (error) {
        if (isRefusal(error)) return { kind: 'refused', error };
        const fields = { err: error, entryId: entry.id };
        this.#options.logger.warn(fields, 'scheduler: the broker has failed, and is called again');
        await this.#pause(Math.min(backOff.next(), untilMs - this.#wallNow()));
        if (!this.#isServed(entry) || this.#wallNow() >= untilMs) return { kind: 'lost', error };
      }
    }
  }

  async #report(record: TaskRecord | undefined, tick: ScheduleTick): Promise<void> {
    const { postEnqueue, logger } = this.#options;
    const info = record === undefined ? undefined : new TaskInfo(record);
    this.#call(() => postEnqueue?.(info, undefined, tick));
    if (info === undefined) {
      emit(this.#emitter, 'enqueuedElsewhere', tick);
      return;
    }
    logger.debug({ entryId: tick.entryId, taskId: info.id }, 'scheduler: enqueued a task');
    emit(this.#emitter, 'enqueued', info, tick);
    await this.#record(info, tick);
  }

  #reportFailure(entry: ScheduledEntry, error: unknown, tick: ScheduleTick): void {
    const { postEnqueue, enqueueErrorHandler, logger } = this.#options;
    logger.error({ err: error, entryId: entry.id }, 'scheduler: a task was not enqueued');
    this.#call(() => postEnqueue?.(undefined, error, tick));
    this.#call(() => enqueueErrorHandler?.(entry.task, entry.options, error, tick));
    emit(this.#emitter, 'enqueueFailed', error, tick);
  }

  /** A gap in the history is only logged: it is for display. */
  async #record(info: TaskInfo, { entryId }: ScheduleTick): Promise<void> {
    const { broker, logger } = this.#options;
    try {
      await broker.recordEnqueueEvent(entryId, { taskId: info.id, atMs: this.#wallNow() });
    } catch (error) {
      logger.warn({ err: error, entryId }, 'scheduler: an enqueue is missing in the history');
    }
  }

  #call(callback: () => unknown): void {
    const threw = (error: unknown): void => {
      if (this.#emitter.listenerCount('error') === 0) reportUncaught(error);
      else emit(this.#emitter, 'error', error);
    };
    try {
      const result = callback();
      if (isThenable(result)) void result.then(undefined, threw);
    } catch (error) {
      threw(error);
    }
  }

  async #pause(pauseMs: number): Promise<void> {
    const { signal } = this.#stopping;
    await this.#timer.sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }

  #isServed(entry: ScheduledEntry): boolean {
    return !entry.isRemoved && !this.#stopping.signal.aborted;
  }

  #wallNow(): number {
    return this.#options.broker.clock.wallNow();
  }
}

function checkExpired(): EscapementError {
  const message = `the schema of the task has not settled within ${LONGEST_CHECK_MS} ms, or before the shutdown`;
  return new EscapementError('ERR_OPERATION_EXPIRED', message, { op: 'TaskType.read' });
}

/**
 * Whether a broker has refused a call rather than failed. After a failure the change may have been made; but another call is safe,
 * because the broker accepts a tick once. If only the reply was lost, the tick seems to be another scheduler's.
 */
function isRefusal(error: unknown): boolean {
  return error instanceof EscapementError && !isUnavailable(error);
}
