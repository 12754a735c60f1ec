import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { EscapementError } from '../../core/errors.ts';
import { MINUTE_MS } from '../../core/units.ts';
import { requireString } from '../../core/validate.ts';
import { SystemTimer, type TimerId } from '../../timer/system-timer.ts';
import type { ScheduleEntry } from '../broker/broker.ts';
import { parseCronSpec } from './cron-spec.ts';
import { schedulerEntryInfoOf, type SchedulerEntryInfo } from '../info.ts';
import { Periodic, settledWithin, UNANSWERED_MS } from '../timed-work.ts';
import { requireTask, type Task } from '../task.ts';
import { mergeTaskOptions, requireConsistent } from '../task-options.ts';
import { entryIdOf, identityOf, ScheduledEntry } from './scheduled-entry.ts';
import {
  requireScheduleOptions,
  resolveBackfill,
  resolveSchedulerOptions,
  type ResolvedSchedulerOptions,
  type ScheduleOptions,
  type SchedulerOptions,
} from './scheduler-options.ts';
import { TickRunner, type SchedulerEvents } from './tick-runner.ts';

/** The longest wait, in milliseconds: after it the wall clock is read again, which may have been set. */
const LONGEST_WAIT_MS = MINUTE_MS;

/** A broker lists a scheduler for so many intervals after its last heartbeat: one that is late does no harm. */
const INTERVALS_TO_LIVE = 2;

/**
 * Enqueues tasks by the calendar.
 *
 * HOW. One timer waits for the earliest tick of all entries, and reads the wall clock at least once a minute. At a tick the task is
 * enqueued under an id that is made from the entry and the time, and the broker accepts each tick of an entry once. So there may be
 * any number of schedulers with the same entries, and no leader: each tick is enqueued once, by the first scheduler, and no tick is
 * late when a scheduler dies.
 *
 * Ticks that pass while no scheduler runs are skipped, unless the entry has a `backfill`: then, when a scheduler starts, it enqueues
 * those since the last tick that was enqueued, oldest first and within the limits. An entry that never ticked has missed none. While
 * a scheduler runs, an entry of which several ticks pass at once (the machine was suspended, the wall clock was set) runs at least
 * once. If the wall clock is set back by up to two hours, no tick is enqueued twice: the entry waits until the clock has reached the
 * same time again. If it is set back further, it was wrong before: the entry goes on from the present time. A tick more than five
 * minutes ahead of the broker's time (on Redis that of Redis) is refused.
 *
 * @example
 * ```ts
 * const scheduler = new Scheduler({ broker, location: 'Europe/Berlin' });
 * scheduler.register('0 6 * * mon-fri', new Task('report:daily'), { queue: 'low' });
 * scheduler.register('@every 30s', new Task('health:check'));
 * await scheduler.start();
 * ```
 */
export class Scheduler extends EventEmitter<SchedulerEvents> {
  /** Id of this scheduler: `host:pid:uuid`. */
  readonly id = `${hostname()}:${process.pid}:${randomUUID()}`;
  readonly #options: ResolvedSchedulerOptions;
  readonly #timer: SystemTimer;
  readonly #runner: TickRunner;
  readonly #heartbeat: Periodic;
  readonly #entries = new Map<string, ScheduledEntry>();
  #state: 'new' | 'starting' | 'active' | 'closed' = 'new';
  #wakeup: TimerId | undefined;
  #closing: Promise<void> | undefined;

  /** @throws TypeError or RangeError - an option has a wrong type or value. */
  constructor(options: SchedulerOptions) {
    super();
    this.#options = resolveSchedulerOptions(options);
    this.#timer = new SystemTimer({ name: 'scheduler', clock: this.#options.broker.clock });
    this.#runner = new TickRunner(this.#options, this.#timer, this);
    this.#heartbeat = this.#makeHeartbeat();
  }

  /**
   * Adds an entry. If the scheduler runs, the entry starts with its next tick.
   *
   * @param cronSpec - see {@link parseCronSpec}.
   * @param options - override the task's options. With a `taskId`, a tick is refused while the task of another tick exists; without
   * it, each tick has its own id. A `processInMs` counts from the tick.
   * @returns the entry's id.
   * @throws TypeError or RangeError - an argument is wrong.
   * @throws EscapementError `ERR_SCHEDULE_ENTRY` - there is an entry with that id; without an `id`: with the same spec, task and
   * options. `ERR_SCHEDULER_STATE` - the scheduler was shut down.
   */
  register(cronSpec: string, task: Task, options: ScheduleOptions = {}): string {
    if (this.#isClosed) throw closedError('register');
    const entry = this.#makeEntry(cronSpec, task, options);
    if (this.#entries.has(entry.id)) {
      const message = `there is an entry '${entry.id}' already: ${cronSpec}`;
      throw schedulerError('ERR_SCHEDULE_ENTRY', 'register', message);
    }
    this.#entries.set(entry.id, entry);
    if (this.#state === 'active') {
      this.#begin(entry);
      this.#arm();
      this.#heartbeat.hasten();
    }
    return entry.id;
  }

  /**
   * Removes an entry. A task that is being enqueued is still enqueued.
   *
   * @throws TypeError - the id is not a string. EscapementError `ERR_SCHEDULE_ENTRY` - there is no entry with that id.
   */
  unregister(id: string): void {
    requireString('id', id);
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      throw schedulerError('ERR_SCHEDULE_ENTRY', 'unregister', `there is no entry '${id}'`);
    }
    void this.#runner.remove(entry);
    this.#entries.delete(id);
    this.#arm();
    this.#heartbeat.hasten();
  }

  /** Whether there is an entry with that id. */
  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** Returns the entries, in the order in which they were registered. Empty after `shutdown`. */
  entries(): readonly SchedulerEntryInfo[] {
    return this.#scheduleEntries().map(schedulerEntryInfoOf);
  }

  /**
   * Starts to enqueue: from the next tick of each entry, or with `backfill` from the last one that was enqueued.
   *
   * @throws EscapementError `ERR_SCHEDULER_STATE` - the scheduler runs already, or was shut down. Also what the broker's `ping`
   * rejects with; then `start` can be called again.
   */
  async start(): Promise<void> {
    if (this.#state === 'closed') throw closedError('start');
    if (this.#state !== 'new') {
      throw schedulerError('ERR_SCHEDULER_STATE', 'start', 'the scheduler runs already');
    }
    this.#state = 'starting';
    await this.#options.broker.ping().catch((error: unknown) => {
      if (this.#state === 'starting') this.#state = 'new';
      throw error;
    });
    if (this.#isClosed) throw closedError('start');
    this.#state = 'active';
    for (const entry of this.#entries.values()) this.#begin(entry);
    this.#arm();
    this.#options.logger.info({ id: this.id, entries: this.#entries.size }, 'scheduler: started');
    this.#heartbeat.start();
    await this.#heartbeat.trigger();
  }

  /** Stops, waits for tasks that are being enqueued, and removes all entries. The broker stays open. Idempotent. */
  shutdown(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** `shutdown()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** @internal Printed by a console. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      state: this.#state,
      location: this.#options.location,
      entries: this.#entries.size,
    }));
  }

  get #isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Lists the entries at the broker: at once, and every interval if the broker forgets them. */
  #makeHeartbeat(): Periodic {
    const { broker, heartbeatIntervalMs, logger } = this.#options;
    const read = (): readonly ScheduleEntry[] => this.#scheduleEntries();
    const job = {
      intervalMs: broker.maintenance.includes('announceScheduler') ? heartbeatIntervalMs : undefined,
      run: () => broker.announceScheduler(this.id, read, heartbeatIntervalMs * INTERVALS_TO_LIVE),
      failed: (error: unknown) => {
        logger.warn({ err: error, id: this.id }, 'scheduler: its entries are not listed');
      },
    };
    return new Periodic(job, this.#timer);
  }

  #scheduleEntries(): ScheduleEntry[] {
    return Array.from(this.#entries.values(), (entry) => entry.toScheduleEntry());
  }

  async #withdraw(): Promise<void> {
    const { broker, logger } = this.#options;
    await this.#heartbeat.stop();
    try {
      await broker.withdrawScheduler(this.id);
    } catch (error) {
      logger.warn({ err: error, id: this.id }, 'scheduler: its entries are still listed');
    }
  }

  #makeEntry(cronSpec: string, task: Task, options: ScheduleOptions): ScheduledEntry {
    const { location, backfill: defaultBackfill } = this.#options;
    const spec = parseCronSpec(cronSpec, location);
    requireTask('task', task);
    requireScheduleOptions('Scheduler.register', options);
    const { id, backfill, ...over } = options;
    const taskOptions = mergeTaskOptions(task.options, over);
    requireConsistent(taskOptions, this.#options.broker.clock);
    return new ScheduledEntry(
      id ?? entryIdOf(identityOf(cronSpec, location, task, taskOptions)),
      spec,
      task,
      taskOptions,
      backfill === undefined ? defaultBackfill : resolveBackfill(backfill),
    );
  }

  #begin(entry: ScheduledEntry): void {
    entry.begin(this.#wallNow());
    if (entry.needsMark) this.#runner.serve(entry);
  }

  /** One wake-up for all entries: O(entries), which is microseconds for thousands, and at most once a tick. */
  #arm(): void {
    if (this.#wakeup !== undefined) this.#timer.cancel(this.#wakeup);
    this.#wakeup = undefined;
    if (this.#state !== 'active' || this.#entries.size === 0) return;
    let earliestMs = Infinity;
    for (const { nextMs } of this.#entries.values()) earliestMs = Math.min(earliestMs, nextMs);
    const waitMs = Math.min(earliestMs - this.#wallNow(), LONGEST_WAIT_MS);
    this.#wakeup = this.#timer.schedule(waitMs, this.#wake, undefined);
  }

  readonly #wake = (): void => {
    this.#wakeup = undefined;
    const nowMs = this.#wallNow();
    for (const entry of this.#entries.values()) {
      if (entry.passTo(nowMs)) this.#runner.serve(entry);
    }
    this.#arm();
  };

  async #close(): Promise<void> {
    const hasRun = this.#state === 'active';
    this.#state = 'closed';
    this.#arm();
    await this.#runner.stop();
    if (hasRun) await settledWithin(this.#timer, UNANSWERED_MS, this.#withdraw());
    this.#timer.close();
    this.#entries.clear();
    this.#options.logger.info({ id: this.id }, 'scheduler: shut down');
  }

  #wallNow(): number {
    return this.#options.broker.clock.wallNow();
  }
}

function schedulerError(
  code: 'ERR_SCHEDULER_STATE' | 'ERR_SCHEDULE_ENTRY',
  operation: string,
  message: string,
): EscapementError {
  return new EscapementError(code, message, { op: `Scheduler.${operation}` });
}

function closedError(operation: string): EscapementError {
  return schedulerError('ERR_SCHEDULER_STATE', operation, 'the scheduler was shut down');
}
