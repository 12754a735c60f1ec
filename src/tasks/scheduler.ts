import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError } from '../core/errors.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { SystemTimer, type TimerId } from '../timer/system-timer.ts';
import { parseCronSpec } from './cron-spec.ts';
import { schedulerEntryInfoOf, type SchedulerEntryInfo } from './inspector-info.ts';
import { resolveBackfill } from './scheduler/backfill.ts';
import { entryIdOf, identityOf, mergeTaskOptions } from './scheduler/entry-identity.ts';
import { Heartbeat } from './scheduler/heartbeat.ts';
import { ScheduledEntry } from './scheduler/scheduled-entry.ts';
import {
  requireScheduleOptions,
  resolveSchedulerOptions,
  SCHEDULER_OPTIONS,
  type ResolvedSchedulerOptions,
  type ScheduleOptions,
  type SchedulerOptions,
  type ScheduleTick,
} from './scheduler/scheduler-options.ts';
import { TickRunner } from './scheduler/tick-runner.ts';
import { settledWithin, UNANSWERED_MS } from './server/settled-within.ts';
import type { TaskInfo } from './task-info.ts';
import { requireTask, type Task } from './task.ts';
import { tell } from './tell.ts';

/** What a scheduler tells. */
export interface SchedulerEvents {
  /** This scheduler has enqueued the task of a tick. */
  enqueued: [info: TaskInfo, tick: ScheduleTick];
  /** Another scheduler was first. */
  enqueuedElsewhere: [tick: ScheduleTick];
  /** The broker has refused, or could not be reached until the next tick was due. */
  enqueueFailed: [error: unknown, tick: ScheduleTick];
  /** A callback of the options has thrown. With nobody to hear it, it is an uncaught exception. */
  error: [error: unknown];
}

/** How long one wait is at most, in milliseconds: after it the wall clock is looked at, which may have been set. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Enqueues tasks by the calendar.
 *
 * HOW. One timer waits for the earliest tick of all entries, and looks at the wall clock once a minute at least. At a
 * tick the task is enqueued under an id that is made from the entry and the moment, and the broker takes each tick of an entry
 * once. So there may be any number of schedulers with the same entries, and no leader: each tick is enqueued once, by
 * whoever comes first, and none is late when a scheduler dies.
 *
 * Ticks that pass while no scheduler runs are not made up for, unless the entry has a `backfill`: then those since the last
 * tick that was enqueued are, when a scheduler starts, oldest first and within its bounds. An entry that never ticked has
 * none to make up for. While a scheduler runs, an entry that several ticks have passed of at once (the machine was
 * asleep, the wall clock was set) runs once at least. If the wall clock is set back by up to two hours, no tick is enqueued
 * twice: the entry waits until the clock has come as far again. If it is set back further, it was wrong before: the entry goes on
 * from the present time. A tick more than five minutes ahead of the broker's time (on Redis that of Redis) is refused.
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
  /** Names this scheduler among others: `host:pid:uuid`. */
  readonly id = `${hostname()}:${process.pid}:${randomUUID()}`;
  readonly #options: ResolvedSchedulerOptions;
  readonly #timer: SystemTimer;
  readonly #runner: TickRunner;
  readonly #heartbeat: Heartbeat;
  readonly #entries = new Map<string, ScheduledEntry>();
  #state: 'new' | 'starting' | 'active' | 'closed' = 'new';
  #wakeup: TimerId | undefined;
  #closing: Promise<void> | undefined;

  /** @throws TypeError or RangeError - an option is wrong. */
  constructor(options: SchedulerOptions) {
    super();
    this.#options = resolveSchedulerOptions('Scheduler', options, SCHEDULER_OPTIONS);
    this.#timer = new SystemTimer({ name: 'scheduler', clock: this.#options.broker.clock });
    this.#runner = new TickRunner(this.#options, this.#timer, this.#listener());
    this.#heartbeat = new Heartbeat(this.#options, this.#timer, this.id, () =>
      Array.from(this.#entries.values(), (entry) => entry.toScheduleEntry()),
    );
  }

  /**
   * Adds an entry; also while the scheduler runs, from the next tick on.
   *
   * @param cronSpec - see {@link parseCronSpec}.
   * @param options - laid over the task's. With a `taskId`, a tick is refused while the task of another is there; without,
   * each tick has its own. A `processInMs` counts from the tick.
   * @returns the entry's id.
   * @throws TypeError or RangeError - an argument is wrong.
   * @throws EscapementError `ERR_SCHEDULE_ENTRY` - there is one of that id: of the same spec, task and options, if none was
   * given. `ERR_SCHEDULER_STATE` - the scheduler was shut down.
   */
  register(cronSpec: string, task: Task, options: ScheduleOptions = {}): string {
    if (this.#state === 'closed') throw this.#stateError('register', 'was shut down');
    const entry = this.#makeEntry(cronSpec, task, options);
    if (this.#entries.has(entry.id)) {
      throw new EscapementError(
        'ERR_SCHEDULE_ENTRY',
        `there is an entry '${entry.id}' already: ${cronSpec}`,
        {
          op: 'Scheduler.register',
        },
      );
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
   * Takes an entry out. What is on its way to the broker arrives.
   *
   * @throws EscapementError `ERR_SCHEDULE_ENTRY` - there is none of that id.
   */
  unregister(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      throw new EscapementError('ERR_SCHEDULE_ENTRY', `there is no entry '${id}'`, {
        op: 'Scheduler.unregister',
      });
    }
    entry.isRemoved = true;
    this.#entries.delete(id);
    this.#arm();
    this.#heartbeat.hasten();
  }

  /** Whether there is an entry of that id. */
  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** The entries, in the order they were registered in. None after `shutdown`. */
  entries(): readonly SchedulerEntryInfo[] {
    return Array.from(this.#entries.values(), (entry) => schedulerEntryInfoOf(entry.toScheduleEntry()));
  }

  /**
   * Starts to enqueue: from the next tick of each entry on, or from the last one that was enqueued, with backfill.
   *
   * @throws EscapementError `ERR_SCHEDULER_STATE` - it runs already, or was shut down. Whatever the broker says if it does
   * not answer; then `start` can be called again.
   */
  async start(): Promise<void> {
    if (this.#state === 'closed') throw this.#stateError('start', 'was shut down');
    if (this.#state !== 'new') throw this.#stateError('start', 'runs already');
    this.#state = 'starting';
    await this.#options.broker.ping().catch((error: unknown) => {
      if (this.#state === 'starting') this.#state = 'new';
      throw error;
    });
    if (this.#isClosed) throw this.#stateError('start', 'was shut down');
    this.#state = 'active';
    for (const entry of this.#entries.values()) this.#begin(entry);
    this.#arm();
    this.#options.logger.info({ id: this.id, entries: this.#entries.size }, 'scheduler: started');
    await this.#heartbeat.start();
  }

  /** Enqueues nothing more, waits for what is on its way, and forgets its entries. The broker stays open. Idempotent. */
  shutdown(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** `shutdown()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** @internal What a console prints. */
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

  #makeEntry(cronSpec: string, task: Task, options: ScheduleOptions): ScheduledEntry {
    const { location, backfill: defaultBackfill } = this.#options;
    const spec = parseCronSpec(cronSpec, location);
    requireTask('task', task);
    requireScheduleOptions('Scheduler.register', options);
    const { id, backfill, ...taskOptions } = options;
    return new ScheduledEntry(
      id ?? entryIdOf(identityOf(cronSpec, location, task, taskOptions)),
      spec,
      task,
      mergeTaskOptions(task.options, taskOptions),
      backfill === undefined ? defaultBackfill : resolveBackfill('Scheduler.register', backfill),
    );
  }

  #begin(entry: ScheduledEntry): void {
    entry.begin(this.#wallNow());
    if (entry.asksForMark) this.#runner.serve(entry);
  }

  /** One wake-up for all: O(entries), which is microseconds for thousands, and at most once a tick. */
  #arm(): void {
    if (this.#wakeup !== undefined) this.#timer.cancel(this.#wakeup);
    this.#wakeup = undefined;
    if (this.#state !== 'active' || this.#entries.size === 0) return;
    let earliestMs = Infinity;
    for (const { nextMs } of this.#entries.values()) earliestMs = Math.min(earliestMs, nextMs);
    const waitMs = Math.min(earliestMs - this.#wallNow(), LONGEST_WAIT_MS);
    this.#wakeup = this.#timer.schedule(waitMs, wake, this.#wake);
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
    if (hasRun) await settledWithin(this.#timer, UNANSWERED_MS, this.#heartbeat.stop());
    this.#timer.close();
    this.#entries.clear();
    this.#options.logger.info({ id: this.id }, 'scheduler: shut down');
  }

  #listener(): ConstructorParameters<typeof TickRunner>[2] {
    return {
      enqueued: (info, tick) => {
        tell(this, 'enqueued', info, tick);
      },
      enqueuedElsewhere: (tick) => {
        tell(this, 'enqueuedElsewhere', tick);
      },
      enqueueFailed: (error, tick) => {
        tell(this, 'enqueueFailed', error, tick);
      },
      threw: (error) => {
        if (this.listenerCount('error') === 0) reportUncaught(error);
        else tell(this, 'error', error);
      },
    };
  }

  #wallNow(): number {
    return this.#options.broker.clock.wallNow();
  }

  #stateError(operation: string, what: string): EscapementError {
    return new EscapementError('ERR_SCHEDULER_STATE', `the scheduler ${what}`, {
      op: `Scheduler.${operation}`,
    });
  }
}

/** One callback for all schedulers. */
function wake(wakeOne: () => void): void {
  wakeOne();
}
