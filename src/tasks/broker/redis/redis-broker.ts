import { systemClock, type Clock } from '../../../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../../../core/console-view.ts';
import { requireBoolean, type OptionNames } from '../../../core/validate.ts';
import type { RedisInfo } from '../../redis-info.ts';
import type { TaskState } from '../../task-state.ts';
import { brokerClosed } from '../broker-errors.ts';
import { BROKER_SETTINGS, resolveBrokerSettings, type BrokerSettings } from '../broker-settings.ts';
import { MAINTENANCE_JOBS } from '../broker-types.ts';
import type {
  Broker,
  BrokerListener,
  CancelRequest,
  DayStats,
  Defect,
  EnqueueEvent,
  GroupInfo,
  GroupLimits,
  GroupTaking,
  LeasedTask,
  LeaseHolder,
  LeaseHolderOptions,
  NewTask,
  Page,
  QueueStats,
  ScheduleEntry,
  ServerState,
  Subscription,
  TaskFailure,
  TaskRecord,
  TaskSet,
  Tick,
} from '../broker.ts';
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
export class RedisBroker implements Broker {
  readonly clock: Clock;
  readonly maintenance = MAINTENANCE_JOBS;
  readonly #options: RedisBrokerOptions;
  readonly #connection: RedisConnection;
  readonly #redis: RedisAccess;
  readonly #enqueuing: Enqueuing;
  readonly #completing: Completing;
  readonly #notifications = new Notifications();
  readonly #threads = new Set<LeaseThread>();
  #isClosed = false;

  /**
   * Begins to connect; operations wait for the connection.
   *
   * @throws TypeError or RangeError - an option is not valid.
   */
  constructor(options: RedisBrokerOptions) {
    const settings = resolveBrokerSettings('RedisBroker', options, OPTIONS);
    requireBoolean('options.leaseThread', options.leaseThread ?? true);
    this.#options = options;
    this.#connection = new RedisConnection(options);
    this.clock = settings.clock;
    this.#redis = new RedisAccess(this.#connection, settings);
    this.#enqueuing = new Enqueuing(this.#redis);
    this.#completing = new Completing(this.#redis);
  }

  async ping(): Promise<void> {
    await this.#open('ping').send((client) => client.ping());
  }

  /** Returns what Redis reports about itself, by name: its command `INFO`; for a cluster, that of one node. */
  async info(): Promise<Readonly<Record<string, string>>> {
    return parseInfo(await this.#open('info').send((client) => client.info()));
  }

  /**
   * Returns what asynqmon's page on Redis shows, with the nodes of the queues if it is a cluster: for the option `redisInfo` of
   * `tasksHandler`.
   *
   * @example tasksHandler({ broker, redisInfo: () => broker.redisInfo() })
   */
  async redisInfo(): Promise<RedisInfo> {
    return await describeRedis(this.#open('redisInfo'));
  }

  /** Closes the broker; pending operations reject. A client that was passed in stays open. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#notifications.close();
    await Promise.all([...this.#threads].map((thread) => thread.close()));
    await this.#connection.close();
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Writing.

  async enqueue(newTask: NewTask): Promise<TaskRecord> {
    return await this.#enqueuing.enqueue(this.#open('enqueue'), newTask);
  }

  async enqueueMany(newTasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return await this.#enqueuing.enqueueMany(this.#open('enqueueMany'), newTasks);
  }

  async enqueueTick(newTask: NewTask, tick: Tick): Promise<TaskRecord | undefined> {
    return await this.#enqueuing.enqueueTick(this.#open('enqueueTick'), newTask, tick);
  }

  async lastTickMs(queue: string, entryKey: string): Promise<number | undefined> {
    return await lastTickMs(this.#open('lastTickMs'), queue, entryKey);
  }

  // Processing.

  async dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return await dequeue(this.#open('dequeue'), queue, limit, leaseMs);
  }

  async complete(leased: LeasedTask): Promise<void> {
    this.#open('complete');
    await this.#completing.complete(leased);
  }

  async retry(leased: LeasedTask, failure: TaskFailure, atMs: number): Promise<void> {
    await retry(this.#open('retry'), leased, failure, atMs);
  }

  async archive(leased: LeasedTask, failure: TaskFailure): Promise<void> {
    await archive(this.#open('archive'), leased, failure);
  }

  async release(leased: LeasedTask): Promise<void> {
    await release(this.#open('release'), leased);
  }

  async discard(leased: LeasedTask): Promise<void> {
    await discard(this.#open('discard'), leased);
  }

  async extendLeases(leased: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]> {
    return await extendLeases(this.#open('extendLeases'), leased, leaseMs);
  }

  /** A thread, which starts with the first lease. Undefined for a broker with its own clock, which a thread cannot read. */
  leaseHolder(options: LeaseHolderOptions): LeaseHolder | undefined {
    if (this.#isClosed || this.clock !== systemClock || this.#options.leaseThread === false) return undefined;
    const thread = new LeaseThread({
      ...options,
      file: leaseThreadFile,
      route: () => leaseRouteOf(this.#options),
      onClose: () => this.#threads.delete(thread),
    });
    this.#threads.add(thread);
    return thread;
  }

  async writeResult(leased: LeasedTask, result: Uint8Array): Promise<void> {
    await writeResult(this.#open('writeResult'), leased, result);
  }

  async writeProgress(leased: LeasedTask, progress: string): Promise<void> {
    await writeProgress(this.#open('writeProgress'), leased, progress);
  }

  // Forwarding and recovering.

  async forward(queues: readonly string[]): Promise<number> {
    return await forward(this.#open('forward'), queues);
  }

  async recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return await recover(this.#open('recover'), queues, graceMs, leaseMs);
  }

  async deleteExpired(queues: readonly string[], limit: number): Promise<number> {
    return await deleteExpired(this.#open('deleteExpired'), queues, limit);
  }

  // Aggregation.

  async groups(queue: string): Promise<readonly GroupInfo[]> {
    return await groups(this.#open('groups'), queue);
  }

  async takeGroup(queue: string, group: string, limits: GroupLimits, holdMs: number): Promise<GroupTaking> {
    return await takeGroup(this.#open('takeGroup'), queue, group, limits, holdMs);
  }

  async replaceSet(set: TaskSet, newTask: NewTask): Promise<TaskRecord> {
    return await replaceSet(this.#open('replaceSet'), this.#enqueuing, set, newTask);
  }

  async reclaimSets(queues: readonly string[]): Promise<number> {
    return await reclaimSets(this.#open('reclaimSets'), queues);
  }

  // Notifications and cancellation.

  async subscribe(listener: BrokerListener, queues: readonly string[]): Promise<Subscription> {
    return await this.#notifications.subscribe(this.#open('subscribe'), listener, queues);
  }

  /** A Go server cancels the run as well, always with the outcome `retry`; it does not answer. */
  async cancel(request: CancelRequest, waitMs: number): Promise<boolean> {
    return await cancel(this.#open('cancel'), request, waitMs);
  }

  // Servers and schedulers.

  async announceServer(read: () => ServerState, ttlMs: number): Promise<void> {
    await members.announceServer(this.#open('announceServer'), read(), ttlMs);
  }

  async withdrawServer(id: string): Promise<void> {
    await members.withdrawServer(this.#open('withdrawServer'), id);
  }

  async servers(): Promise<readonly ServerState[]> {
    return await members.servers(this.#open('servers'));
  }

  async announceScheduler(id: string, read: () => readonly ScheduleEntry[], ttlMs: number): Promise<void> {
    await members.announceScheduler(this.#open('announceScheduler'), id, read(), ttlMs);
  }

  async withdrawScheduler(id: string): Promise<void> {
    await members.withdrawScheduler(this.#open('withdrawScheduler'), id);
  }

  async scheduleEntries(): Promise<readonly ScheduleEntry[]> {
    return await members.scheduleEntries(this.#open('scheduleEntries'));
  }

  async recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void> {
    await members.recordEnqueueEvent(this.#open('recordEnqueueEvent'), entryId, event);
  }

  async enqueueEvents(entryId: string, page: Page): Promise<readonly EnqueueEvent[]> {
    return await members.enqueueEvents(this.#open('enqueueEvents'), entryId, page);
  }

  // Inspecting.

  async queues(): Promise<readonly string[]> {
    return await queueNames(this.#open('queues'));
  }

  async queueStats(queue: string): Promise<QueueStats> {
    return await queueStats(this.#open('queueStats'), queue);
  }

  async history(queue: string, days: number): Promise<readonly DayStats[]> {
    return await history(this.#open('history'), queue, days);
  }

  async task(queue: string, id: string): Promise<TaskRecord> {
    return await task(this.#open('task'), queue, id);
  }

  async tasks(queue: string, state: TaskState, page: Page, group?: string): Promise<readonly TaskRecord[]> {
    return await tasks(this.#open('tasks'), queue, state, page, group);
  }

  async deleteTask(queue: string, id: string): Promise<void> {
    await administration.deleteTask(this.#open('deleteTask'), queue, id);
  }

  async runTask(queue: string, id: string): Promise<void> {
    await administration.runTask(this.#open('runTask'), queue, id);
  }

  async archiveTask(queue: string, id: string): Promise<void> {
    await administration.archiveTask(this.#open('archiveTask'), queue, id);
  }

  async updatePayload(queue: string, id: string, payload: Uint8Array): Promise<void> {
    await administration.updatePayload(this.#open('updatePayload'), queue, id, payload);
  }

  async deleteAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return await administration.deleteAll(this.#open('deleteAll'), { queue, state, group });
  }

  async runAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return await administration.runAll(this.#open('runAll'), { queue, state, group });
  }

  async archiveAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return await administration.archiveAll(this.#open('archiveAll'), { queue, state, group });
  }

  async repair(queue: string, { apply }: { readonly apply: boolean }): Promise<readonly Defect[]> {
    return await repair(this.#open('repair'), queue, apply);
  }

  async pause(queue: string): Promise<void> {
    await pause(this.#open('pause'), queue);
  }

  async resume(queue: string): Promise<void> {
    await resume(this.#open('resume'), queue);
  }

  async removeQueue(queue: string, { force }: { readonly force: boolean }): Promise<void> {
    await removeQueue(this.#open('removeQueue'), queue, force);
    this.#enqueuing.forget(queue);
  }

  /** @internal What a console prints: no password. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ clock: undefined, maintenance: undefined },
      ...('url' in this.#options
        ? { url: withoutCredentials(this.#options.url) }
        : { address: addressOf(this.#options.client) }),
      state: this.#isClosed ? 'closed' : this.#connection.health.state,
    }));
  }

  /** The access of an operation, whose errors name it. */
  #open(operation: string): RedisAccess {
    if (this.#isClosed) throw brokerClosed(`RedisBroker.${operation}`);
    return this.#redis.for(operation);
  }
}
