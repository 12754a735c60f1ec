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
import * as administration from './administration.ts';
import * as aggregation from './aggregation.ts';
import { CONNECTION_OPTIONS, type RedisConnectionOptions } from './connection-options.ts';
import { RedisConnection } from './connection.ts';
import { addressOf, describeRedis, parseInfo } from './describe-redis.ts';
import { Enqueuing } from './enqueuing.ts';
import * as forwarding from './forwarding.ts';
import { Hints } from './hints.ts';
import * as inspection from './inspection.ts';
import { leaseRouteOf } from './lease-route.ts';
import { leaseThreadFile } from './lease-thread-file.ts';
import { LeaseThread } from './lease-thread.ts';
import { Leases } from './leases.ts';
import { Members } from './members.ts';
import { RedisAccess } from './redis-access.ts';
import { withoutCredentials } from './redis-url.ts';
import { repair } from './repair.ts';
import { numberOf } from './replies.ts';

/** Options of a `RedisBroker`. All are checked when it is made. */
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
 * A broker on Redis, 6.2 or later, or on Valkey, for a fleet: clients, servers and inspectors of as many processes as there
 * are, written in Node or, with asynq, in Go. What it keeps is what asynq keeps, to the byte; what it adds is in fields and
 * keys that asynq leaves alone, whose names begin with `x:`.
 *
 * Times are kept in whole seconds, as asynq keeps them: what is due comes up to a second late, and never early.
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
  readonly #connection: RedisConnection;
  readonly #parts: Parts;
  readonly #options: RedisBrokerOptions;
  readonly #threads = new Set<LeaseThread>();
  #isClosed = false;

  /**
   * Connects at once, and does not wait for it: operations do.
   *
   * @throws TypeError or RangeError - an option is wrong.
   */
  constructor(options: RedisBrokerOptions) {
    const resolved = resolveBrokerSettings('RedisBroker', options, OPTIONS);
    requireBoolean('options.leaseThread', options.leaseThread ?? true);
    this.#connection = new RedisConnection(options);
    this.clock = resolved.clock;
    this.#options = options;
    const access = new RedisAccess(this.#connection, resolved);
    this.#parts = {
      access,
      enqueuing: new Enqueuing(access),
      leases: new Leases(access),
      members: new Members(access),
      hints: new Hints(access),
    };
  }

  async ping(): Promise<void> {
    await this.#open('ping').access.ask((client) => client.ping());
  }

  /** What Redis says of itself, by name: its command `INFO`; of a cluster, that of one node. */
  async info(): Promise<Readonly<Record<string, string>>> {
    return parseInfo(await this.#open('info').access.ask((client) => client.info()));
  }

  /**
   * What asynqmon's page on Redis shows: for the option `redisInfo` of `tasksHandler`. Of a cluster, where its queues are.
   *
   * @example tasksHandler({ broker, redisInfo: () => broker.redisInfo() })
   */
  async redisInfo(): Promise<RedisInfo> {
    return await describeRedis(this.#open('redisInfo').access);
  }

  /** A client that was passed in stays open. What has no answer yet rejects. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#parts.hints.close();
    await Promise.all([...this.#threads].map((thread) => thread.close()));
    await this.#connection.close();
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Writing.

  async enqueue(task: NewTask): Promise<TaskRecord> {
    return await this.#open('enqueue').enqueuing.enqueue(task);
  }

  async enqueueMany(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return await this.#open('enqueueMany').enqueuing.enqueueMany(tasks);
  }

  async enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined> {
    return await this.#open('enqueueTick').enqueuing.enqueueTick(task, tick);
  }

  async lastTickMs(queue: string, entryKey: string): Promise<number | undefined> {
    const { access } = this.#open('lastTickMs');
    const { ticks } = access.keysOf(queue);
    const last = await access.ask((client) => client.hgetBuffer(ticks, entryKey));
    return last === null ? undefined : numberOf(last);
  }

  // Processing.

  async dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return await this.#open('dequeue').leases.dequeue(queue, limit, leaseMs);
  }

  async complete(task: LeasedTask): Promise<void> {
    await this.#open('complete').leases.complete(task);
  }

  async retry(task: LeasedTask, failure: TaskFailure, atMs: number): Promise<void> {
    await this.#open('retry').leases.retry(task, failure, atMs);
  }

  async archive(task: LeasedTask, failure: TaskFailure): Promise<void> {
    await this.#open('archive').leases.archive(task, failure);
  }

  async release(task: LeasedTask): Promise<void> {
    await this.#open('release').leases.release(task);
  }

  async discard(task: LeasedTask): Promise<void> {
    await this.#open('discard').leases.discard(task);
  }

  async extendLeases(tasks: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]> {
    return await this.#open('extendLeases').leases.extend(tasks, leaseMs);
  }

  /** A thread: it starts with the first lease. There is none with a clock of your own, which a thread cannot read. */
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

  async writeResult(task: LeasedTask, result: Uint8Array): Promise<void> {
    await this.#open('writeResult').leases.writeResult(task, result);
  }

  async writeProgress(task: LeasedTask, progress: string): Promise<void> {
    await this.#open('writeProgress').leases.writeProgress(task, progress);
  }

  // Forwarding and recovering.

  async forward(queues: readonly string[]): Promise<number> {
    return await forwarding.forward(this.#open('forward').access, queues);
  }

  async recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return await this.#open('recover').leases.recover(queues, graceMs, leaseMs);
  }

  async deleteExpired(queues: readonly string[], limit: number): Promise<number> {
    return await forwarding.deleteExpired(this.#open('deleteExpired').access, queues, limit);
  }

  // Aggregation.

  async groups(queue: string): Promise<readonly GroupInfo[]> {
    return await aggregation.groups(this.#open('groups').access, queue);
  }

  async takeGroup(queue: string, group: string, limits: GroupLimits, holdMs: number): Promise<GroupTaking> {
    return await aggregation.takeGroup(this.#open('takeGroup').access, queue, group, limits, holdMs);
  }

  async replaceSet(set: TaskSet, task: NewTask): Promise<TaskRecord> {
    const { access, enqueuing } = this.#open('replaceSet');
    return await aggregation.replaceSet(access, enqueuing, set, task);
  }

  async reclaimSets(queues: readonly string[]): Promise<number> {
    return await forwarding.reclaimSets(this.#open('reclaimSets').access, queues);
  }

  // Hints and cancellation.

  async subscribe(listener: BrokerListener, queues: readonly string[]): Promise<Subscription> {
    return await this.#open('subscribe').hints.subscribe(listener, queues);
  }

  /** A Go server does as it is told as well, in its own way, which is to retry the task; it does not answer. */
  async cancel(request: CancelRequest, waitMs: number): Promise<boolean> {
    return await this.#open('cancel').hints.cancel(request, waitMs);
  }

  // Servers and schedulers.

  async announceServer(read: () => ServerState, ttlMs: number): Promise<void> {
    await this.#open('announceServer').members.announceServer(read(), ttlMs);
  }

  async withdrawServer(id: string): Promise<void> {
    await this.#open('withdrawServer').members.withdrawServer(id);
  }

  async servers(): Promise<readonly ServerState[]> {
    return await this.#open('servers').members.servers();
  }

  async announceScheduler(id: string, read: () => readonly ScheduleEntry[], ttlMs: number): Promise<void> {
    await this.#open('announceScheduler').members.announceScheduler(id, read(), ttlMs);
  }

  async withdrawScheduler(id: string): Promise<void> {
    await this.#open('withdrawScheduler').members.withdrawScheduler(id);
  }

  async scheduleEntries(): Promise<readonly ScheduleEntry[]> {
    return await this.#open('scheduleEntries').members.scheduleEntries();
  }

  async recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void> {
    await this.#open('recordEnqueueEvent').members.recordEnqueueEvent(entryId, event);
  }

  async enqueueEvents(entryId: string, page: Page): Promise<readonly EnqueueEvent[]> {
    return await this.#open('enqueueEvents').members.enqueueEvents(entryId, page);
  }

  // Inspecting.

  async queues(): Promise<readonly string[]> {
    return await inspection.queueNames(this.#open('queues').access);
  }

  async queueStats(queue: string): Promise<QueueStats> {
    return await inspection.queueStats(this.#open('queueStats').access, queue);
  }

  async history(queue: string, days: number): Promise<readonly DayStats[]> {
    return await inspection.history(this.#open('history').access, queue, days);
  }

  async task(queue: string, id: string): Promise<TaskRecord> {
    return await inspection.task(this.#open('task').access, queue, id);
  }

  async tasks(queue: string, state: TaskState, page: Page, group?: string): Promise<readonly TaskRecord[]> {
    return await inspection.tasks(this.#open('tasks').access, queue, state, page, group);
  }

  async deleteTask(queue: string, id: string): Promise<void> {
    await administration.deleteTask(this.#open('deleteTask').access, queue, id);
  }

  async runTask(queue: string, id: string): Promise<void> {
    await administration.runTask(this.#open('runTask').access, queue, id);
  }

  async archiveTask(queue: string, id: string): Promise<void> {
    await administration.archiveTask(this.#open('archiveTask').access, queue, id);
  }

  async updatePayload(queue: string, id: string, payload: Uint8Array): Promise<void> {
    await administration.updatePayload(this.#open('updatePayload').access, queue, id, payload);
  }

  async deleteAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return await administration.deleteAll(this.#open('deleteAll').access, queue, state, group);
  }

  async runAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return await administration.runAll(this.#open('runAll').access, queue, state, group);
  }

  async archiveAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return await administration.archiveAll(this.#open('archiveAll').access, queue, state, group);
  }

  async repair(queue: string, { apply }: { readonly apply: boolean }): Promise<readonly Defect[]> {
    return await repair(this.#open('repair').access, queue, apply);
  }

  async pause(queue: string): Promise<void> {
    await administration.pause(this.#open('pause').access, queue);
  }

  async resume(queue: string): Promise<void> {
    await administration.resume(this.#open('resume').access, queue);
  }

  async removeQueue(queue: string, { force }: { readonly force: boolean }): Promise<void> {
    const { access, enqueuing } = this.#open('removeQueue');
    await administration.removeQueue(access, queue, force);
    enqueuing.forget(queue);
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

  #open(operation: string): Parts {
    if (this.#isClosed) throw brokerClosed(`RedisBroker.${operation}`);
    return this.#parts;
  }
}

/** What the broker's operations are made of. */
interface Parts {
  readonly access: RedisAccess;
  readonly enqueuing: Enqueuing;
  readonly leases: Leases;
  readonly members: Members;
  readonly hints: Hints;
}
