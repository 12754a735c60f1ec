import { EventEmitter } from 'node:events';
import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { EscapementError, wrongType } from '../../core/errors.ts';
import { checkOptions, milliseconds, objectWith, readOptions, type OptionTable } from '../../core/options.ts';
import { MINUTE_MS } from '../../core/units.ts';
import { requireObject, requireString } from '../../core/validate.ts';
import { SystemTimer } from '../../timer/system-timer.ts';
import { parseCronSpec } from './cron-spec.ts';
import { Periodic, settledWithin } from '../timed-work.ts';
import { emit, guardedLogger, type Logger } from '../reporting.ts';
import { mergeTaskOptions } from '../task-options.ts';
import { requireTask, type Task } from '../task.ts';
import { identityOf } from './scheduled-entry.ts';
import {
  requireScheduleOptions,
  SCHEDULER_OPTIONS,
  type ScheduleOptions,
  type SchedulerOptions,
} from './scheduler-options.ts';
import { Scheduler } from './scheduler.ts';

/** A task to enqueue periodically. */
export interface PeriodicTaskConfig {
  /** See {@link parseCronSpec}. */
  readonly cronSpec: string;
  /** The task to enqueue at each tick. */
  readonly task: Task;
  /** Options, as of `Scheduler.register`. */
  readonly options?: ScheduleOptions | undefined;
}

const CONFIG = {
  cronSpec: [requireString],
  task: [requireTask],
  options: [requireObject, undefined],
} satisfies OptionTable<PeriodicTaskConfig>;

/** Returns the periodic tasks, from a file or a database, for example. */
export interface PeriodicTaskConfigProvider {
  /** Returns all entries that the scheduler must have now. */
  getConfigs(): readonly PeriodicTaskConfig[] | Promise<readonly PeriodicTaskConfig[]>;
}

/** Options of a `PeriodicTaskManager`. */
export interface PeriodicTaskManagerOptions extends SchedulerOptions {
  /** Source of the entries. */
  readonly provider: PeriodicTaskConfigProvider;
  /** How often the provider is called, in milliseconds, at least 1. @default 180_000 */
  readonly syncIntervalMs?: number | undefined;
}

const OPTIONS = {
  ...SCHEDULER_OPTIONS,
  provider: [objectWith('an object with getConfigs', 'getConfigs')],
  syncIntervalMs: [milliseconds(1), 3 * MINUTE_MS], // as asynq
} satisfies OptionTable<PeriodicTaskManagerOptions>;

/** Events of a `PeriodicTaskManager`. Its `scheduler` emits those of ticks. */
export interface PeriodicTaskManagerEvents {
  /** The entries are those of the provider. */
  synced: [change: SyncChange];
  /**
   * The provider has failed, has not settled within two minutes (`ERR_OPERATION_EXPIRED`), or its result is not an array. The
   * entries have not changed, and it is called again at the next interval.
   */
  syncFailed: [error: unknown];
  /** A config is wrong; the others are not affected. It is tried again at each sync. */
  configRejected: [error: unknown, config: PeriodicTaskConfig];
}

/** Changes made by a sync. */
export interface SyncChange {
  /** Number of new entries. */
  readonly added: number;
  /** Number of removed entries. */
  readonly removed: number;
}

/** How long a provider may take, in milliseconds. */
const LONGEST_ANSWER_MS = 2 * MINUTE_MS;

/**
 * A scheduler whose entries follow a list that changes while it runs.
 *
 * Two configs are the same entry if their spec, task (type and payload) and options, including headers, are equal: such an entry goes
 * on, and a duplicate in the list is ignored.
 *
 * @example
 * ```ts
 * const manager = new PeriodicTaskManager({ broker, provider: { getConfigs: () => readConfigs(database) } });
 * await manager.start();
 * ```
 */
export class PeriodicTaskManager extends EventEmitter<PeriodicTaskManagerEvents> {
  /** The scheduler that enqueues, for its events and its entries. */
  readonly scheduler: Scheduler;
  readonly #provider: PeriodicTaskConfigProvider;
  readonly #syncIntervalMs: number;
  readonly #location: string;
  readonly #logger: Logger;
  readonly #timer: SystemTimer;
  readonly #syncs: Periodic;
  /** Ids of entries, by their identity. */
  readonly #entries = new Map<string, string>();
  #state: 'new' | 'starting' | 'active' | 'closed' = 'new';
  #syncing: Promise<SyncChange> | undefined;

  /** @throws TypeError or RangeError - an option has a wrong type or value. */
  constructor(options: PeriodicTaskManagerOptions) {
    super();
    const resolved = readOptions('PeriodicTaskManager', options, OPTIONS);
    const { provider, syncIntervalMs, ...schedulerOptions } = resolved;
    this.scheduler = new Scheduler(schedulerOptions);
    this.#provider = provider;
    this.#syncIntervalMs = syncIntervalMs;
    this.#location = resolved.location;
    this.#logger = guardedLogger(resolved.logger);
    this.#timer = new SystemTimer({ name: 'periodic-task-manager', clock: resolved.broker.clock });
    const job = {
      intervalMs: syncIntervalMs,
      run: async () => {
        await this.sync();
      },
      failed: (error: unknown) => {
        if (this.#state !== 'active') return;
        this.#logger.error({ err: error }, 'periodic tasks: the provider has failed');
        emit(this, 'syncFailed', error);
      },
    };
    this.#syncs = new Periodic(job, this.#timer);
  }

  /**
   * Calls the provider for the first time, and starts the scheduler.
   *
   * @throws the error of the provider. TypeError or RangeError - a config is wrong. EscapementError `ERR_SCHEDULER_STATE` - the
   * manager runs already, or was shut down. Unless it was shut down, it can be started again.
   */
  async start(): Promise<void> {
    this.#requireOpen('start');
    if (this.#state !== 'new') throw stateError('start', 'runs already');
    this.#state = 'starting';
    try {
      const configs = await this.#configs('start');
      this.#apply(configs, (error) => {
        throw error;
      });
      await this.scheduler.start();
    } catch (error) {
      this.#undo();
      throw error;
    }
    this.#requireOpen('start');
    this.#state = 'active';
    this.#syncs.start();
  }

  /**
   * Calls the provider now rather than at the next interval; if a call is pending, uses its result.
   *
   * @throws the error of the provider; nothing has changed then. EscapementError `ERR_SCHEDULER_STATE` - the manager does not run.
   */
  async sync(): Promise<SyncChange> {
    this.#requireOpen('sync');
    if (this.#state !== 'active') throw stateError('sync', 'does not run yet');
    this.#syncing ??= this.#sync().finally(() => {
      this.#syncing = undefined;
    });
    return this.#syncing;
  }

  /** Stops, and shuts the scheduler down. Does not wait for the provider. Idempotent. */
  async shutdown(): Promise<void> {
    this.#state = 'closed';
    void this.#syncs.stop();
    this.#timer.close();
    await this.scheduler.shutdown();
  }

  /** `shutdown()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** @internal Printed by a console. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      state: this.#state,
      entries: this.#entries.size,
      syncIntervalMs: this.#syncIntervalMs,
    }));
  }

  /** A provider that hangs is called again: see `syncFailed`. Its late result is ignored. */
  async #configs(op: Operation): Promise<readonly PeriodicTaskConfig[]> {
    const answer = Promise.resolve<unknown>(this.#provider.getConfigs());
    if (!(await settledWithin(this.#timer, LONGEST_ANSWER_MS, answer))) {
      this.#requireOpen(op);
      const message = `getConfigs() has not settled within ${LONGEST_ANSWER_MS} ms`;
      throw new EscapementError('ERR_OPERATION_EXPIRED', message, { op: `${OP}.${op}` });
    }
    const configs = await answer;
    this.#requireOpen(op);
    if (!Array.isArray(configs)) throw wrongType('the result of getConfigs()', 'an array', configs);
    return configs as readonly PeriodicTaskConfig[];
  }

  async #sync(): Promise<SyncChange> {
    const configs = await this.#configs('sync');
    const change = this.#apply(configs, (error, config) => {
      const cronSpec = String((config as PeriodicTaskConfig | null | undefined)?.cronSpec);
      this.#logger.error({ err: error, cronSpec }, 'periodic tasks: a config is wrong');
      emit(this, 'configRejected', error, config);
    });
    if (change.added + change.removed > 0)
      this.#logger.info(change, 'periodic tasks: the entries have changed');
    emit(this, 'synced', change);
    return change;
  }

  /** Entries are removed first: a new one may have the id of an old one. */
  #apply(
    configs: readonly PeriodicTaskConfig[],
    reject: (error: unknown, config: PeriodicTaskConfig) => void,
  ): SyncChange {
    const wanted = new Map<string, PeriodicTaskConfig>();
    for (const config of configs) {
      try {
        wanted.set(keyOf(config, this.#location), config);
      } catch (error) {
        reject(error, config);
      }
    }
    let removed = 0;
    let added = 0;
    for (const [key, id] of this.#entries) {
      if (wanted.has(key)) continue;
      if (this.scheduler.has(id)) this.scheduler.unregister(id);
      this.#entries.delete(key);
      removed++;
    }
    for (const [key, config] of wanted) {
      if (this.#entries.has(key)) continue;
      try {
        this.#entries.set(key, this.scheduler.register(config.cronSpec, config.task, config.options));
        added++;
      } catch (error) {
        reject(error, config);
      }
    }
    return { added, removed };
  }

  #undo(): void {
    if (this.#state !== 'starting') return;
    this.#apply([], () => undefined);
    this.#state = 'new';
  }

  #requireOpen(op: Operation): void {
    if (this.#state === 'closed') throw stateError(op, 'was shut down');
  }
}

const OP = 'PeriodicTaskManager';

type Operation = 'start' | 'sync';

function stateError(op: Operation, what: string): EscapementError {
  return new EscapementError('ERR_SCHEDULER_STATE', `the periodic task manager ${what}`, {
    op: `${OP}.${op}`,
  });
}

/** Validates a config. @returns a key that is equal for equal configs. @throws TypeError or RangeError - the config is wrong. */
function keyOf(config: PeriodicTaskConfig, location: string): string {
  checkOptions('PeriodicTaskManager', config, CONFIG, 'config');
  const { cronSpec, task, options = {} } = config;
  parseCronSpec(cronSpec, location);
  requireScheduleOptions('PeriodicTaskManager', options);
  const { id, backfill, ...taskOptions } = options;
  const merged = mergeTaskOptions(task.options, taskOptions);
  return JSON.stringify([id, backfill, identityOf(cronSpec, location, task, merged)]);
}
