import { EventEmitter } from 'node:events';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, outOfRange, wrongType } from '../core/errors.ts';
import { requireFiniteNumber, requireMethods, requireOptions, type OptionNames } from '../core/validate.ts';
import { SystemTimer } from '../timer/system-timer.ts';
import { parseCronSpec } from './cron-spec.ts';
import { Scheduler } from './scheduler.ts';
import { identityOf } from './scheduler/entry-identity.ts';
import {
  requireScheduleOptions,
  resolveSchedulerOptions,
  SCHEDULER_OPTIONS,
  type ScheduleOptions,
  type SchedulerOptions,
} from './scheduler/scheduler-options.ts';
import type { Logger } from './server/logger.ts';
import { settledWithin } from './server/settled-within.ts';
import { requireTask, type Task } from './task.ts';
import { tell } from './tell.ts';

/** A task that is wanted again and again. */
export interface PeriodicTaskConfig {
  /** See {@link parseCronSpec}. */
  readonly cronSpec: string;
  /** What is enqueued at each tick. */
  readonly task: Task;
  /** As of `Scheduler.register`. */
  readonly options?: ScheduleOptions | undefined;
}

const CONFIG: OptionNames<PeriodicTaskConfig> = { cronSpec: true, task: true, options: true };

/** Knows which periodic tasks are wanted now: a file, a table of a database. */
export interface PeriodicTaskConfigProvider {
  /** All entries there are to be now. */
  getConfigs(): readonly PeriodicTaskConfig[] | Promise<readonly PeriodicTaskConfig[]>;
}

/** What a manager is made from. */
export interface PeriodicTaskManagerOptions extends SchedulerOptions {
  /** Is asked for the entries. */
  readonly provider: PeriodicTaskConfigProvider;
  /** How often the provider is asked, in milliseconds, at least 1. @default 180_000 */
  readonly syncIntervalMs?: number | undefined;
}

const OPTIONS: OptionNames<PeriodicTaskManagerOptions> = {
  ...SCHEDULER_OPTIONS,
  provider: true,
  syncIntervalMs: true,
};

/** What a manager tells. Ticks are told by its `scheduler`. */
export interface PeriodicTaskManagerEvents {
  /** The provider was asked: so many entries are new, and so many are gone. */
  synced: [change: SyncChange];
  /**
   * The provider has failed, has not answered within two minutes (`ERR_OPERATION_EXPIRED`), or what it gave is not a list. The
   * entries are those of before, and it is asked again at the next interval.
   */
  syncFailed: [error: unknown];
  /** One config is wrong; the others are not touched by that. It is tried again at each sync. */
  configRejected: [error: unknown, config: PeriodicTaskConfig];
}

/** What a sync has changed. */
export interface SyncChange {
  /** New entries. */
  readonly added: number;
  /** Entries that are gone. */
  readonly removed: number;
}

/** asynq's. */
const SYNC_INTERVAL_MS = 180_000;

/** How long a provider may take, in milliseconds. */
const LONGEST_ANSWER_MS = 120_000;

/**
 * A scheduler whose entries follow a list that changes while it runs.
 *
 * Two configs are one and the same if their spec, task (type and payload) and options are, headers included: such an entry goes
 * on, and one that is twice in the list is there once.
 *
 * @example
 * ```ts
 * const manager = new PeriodicTaskManager({ broker, provider: { getConfigs: () => readConfigs(database) } });
 * await manager.start();
 * ```
 */
export class PeriodicTaskManager extends EventEmitter<PeriodicTaskManagerEvents> {
  /** What enqueues: for its events and its entries. */
  readonly scheduler: Scheduler;
  readonly #provider: PeriodicTaskConfigProvider;
  readonly #syncIntervalMs: number;
  readonly #location: string;
  readonly #logger: Logger;
  readonly #timer: SystemTimer;
  /** Ids of entries, by what they are. */
  readonly #entries = new Map<string, string>();
  #state: 'new' | 'starting' | 'active' | 'closed' = 'new';
  #syncing: Promise<SyncChange> | undefined;

  /** @throws TypeError or RangeError - an option is wrong. */
  constructor(options: PeriodicTaskManagerOptions) {
    super();
    const { broker, location, logger } = resolveSchedulerOptions('PeriodicTaskManager', options, OPTIONS);
    const { provider, syncIntervalMs = SYNC_INTERVAL_MS, ...schedulerOptions } = options;
    requireMethods('options.provider', 'an object with getConfigs', ['getConfigs'], provider);
    requireFiniteNumber('options.syncIntervalMs', syncIntervalMs);
    if (syncIntervalMs < 1) throw outOfRange('options.syncIntervalMs', 'at least 1 ms', syncIntervalMs);
    this.scheduler = new Scheduler(schedulerOptions);
    this.#provider = provider;
    this.#syncIntervalMs = syncIntervalMs;
    this.#location = location;
    this.#logger = logger;
    this.#timer = new SystemTimer({ name: 'periodic-task-manager', clock: broker.clock });
  }

  /**
   * Asks the provider for the first time, and starts the scheduler.
   *
   * @throws What the provider throws. TypeError or RangeError - a config is wrong. EscapementError `ERR_SCHEDULER_STATE` -
   * it runs already, or was shut down. After any but the last, it can be started again.
   */
  async start(): Promise<void> {
    if (this.#state !== 'new')
      throw this.#stateError(this.#state === 'closed' ? 'was shut down' : 'runs already');
    this.#state = 'starting';
    try {
      const configs = await this.#configs();
      for (const config of configs) requireConfig(config, this.#location);
      this.#requireOpen();
      this.#apply(configs, (error) => {
        throw error;
      });
      await this.scheduler.start();
    } catch (error) {
      this.#undo();
      throw error;
    }
    this.#requireOpen();
    this.#state = 'active';
    this.#awaitSync();
  }

  /**
   * Asks the provider now rather than at the next interval; while it is being asked already, that is the answer.
   *
   * @throws What the provider throws; nothing has changed then. EscapementError `ERR_SCHEDULER_STATE` - it does not run.
   */
  async sync(): Promise<SyncChange> {
    if (this.#state !== 'active') {
      throw this.#stateError(this.#state === 'closed' ? 'was shut down' : 'does not run yet');
    }
    this.#syncing ??= this.#sync().finally(() => {
      this.#syncing = undefined;
    });
    return this.#syncing;
  }

  /** Asks no more, and shuts the scheduler down. Does not wait for a provider. Idempotent. */
  async shutdown(): Promise<void> {
    this.#state = 'closed';
    this.#timer.close();
    await this.scheduler.shutdown();
  }

  /** `shutdown()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      state: this.#state,
      entries: this.#entries.size,
      syncIntervalMs: this.#syncIntervalMs,
    }));
  }

  async #configs(): Promise<readonly PeriodicTaskConfig[]> {
    const configs: unknown = await this.#answerInTime(this.#provider.getConfigs());
    if (!Array.isArray(configs)) throw wrongType('what getConfigs() gives', 'an array', configs);
    return configs as readonly PeriodicTaskConfig[];
  }

  /** A provider that hangs is asked again: see `syncFailed`. Its late answer is dropped. */
  async #answerInTime(answer: unknown): Promise<unknown> {
    if (await settledWithin(this.#timer, LONGEST_ANSWER_MS, Promise.resolve(answer))) return answer;
    this.#requireOpen();
    const message = `getConfigs() has not settled within ${LONGEST_ANSWER_MS} ms`;
    throw new EscapementError('ERR_OPERATION_EXPIRED', message, { op: 'PeriodicTaskManager' });
  }

  async #sync(): Promise<SyncChange> {
    const configs = await this.#configs();
    this.#requireOpen();
    const change = this.#apply(configs, (error, config) => {
      this.#logger.error({ err: error, cronSpec: specOf(config) }, 'periodic tasks: a config is wrong');
      tell(this, 'configRejected', error, config);
    });
    if (change.added + change.removed > 0)
      this.#logger.info(change, 'periodic tasks: the entries have changed');
    tell(this, 'synced', change);
    return change;
  }

  /** What is gone is taken out first: what comes may have its id. */
  #apply(
    configs: readonly PeriodicTaskConfig[],
    reject: (error: unknown, config: PeriodicTaskConfig) => void,
  ): SyncChange {
    const wanted = this.#wanted(configs, reject);
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

  #wanted(
    configs: readonly PeriodicTaskConfig[],
    reject: (error: unknown, config: PeriodicTaskConfig) => void,
  ): Map<string, PeriodicTaskConfig> {
    const wanted = new Map<string, PeriodicTaskConfig>();
    for (const config of configs) {
      try {
        requireConfig(config, this.#location);
        wanted.set(keyOf(config, this.#location), config);
      } catch (error) {
        reject(error, config);
      }
    }
    return wanted;
  }

  #awaitSync(): void {
    this.#timer.schedule(this.#syncIntervalMs, syncOne, () => {
      void this.#syncInTime();
    });
  }

  async #syncInTime(): Promise<void> {
    try {
      await this.sync();
    } catch (error) {
      if (this.#state !== 'active') return;
      this.#logger.error({ err: error }, 'periodic tasks: the provider has failed');
      tell(this, 'syncFailed', error);
    }
    if (this.#state === 'active') this.#awaitSync();
  }

  #undo(): void {
    if (this.#state !== 'starting') return;
    for (const id of this.#entries.values()) if (this.scheduler.has(id)) this.scheduler.unregister(id);
    this.#entries.clear();
    this.#state = 'new';
  }

  #requireOpen(): void {
    if (this.#state === 'closed') throw this.#stateError('was shut down');
  }

  #stateError(what: string): EscapementError {
    return new EscapementError('ERR_SCHEDULER_STATE', `the periodic task manager ${what}`, {
      op: 'PeriodicTaskManager',
    });
  }
}

/** @throws TypeError or RangeError - something in it is wrong. */
function requireConfig(config: PeriodicTaskConfig, location: string): void {
  requireOptions('PeriodicTaskManager', config, CONFIG, 'config');
  parseCronSpec(config.cronSpec, location);
  requireTask('task', config.task);
  requireScheduleOptions('PeriodicTaskManager', config.options ?? {});
}

function keyOf({ cronSpec, task, options = {} }: PeriodicTaskConfig, location: string): string {
  const { id, backfill, ...taskOptions } = options;
  return JSON.stringify([id, backfill, identityOf(cronSpec, location, task, taskOptions)]);
}

function specOf(config: PeriodicTaskConfig | null | undefined): string {
  return String(config?.cronSpec);
}

/** One callback for all managers. */
function syncOne(sync: () => void): void {
  sync();
}
