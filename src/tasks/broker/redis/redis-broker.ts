import { systemClock } from '../../../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../../../core/console-view.ts';
import { requireBoolean, type OptionNames } from '../../../core/validate.ts';
import type { RedisInfo } from '../../redis-info.ts';
import { BROKER_SETTINGS, resolveBrokerSettings, type BrokerSettings } from '../broker-settings.ts';
import { MAINTENANCE_JOBS } from '../broker-types.ts';
import type { LeaseHolder, LeaseHolderOptions } from '../broker.ts';
import { BrokerBase, type BrokerOperation, type OperationResults } from '../broker-base.ts';
import { CONNECTION_OPTIONS, withoutCredentials, type RedisConnectionOptions } from './connection-options.ts';
import { RedisConnection } from './connection.ts';
import { addressOf, describeRedis, parseInfo } from './describe-redis.ts';
import { Enqueuing, lastTickMs } from './enqueue.ts';
import { groups, reclaimSets, replaceSet, takeGroup } from './groups.ts';
import { history, queueNames, queueStats, task, tasks } from './inspection.ts';
import { LeaseThread, leaseRouteOf, leaseThreadFile } from './lease-thread.ts';
import { dequeue, extendLeases, recover, release } from './leases.ts';
import { deleteExpired, forward } from './maintenance.ts';
import * as members from './members.ts';
import { cancel, Notifications } from './notifications.ts';
import { pause, removeQueue, resume } from './queue-administration.ts';
import { RedisAccess } from './redis-access.ts';
import { repair } from './repair.ts';
import { archive, Completing, discard, retry, writeProgress, writeResult } from './settle.ts';
import * as administration from './task-administration.ts';

/** Options of a `RedisBroker`. All are validated by its constructor. */
export type RedisBrokerOptions = RedisConnectionOptions & BrokerSettings & LeaseThreadOptions;

/** Options for the leases of tasks that block the event loop. */
export interface LeaseThreadOptions {
  /**
   * Whether a thread renews the leases of the servers of this process too, with a connection of its own: then a handler may hold
   * the event loop for longer than a lease. It does not renew a lease after the task's deadline and the server's `graceMs`. The
   * thread starts with the first task, and sleeps while no task runs. Only on the system's clock. If it cannot be started, the
   * server's logger is warned.
   *
   * @default true
   */
  readonly leaseThread?: boolean;
}

const OPTIONS: OptionNames<RedisBrokerOptions> = {
  ...BROKER_SETTINGS,
  ...CONNECTION_OPTIONS,
  leaseThread: true,
};

/**
 * A broker on Redis, 6.2 or later, or on Valkey, for a fleet: any number of clients, servers and inspectors in as many processes,
 * written in Node or, with asynq, in Go. It stores exactly the bytes that asynq stores; what it adds is in fields and keys that
 * asynq ignores, whose names begin with `x:`.
 *
 * Times are stored in whole seconds, as in asynq: a due task may come up to a second late, and never early.
 *
 * @example
 * ```ts
 * const broker = new RedisBroker({ url: 'redis://localhost:6379' });
 * const client = new Client({ broker });
 * const server = new Server({ broker });
 * ```
 */
export class RedisBroker extends BrokerBase {
  override readonly maintenance = MAINTENANCE_JOBS;
  readonly #options: RedisBrokerOptions;
  readonly #connection: RedisConnection;
  readonly #redis: RedisAccess;
  readonly #notifications: Notifications;
  readonly #threads = new Set<LeaseThread>();

  /**
   * Begins to connect; operations wait for the connection.
   *
   * @throws TypeError or RangeError - an option is not valid.
   */
  constructor(options: RedisBrokerOptions) {
    const settings = resolveBrokerSettings('RedisBroker', options, OPTIONS);
    requireBoolean('options.leaseThread', options.leaseThread ?? true);
    const connection = new RedisConnection(options);
    const redis = new RedisAccess(connection, settings);
    const notifications = new Notifications();
    super('RedisBroker', settings.clock, operationsOf(redis, notifications));
    this.#options = options;
    this.#connection = connection;
    this.#redis = redis;
    this.#notifications = notifications;
  }

  /** Returns what Redis reports about itself, by name: its command `INFO`; for a cluster, that of one node. */
  async info(): Promise<Readonly<Record<string, string>>> {
    this.requireOpen('info');
    return parseInfo(await this.#redis.for('info').send((client) => client.info()));
  }

  /**
   * Returns what asynqmon's page on Redis shows, with the nodes of the queues if it is a cluster: for the option `redisInfo` of
   * `tasksHandler`.
   *
   * @example tasksHandler({ broker, redisInfo: () => broker.redisInfo() })
   */
  async redisInfo(): Promise<RedisInfo> {
    this.requireOpen('redisInfo');
    return await describeRedis(this.#redis.for('redisInfo'));
  }

  /** A thread, which starts with the first lease. Undefined for a broker with its own clock, which a thread cannot read. */
  override leaseHolder(options: LeaseHolderOptions): LeaseHolder | undefined {
    if (this.isClosed || this.clock !== systemClock || this.#options.leaseThread === false) return undefined;
    const thread = new LeaseThread({
      ...options,
      file: leaseThreadFile,
      route: () => leaseRouteOf(this.#options),
      onClose: () => this.#threads.delete(thread),
    });
    this.#threads.add(thread);
    return thread;
  }

  /** Closes the broker; pending operations reject. A client that was passed in stays open. Idempotent. */
  override async close(): Promise<void> {
    if (!this.closeOperations()) return;
    this.#notifications.close();
    await Promise.all([...this.#threads].map((thread) => thread.close()));
    await this.#connection.close();
  }

  /** @internal What a console prints: no password. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ clock: undefined, maintenance: undefined },
      ...('url' in this.#options
        ? { url: withoutCredentials(this.#options.url) }
        : { address: addressOf(this.#options.client) }),
      state: this.isClosed ? 'closed' : this.#connection.health.state,
    }));
  }
}

function operationsOf(redis: RedisAccess, notifications: Notifications): OperationResults {
  const enqueuing = new Enqueuing(redis);
  const completing = new Completing(redis);
  /** The access of an operation, whose errors name it. */
  const at = (operation: BrokerOperation): RedisAccess => redis.for(operation);
  return {
    ping: () =>
      at('ping').send(async (client) => {
        await client.ping();
      }),

    enqueue: (newTask) => enqueuing.enqueue(at('enqueue'), newTask),
    enqueueMany: (newTasks) => enqueuing.enqueueMany(at('enqueueMany'), newTasks),
    enqueueTick: (newTask, tick) => enqueuing.enqueueTick(at('enqueueTick'), newTask, tick),
    lastTickMs: (queue, entryKey) => lastTickMs(at('lastTickMs'), queue, entryKey),

    dequeue: (queue, limit, leaseMs) => dequeue(at('dequeue'), queue, limit, leaseMs),
    complete: (leased) => completing.complete(leased),
    retry: (leased, failure, atMs) => retry(at('retry'), leased, failure, atMs),
    archive: (leased, failure) => archive(at('archive'), leased, failure),
    release: (leased) => release(at('release'), leased),
    discard: (leased) => discard(at('discard'), leased),
    extendLeases: (leased, leaseMs) => extendLeases(at('extendLeases'), leased, leaseMs),
    writeResult: (leased, result) => writeResult(at('writeResult'), leased, result),
    writeProgress: (leased, progress) => writeProgress(at('writeProgress'), leased, progress),

    forward: (queues) => forward(at('forward'), queues),
    recover: (queues, graceMs, leaseMs) => recover(at('recover'), queues, graceMs, leaseMs),
    deleteExpired: (queues, limit) => deleteExpired(at('deleteExpired'), queues, limit),

    groups: (queue) => groups(at('groups'), queue),
    takeGroup: (queue, group, limits, holdMs) => takeGroup(at('takeGroup'), queue, group, limits, holdMs),
    replaceSet: (set, newTask) => replaceSet(at('replaceSet'), enqueuing, set, newTask),
    reclaimSets: (queues) => reclaimSets(at('reclaimSets'), queues),

    subscribe: (listener, queues) => notifications.subscribe(at('subscribe'), listener, queues),
    cancel: (request, waitMs) => cancel(at('cancel'), request, waitMs),

    announceServer: (read, ttlMs) => members.announceServer(at('announceServer'), read(), ttlMs),
    withdrawServer: (id) => members.withdrawServer(at('withdrawServer'), id),
    servers: () => members.servers(at('servers')),
    announceScheduler: (id, read, ttlMs) =>
      members.announceScheduler(at('announceScheduler'), id, read(), ttlMs),
    withdrawScheduler: (id) => members.withdrawScheduler(at('withdrawScheduler'), id),
    scheduleEntries: () => members.scheduleEntries(at('scheduleEntries')),
    recordEnqueueEvent: (entryId, event) =>
      members.recordEnqueueEvent(at('recordEnqueueEvent'), entryId, event),
    enqueueEvents: (entryId, page) => members.enqueueEvents(at('enqueueEvents'), entryId, page),

    queues: () => queueNames(at('queues')),
    queueStats: (queue) => queueStats(at('queueStats'), queue),
    history: (queue, days) => history(at('history'), queue, days),
    task: (queue, id) => task(at('task'), queue, id),
    tasks: (queue, state, page, group) => tasks(at('tasks'), queue, state, page, group),

    change: (queue, target, change) => administration.change(at('change'), queue, target, change),
    updatePayload: (queue, id, payload) =>
      administration.updatePayload(at('updatePayload'), queue, id, payload),
    repair: (queue, { apply }) => repair(at('repair'), queue, apply),
    pause: (queue) => pause(at('pause'), queue),
    resume: (queue) => resume(at('resume'), queue),
    removeQueue: async (queue, { force }) => {
      await removeQueue(at('removeQueue'), queue, force);
      enqueuing.forget(queue);
    },
  };
}
