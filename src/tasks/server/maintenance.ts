import { MINUTE_MS } from '../../core/units.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import type { LeasedTask, MaintenanceJob, ServerState } from '../broker/broker.ts';
import { Periodic, type PeriodicJob } from '../timed-work.ts';
import type { Groups } from './groups.ts';
import type { LeaseKeeper } from './leases.ts';
import type { Reports } from './reports.ts';
import { leaseLostReason, MessageTask } from './run.ts';
import { retryDelayOf, type ResolvedServerOptions } from './server-options.ts';

/** As asynq: a server that has died is no longer listed after ten seconds. */
const ANNOUNCE_INTERVAL_MS = 5_000;
const ANNOUNCE_TTL_MS = 10_000;
/** The same as in asynq. */
const RECOVER_INTERVAL_MS = MINUTE_MS;
/** How far the clocks of a fleet may differ, in milliseconds: a lease that ended on one clock may last on another. */
const SKEW_MS = 30_000;
/** As asynq: the longest interval between two checks of all groups, in milliseconds. */
const LONGEST_GROUPS_INTERVAL_MS = 7_000;

type JobName = 'announce' | 'ping' | 'forward' | 'deleteExpired' | 'recover' | 'groups';

/**
 * Returns the table of jobs. A job of the broker has an interval only if it is in the broker's `maintenance`.
 *
 *      job            runs every                       and when
 *      announce       5 s                              the server starts, or its status changes
 *      ping           healthCheckIntervalMs
 *      forward        delayedTaskCheckIntervalMs
 *      deleteExpired  janitorIntervalMs
 *      recover        60 s                             the server has subscribed, or a lease has ended
 *      groups         groupGracePeriodMs, at most 7 s  the server has subscribed
 */
function jobsOf(
  options: ResolvedServerOptions,
  leases: LeaseKeeper,
  groups: Groups,
  reports: Reports,
  readState: () => ServerState,
): Record<JobName, PeriodicJob> {
  const { broker, logger, queueNames, janitorBatchSize } = options;
  const every = (job: MaintenanceJob, intervalMs: number): number | undefined =>
    broker.maintenance.includes(job) ? intervalMs : undefined;
  const warn =
    (message: string) =>
    (error: unknown): void => {
      logger.warn({ err: error }, message);
    };
  return {
    announce: {
      intervalMs: every('announceServer', ANNOUNCE_INTERVAL_MS),
      run: () => broker.announceServer(readState, ANNOUNCE_TTL_MS),
      failed: warn('server not announced'),
    },
    ping: {
      intervalMs: options.healthCheck === undefined ? undefined : options.healthCheckIntervalMs,
      run: async () => {
        await broker.ping();
        reports.health(undefined);
      },
      failed: (error) => {
        reports.health(error);
      },
    },
    forward: {
      intervalMs: every('forward', options.delayedTaskCheckIntervalMs),
      run: async () => {
        while ((await broker.forward(queueNames)) > 0);
      },
      failed: warn('due tasks not forwarded'),
    },
    deleteExpired: {
      intervalMs: every('deleteExpired', options.janitorIntervalMs),
      run: () =>
        inEachQueue(queueNames, async (queue) => {
          while ((await broker.deleteExpired([queue], janitorBatchSize)) > 0);
        }),
      failed: warn('completed tasks not removed'),
    },
    recover: {
      intervalMs: every('recover', RECOVER_INTERVAL_MS),
      run: () => {
        leases.renew(); // they have ended for the broker if the clock was set forward, or the machine was suspended
        return inEachQueue(queueNames, (queue) => recoverIn(queue, options, reports));
      },
      failed: warn('tasks not recovered'),
    },
    groups: {
      intervalMs: every('groups', Math.min(LONGEST_GROUPS_INTERVAL_MS, options.groupGracePeriodMs)),
      run: () => inEachQueue(queueNames, (queue) => groups.checkAll(queue)),
      failed: warn('groups not listed'),
    },
  };
}

export class Maintenance {
  readonly #options: ResolvedServerOptions;
  readonly #readState: () => ServerState;
  readonly #jobs: ReadonlyMap<string, Periodic>;

  constructor(
    options: ResolvedServerOptions,
    timer: SystemTimer,
    leases: LeaseKeeper,
    groups: Groups,
    reports: Reports,
    readState: () => ServerState,
  ) {
    const jobs = Object.entries(jobsOf(options, leases, groups, reports, readState));
    this.#options = options;
    this.#readState = readState;
    this.#jobs = new Map(jobs.map(([name, job]) => [name, new Periodic(job, timer)]));
  }

  start(): void {
    for (const job of this.#jobs.values()) job.start();
    this.trigger('announce');
  }

  /** Runs a job now; if it is running, once more. */
  trigger(name: JobName): void {
    void this.#jobs.get(name)?.trigger();
  }

  async shutdown(): Promise<void> {
    await Promise.all([this.#withdraw(), ...Array.from(this.#jobs.values(), (job) => job.stop())]);
  }

  async #withdraw(): Promise<void> {
    const { broker, logger } = this.#options;
    await this.#jobs.get('announce')?.stop();
    try {
      await broker.withdrawServer(this.#readState());
    } catch (error) {
      logger.warn({ err: error }, 'server not withdrawn');
    }
  }
}

/**
 * Runs a job for all queues at once. One whose keys are damaged, or whose shard is lost, does not keep the job from the others.
 *
 * @throws unknown - the first error, when all have settled.
 */
async function inEachQueue(queues: readonly string[], run: (queue: string) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(queues.map(run));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** Tasks of a queue that are recovered at once: a thousand, one after the other on a slow network, take longer than their new leases. */
const RECOVERED_AT_ONCE = 20;

/**
 * Recovers tasks whose worker is lost: their lease has ended, or they are active without one. They are retried, without counting
 * as failed. A task that has lost its worker too often is archived: it may be what kills the workers.
 */
async function recoverIn(queue: string, options: ResolvedServerOptions, reports: Reports): Promise<void> {
  const { broker, leaseMs } = options;
  if (broker.maintenance.includes('reclaimSets')) await broker.reclaimSets([queue]);
  const graceMs = broker.maintenance.includes('recover') ? SKEW_MS : 0; // a broker that recovers tasks by itself has one clock
  const tasks = await broker.recover([queue], graceMs, leaseMs);
  for (let first = 0; first < tasks.length; first += RECOVERED_AT_ONCE) {
    const some = tasks.slice(first, first + RECOVERED_AT_ONCE);
    await Promise.all(some.map((task) => recover(options, reports, task, task.recoveries + 1)));
  }
}

/**
 * Retries or archives a task that has lost its worker. If that fails, another server does it later: it is leased like any other.
 *
 * @param recoveries - how many workers the task has lost, this one included.
 */
export async function recover(
  { broker, logger, maxRecoveries, retryDelayMs }: ResolvedServerOptions,
  reports: Reports,
  leased: LeasedTask,
  recoveries: number,
): Promise<void> {
  const { message } = leased;
  const { id, queue, type, retried } = message;
  const reason = leaseLostReason();
  const fields = { taskId: id, queue, type, recoveries };
  try {
    if (recoveries > maxRecoveries) {
      await broker.archive(leased, { error: reason.message, isFailure: true });
      logger.warn(
        fields,
        'task archived: too many of its runs ended with their process, or lost their lease (maxRecoveries)',
      );
      reports.recovered(message, recoveries, undefined);
      return;
    }
    const delayMs = retryDelayOf(retryDelayMs, retried, reason, new MessageTask(message));
    const retryAtMs = broker.clock.wallNow() + delayMs;
    await broker.retry(leased, { error: reason.message, isFailure: false, isRecovery: true }, retryAtMs);
    logger.warn(fields, 'task recovered: its lease was lost');
    reports.recovered(message, recoveries, new Date(retryAtMs));
  } catch (error) {
    logger.warn({ ...fields, err: error }, 'task not recovered');
  }
}
