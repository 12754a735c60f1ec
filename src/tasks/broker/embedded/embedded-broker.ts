/* eslint-disable @typescript-eslint/require-await -- `async` makes a rejection of what is thrown; there is nothing to wait for */
import type { Clock } from '../../../core/clock.ts';
import type { TaskState } from '../../task-state.ts';
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
import { brokerClosed } from '../broker-errors.ts';
import { resolveBrokerSettings, type BrokerSettings } from '../broker-settings.ts';
import * as administration from './administration.ts';
import * as groups from './groups.ts';
import * as inspection from './inspection.ts';
import * as life from './life-of-a-task.ts';
import { Members } from './members.ts';
import { TaskStore } from './task-store.ts';

/** The door for the integrity checker, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.embedded-broker.internals');

/** What the integrity checker sees of an embedded broker. */
export interface EmbeddedBrokerInternals {
  /** Undefined once the broker is closed. */
  readonly store: TaskStore | undefined;
}

/** Options of an `EmbeddedBroker`. */
export type EmbeddedBrokerOptions = BrokerSettings;

/**
 * A broker in the memory of the process: nothing to install, nothing to configure. Its tasks are gone with the process.
 *
 * Every operation is done when it returns; its promise is settled already. One timer forwards due tasks, ends leases and
 * removes expired tasks, to the millisecond: nothing polls. The timer keeps the process alive while there is a subscription
 * (a server has one), and not otherwise, because then nothing would run the tasks.
 *
 * @example
 * ```ts
 * const broker = await EmbeddedBroker.open();
 * const client = new Client({ broker });
 * const server = new Server({ broker });
 * ```
 */
export class EmbeddedBroker implements Broker {
  readonly clock: Clock;
  readonly isSelfDriven = true;
  readonly #members = new Members();
  /** Undefined once it is closed, so that a reference to a closed broker keeps no tasks in memory. */
  #store: TaskStore | undefined;

  private constructor(store: TaskStore) {
    this.clock = store.clock;
    this.#store = store;
  }

  /** @throws TypeError or RangeError - an option is wrong. */
  static async open(options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> {
    return new EmbeddedBroker(new TaskStore(resolveBrokerSettings(options)));
  }

  async ping(): Promise<void> {
    this.#open('ping');
  }

  /** Forgets everything at once; a bulk operation in progress stops and rejects. */
  async close(): Promise<void> {
    this.#store?.close();
    this.#store = undefined;
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Writing.

  async enqueue(task: NewTask): Promise<TaskRecord> {
    return life.enqueue(this.#open('enqueue'), task);
  }

  async enqueueMany(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return life.enqueueMany(this.#open('enqueueMany'), tasks);
  }

  async enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined> {
    return life.enqueueTick(this.#open('enqueueTick'), task, tick);
  }

  async lastTickMs(queue: string, entryKey: string): Promise<number | undefined> {
    return this.#open('lastTickMs').queues.get(queue)?.ticks.get(entryKey);
  }

  // Processing.

  async dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return life.dequeue(this.#open('dequeue'), queue, limit, leaseMs);
  }

  async complete(task: LeasedTask): Promise<void> {
    life.complete(this.#open('complete'), task);
  }

  async retry(task: LeasedTask, failure: TaskFailure, atMs: number): Promise<void> {
    life.retry(this.#open('retry'), task, failure, atMs);
  }

  async archive(task: LeasedTask, failure: TaskFailure): Promise<void> {
    life.archive(this.#open('archive'), task, failure);
  }

  async release(task: LeasedTask): Promise<void> {
    life.release(this.#open('release'), task);
  }

  async discard(task: LeasedTask): Promise<void> {
    life.discard(this.#open('discard'), task);
  }

  async extendLeases(tasks: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]> {
    return life.extendLeases(this.#open('extendLeases'), tasks, leaseMs);
  }

  async writeResult(task: LeasedTask, result: Uint8Array): Promise<void> {
    life.writeResult(this.#open('writeResult'), task, result);
  }

  async writeProgress(task: LeasedTask, progress: string): Promise<void> {
    life.writeProgress(this.#open('writeProgress'), task, progress);
  }

  // Forwarding and recovering.

  async forward(queues: readonly string[]): Promise<number> {
    return life.forward(this.#open('forward'), queues);
  }

  async recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return life.recover(this.#open('recover'), queues, graceMs, leaseMs);
  }

  async deleteExpired(queues: readonly string[], limit: number): Promise<number> {
    return life.deleteExpired(this.#open('deleteExpired'), queues, limit);
  }

  // Aggregation.

  async groups(queue: string): Promise<readonly GroupInfo[]> {
    return groups.groups(this.#open('groups'), queue);
  }

  async takeGroup(queue: string, group: string, limits: GroupLimits, holdMs: number): Promise<GroupTaking> {
    return groups.takeGroup(this.#open('takeGroup'), queue, group, limits, holdMs);
  }

  async replaceSet(set: TaskSet, task: NewTask): Promise<TaskRecord> {
    return groups.replaceSet(this.#open('replaceSet'), set, task);
  }

  async reclaimSets(queues: readonly string[]): Promise<number> {
    return groups.reclaimSets(this.#open('reclaimSets'), queues);
  }

  // Notifications and cancellation.

  /** A listener is notified of events in all queues. */
  async subscribe(listener: BrokerListener, _queues?: readonly string[]): Promise<Subscription> {
    const store = this.#open('subscribe');
    store.subscribe(listener);
    let isOver = false;
    return {
      close: async () => {
        if (!isOver) store.unsubscribe(listener);
        isOver = true;
      },
    };
  }

  /** The server that runs the task answers at once: `waitMs` is not needed. */
  async cancel(request: CancelRequest, _waitMs: number): Promise<boolean> {
    return this.#open('cancel').notifications.cancel(request);
  }

  // Servers and schedulers.

  async announceServer(read: () => ServerState, _ttlMs: number): Promise<void> {
    this.#open('announceServer');
    this.#members.announceServer(read);
  }

  async withdrawServer(id: string): Promise<void> {
    this.#open('withdrawServer');
    this.#members.withdrawServer(id);
  }

  async servers(): Promise<readonly ServerState[]> {
    this.#open('servers');
    return this.#members.servers();
  }

  async announceScheduler(id: string, read: () => readonly ScheduleEntry[], _ttlMs: number): Promise<void> {
    this.#open('announceScheduler');
    this.#members.announceScheduler(id, read);
  }

  async withdrawScheduler(id: string): Promise<void> {
    this.#open('withdrawScheduler');
    this.#members.withdrawScheduler(id);
  }

  async scheduleEntries(): Promise<readonly ScheduleEntry[]> {
    this.#open('scheduleEntries');
    return this.#members.scheduleEntries();
  }

  async recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void> {
    this.#open('recordEnqueueEvent');
    this.#members.recordEvent(entryId, event);
  }

  async enqueueEvents(entryId: string, page: Page): Promise<readonly EnqueueEvent[]> {
    this.#open('enqueueEvents');
    return this.#members.events(entryId, page);
  }

  // Inspecting.

  async queues(): Promise<readonly string[]> {
    return inspection.queueNames(this.#open('queues'));
  }

  async queueStats(queue: string): Promise<QueueStats> {
    return inspection.queueStats(this.#open('queueStats'), queue);
  }

  async history(queue: string, days: number): Promise<readonly DayStats[]> {
    return inspection.history(this.#open('history'), queue, days);
  }

  async task(queue: string, id: string): Promise<TaskRecord> {
    const store = this.#open('task');
    return inspection.recordOf(store, store.row(queue, id));
  }

  async tasks(queue: string, state: TaskState, page: Page, group?: string): Promise<readonly TaskRecord[]> {
    return inspection.tasks(this.#open('tasks'), queue, state, page, group);
  }

  async deleteTask(queue: string, id: string): Promise<void> {
    administration.changeTask(this.#open('deleteTask'), administration.DELETE, queue, id);
  }

  async runTask(queue: string, id: string): Promise<void> {
    administration.changeTask(this.#open('runTask'), administration.RUN, queue, id);
  }

  async archiveTask(queue: string, id: string): Promise<void> {
    administration.changeTask(this.#open('archiveTask'), administration.ARCHIVE, queue, id);
  }

  async updatePayload(queue: string, id: string, payload: Uint8Array): Promise<void> {
    administration.updatePayload(this.#open('updatePayload'), queue, id, payload);
  }

  async deleteAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return administration.changeAll(this.#open('deleteAll'), administration.DELETE, queue, state, group);
  }

  async runAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return administration.changeAll(this.#open('runAll'), administration.RUN, queue, state, group);
  }

  async archiveAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return administration.changeAll(this.#open('archiveAll'), administration.ARCHIVE, queue, state, group);
  }

  /** Returns no defects: no other program can change the broker's memory. */
  async repair(queue: string, _options: { readonly apply: boolean }): Promise<readonly Defect[]> {
    this.#open('repair').queue(queue);
    return [];
  }

  async pause(queue: string): Promise<void> {
    administration.pause(this.#open('pause'), queue);
  }

  async resume(queue: string): Promise<void> {
    administration.resume(this.#open('resume'), queue);
  }

  /** The queue is removed at once; what its tasks hold is freed in pieces. */
  async removeQueue(queue: string, options: { readonly force: boolean }): Promise<void> {
    await administration.removeQueue(this.#open('removeQueue'), queue, options.force);
  }

  /** @internal For the integrity checker. */
  [INTERNALS](): EmbeddedBrokerInternals {
    return { store: this.#store };
  }

  #open(operation: string): TaskStore {
    if (this.#store === undefined) throw brokerClosed(`EmbeddedBroker.${operation}`);
    return this.#store;
  }
}
