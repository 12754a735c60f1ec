import { CoalescedRun } from '../../core/coalesced-run.ts';
import { MINUTE_MS } from '../../core/units.ts';
import type { SystemTimer, TimerId } from '../../timer/system-timer.ts';
import type { LeasedTask, MaintenanceJob, ServerState } from '../broker/broker.ts';
import { isUnavailable } from '../broker/is-unavailable.ts';
import type { Logger } from '../logger.ts';
import type { Groups } from './groups.ts';
import { MessageTask } from './handler.ts';
import type { Reports } from './reports.ts';
import { leaseLost } from './run.ts';
import { retryDelayOf, type ResolvedServerOptions } from './server-options.ts';

/** As asynq: a server that has died is no longer listed after ten seconds. */
const ANNOUNCE_INTERVAL_MS = 5_000;
const ANNOUNCE_TTL_MS = 10_000;
/** As asynq. */
const RECOVER_INTERVAL_MS = MINUTE_MS;
/** How far the clocks of a fleet may differ, in milliseconds: a lease that ended on one clock may last on another. */
const SKEW_MS = 30_000;
/** As asynq: the longest interval between two checks of all groups, in milliseconds. */
const LONGEST_GROUPS_INTERVAL_MS = 7_000;
/** When a job without an interval is tried again after the broker was unavailable, in milliseconds. */
const RETRY_MS = 1_000;

/** The components that the jobs work with. */
export interface MaintenanceParts {
  readonly groups: Groups;
  readonly reports: Reports;
  readonly readState: () => ServerState;
}

interface Job {
  /** From the end of one run to the start of the next, in milliseconds; undefined: only when it is triggered. */
  readonly intervalMs: number | undefined;
  readonly run: () => Promise<void>;
  /** Logged when it rejects. */
  readonly failure: string;
}

type JobName = 'announce' | 'ping' | 'forward' | 'deleteExpired' | 'recover' | 'groups';

/**
 * The table of jobs. A job of the broker has an interval only if the broker asks for it.
 *
 *      job            runs every                       and when
 *      announce       5 s                              the server starts, or its status changes
 *      ping           healthCheckIntervalMs
 *      forward        delayedTaskCheckIntervalMs
 *      deleteExpired  janitorIntervalMs
 *      recover        60 s                             the server has subscribed, or a lease has ended
 *      groups         groupGracePeriodMs, at most 7 s  the server has subscribed
 */
function jobsOf(options: ResolvedServerOptions, parts: MaintenanceParts): Record<JobName, Job> {
  const { broker, queueNames, janitorBatchSize } = options;
  const every = (job: MaintenanceJob, intervalMs: number): number | undefined =>
    broker.maintenance.includes(job) ? intervalMs : undefined;
  return {
    announce: {
      intervalMs: every('announceServer', ANNOUNCE_INTERVAL_MS),
      run: () => broker.announceServer(parts.readState, ANNOUNCE_TTL_MS),
      failure: 'server not announced',
    },
    ping: {
      intervalMs: options.healthCheck === undefined ? undefined : options.healthCheckIntervalMs,
      run: () => reportHealth(options, parts.reports),
      failure: 'health not reported',
    },
    forward: {
      intervalMs: every('forward', options.delayedTaskCheckIntervalMs),
      run: async () => {
        while ((await broker.forward(queueNames)) > 0);
      },
      failure: 'due tasks not forwarded',
    },
    deleteExpired: {
      intervalMs: every('deleteExpired', options.janitorIntervalMs),
      run: async () => {
        while ((await broker.deleteExpired(queueNames, janitorBatchSize)) > 0);
      },
      failure: 'completed tasks not removed',
    },
    recover: {
      intervalMs: every('recover', RECOVER_INTERVAL_MS),
      run: () => recoverAll(options),
      failure: 'tasks not recovered',
    },
    groups: {
      intervalMs: every('groups', Math.min(LONGEST_GROUPS_INTERVAL_MS, options.groupGracePeriodMs)),
      run: () => parts.groups.checkAll(),
      failure: 'groups not listed',
    },
  };
}

/** Runs the jobs of a server beside its processing of tasks. */
export class Maintenance {
  readonly #options: ResolvedServerOptions;
  readonly #readState: () => ServerState;
  readonly #jobs: ReadonlyMap<string, Periodic>;

  constructor(options: ResolvedServerOptions, timer: SystemTimer, parts: MaintenanceParts) {
    const jobs = Object.entries(jobsOf(options, parts));
    this.#options = options;
    this.#readState = parts.readState;
    this.#jobs = new Map(jobs.map(([name, job]) => [name, new Periodic(job, timer, options.logger)]));
  }

  start(): void {
    for (const job of this.#jobs.values()) job.start();
    this.trigger('announce');
  }

  /** Runs a job now; if it is running, once more. */
  trigger(name: JobName): void {
    this.#jobs.get(name)?.trigger();
  }

  async shutdown(): Promise<void> {
    await Promise.all([this.#withdraw(), ...Array.from(this.#jobs.values(), (job) => job.shutdown())]);
  }

  async #withdraw(): Promise<void> {
    const { broker, logger } = this.#options;
    await this.#jobs.get('announce')?.shutdown();
    try {
      await broker.withdrawServer(this.#readState().id);
    } catch (error) {
      logger.warn({ err: error }, 'server not withdrawn');
    }
  }
}

/** Runs a job after each interval, and when it is triggered: never twice at once. */
export class Periodic {
  readonly #job: Job;
  readonly #timer: SystemTimer;
  readonly #logger: Logger;
  readonly #runs = new CoalescedRun(() => this.#run());
  #id: TimerId | undefined;
  #isStopped = true;

  constructor(job: Job, timer: SystemTimer, logger: Logger) {
    this.#job = job;
    this.#timer = timer;
    this.#logger = logger;
  }

  /** The first run is after the interval. */
  start(): void {
    this.#isStopped = false;
    this.#arm(this.#job.intervalMs);
  }

  trigger(): void {
    if (!this.#isStopped) this.#runs.trigger();
  }

  /** Resolves when the run that is under way has ended. */
  async shutdown(): Promise<void> {
    this.#isStopped = true;
    this.#disarm();
    await this.#runs.running;
  }

  async #run(): Promise<void> {
    const { run, failure, intervalMs } = this.#job;
    this.#disarm();
    if (this.#isStopped) return;
    let nextInMs = intervalMs;
    try {
      await run();
    } catch (error) {
      // What triggered a job without an interval does not trigger it again.
      if (isUnavailable(error)) nextInMs ??= RETRY_MS;
      this.#logger.warn({ err: error }, failure);
    }
    this.#arm(nextInMs);
  }

  #arm(inMs: number | undefined): void {
    if (this.#isStopped || inMs === undefined) return;
    this.#id = this.#timer.schedule(inMs, trigger, this);
  }

  #disarm(): void {
    if (this.#id !== undefined) this.#timer.cancel(this.#id);
    this.#id = undefined;
  }
}

const trigger = (periodic: Periodic): void => {
  periodic.trigger();
};

async function reportHealth({ broker }: ResolvedServerOptions, reports: Reports): Promise<void> {
  try {
    await broker.ping();
    reports.health(undefined);
  } catch (error) {
    reports.health(error);
  }
}

/**
 * Recovers tasks whose worker is gone: their lease has ended, or they are active without one. They are retried, without counting
 * as failed. A task that has lost its worker too often is archived: it may be what kills the workers.
 */
async function recoverAll(options: ResolvedServerOptions): Promise<void> {
  const { broker, queueNames, leaseMs } = options;
  if (broker.maintenance.includes('reclaimSets')) await broker.reclaimSets(queueNames);
  const graceMs = broker.maintenance.includes('recover') ? SKEW_MS : 0;
  for (const task of await broker.recover(queueNames, graceMs, leaseMs)) await recover(options, task);
}

/** If it fails, another server recovers the task later: it is leased like any other. */
async function recover(options: ResolvedServerOptions, leased: LeasedTask): Promise<void> {
  const { broker, logger, maxRecoveries, retryDelayMs } = options;
  const { id, queue, type, retried } = leased.message;
  const reason = leaseLost();
  const failure = { error: reason.message, isFailure: false, isRecovery: true };
  const fields = { taskId: id, queue, type, recoveries: leased.recoveries };
  try {
    if (leased.recoveries >= maxRecoveries) {
      await broker.archive(leased, { ...failure, isFailure: true });
      logger.warn(fields, 'task archived: its lease was lost too often');
      return;
    }
    const task = new MessageTask(leased.message, undefined);
    const delayMs = retryDelayOf(retryDelayMs, retried, reason, task);
    await broker.retry(leased, failure, broker.clock.wallNow() + delayMs);
    logger.warn(fields, 'task recovered: its lease was lost');
  } catch (error) {
    logger.warn({ ...fields, err: error }, 'task not recovered');
  }
}
