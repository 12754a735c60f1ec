/* eslint-disable @typescript-eslint/require-await -- `async` makes a rejection of what is thrown; there is nothing to wait for */
import type { Clock } from '../../../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../../../core/console-view.ts';
import { illegalConstructor } from '../../../core/errors.ts';
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
import * as administration from './administration.ts';
import * as aggregation from './aggregation.ts';
import { brokerClosed } from '../broker-errors.ts';
import { applyToAll, ARCHIVE_ALL, clear, DELETE_ALL, RUN_ALL } from './bulk.ts';
import { INTERNALS, type EmbeddedBrokerInternals } from './embedded-broker-internals.ts';
import { resolveBrokerSettings, type BrokerSettings } from '../broker-settings.ts';
import * as enqueuing from './enqueuing.ts';
import * as forwarding from './forwarding.ts';
import * as inspection from './inspection.ts';
import * as leases from './leases.ts';
import { recordOf } from './record.ts';
import { Registry } from './registry.ts';
import { TaskStore } from './task-store.ts';

/** Options of an `EmbeddedBroker`. */
export type EmbeddedBrokerOptions = BrokerSettings;

/**
 * A broker in the memory of the process: nothing to install, nothing to configure. Its tasks are gone with the process.
 *
 * Every operation is done when it returns; its promise is settled already. What is due, whose lease ends, what was retained
 * for long enough is seen to by one timer, to the millisecond: nobody polls. That timer keeps the process alive while
 * somebody is subscribed (a server, say), and not otherwise: what waits would have nobody to run it.
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
  readonly #registry = new Registry();
  /** Undefined once it is closed: a broker that somebody still has keeps nothing. */
  #store: TaskStore | undefined;

  private constructor(store: TaskStore) {
    if (!(store instanceof TaskStore))
      throw illegalConstructor('EmbeddedBroker', 'await EmbeddedBroker.open({ … })');
    this.clock = store.clock;
    this.#store = store;
  }

  /** @throws TypeError or RangeError - an option is wrong. */
  static async open(options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> {
    return new EmbeddedBroker(new TaskStore(resolveBrokerSettings('EmbeddedBroker.open', options)));
  }

  async ping(): Promise<void> {
    this.#open('ping');
  }

  /** Forgets everything, at once; a bulk operation that is under way stops, and rejects. */
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
    return enqueuing.enqueue(this.#open('enqueue'), task);
  }

  async enqueueMany(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return enqueuing.enqueueMany(this.#open('enqueueMany'), tasks);
  }

  async enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined> {
    return enqueuing.enqueueTick(this.#open('enqueueTick'), task, tick);
  }

  async lastTickMs(queue: string, entryKey: string): Promise<number | undefined> {
    return this.#open('lastTickMs').queues.get(queue)?.ticks.get(entryKey);
  }

  // Processing.

  async dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return leases.dequeue(this.#open('dequeue'), queue, limit, leaseMs);
  }

  async complete(task: LeasedTask): Promise<void> {
    leases.complete(this.#open('complete'), task);
  }

  async retry(task: LeasedTask, failure: TaskFailure, atMs: number): Promise<void> {
    leases.retry(this.#open('retry'), task, failure, atMs);
  }

  async archive(task: LeasedTask, failure: TaskFailure): Promise<void> {
    leases.archive(this.#open('archive'), task, failure);
  }

  async release(task: LeasedTask): Promise<void> {
    leases.release(this.#open('release'), task);
  }

  async discard(task: LeasedTask): Promise<void> {
    leases.discard(this.#open('discard'), task);
  }

  async extendLeases(tasks: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]> {
    return leases.extendLeases(this.#open('extendLeases'), tasks, leaseMs);
  }

  async writeResult(task: LeasedTask, result: Uint8Array): Promise<void> {
    leases.writeResult(this.#open('writeResult'), task, result);
  }

  async writeProgress(task: LeasedTask, progress: string): Promise<void> {
    leases.writeProgress(this.#open('writeProgress'), task, progress);
  }

  // Forwarding and recovering.

  async forward(queues: readonly string[]): Promise<number> {
    return forwarding.forward(this.#open('forward'), queues);
  }

  async recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return leases.recover(this.#open('recover'), queues, graceMs, leaseMs);
  }

  async deleteExpired(queues: readonly string[], limit: number): Promise<number> {
    return forwarding.deleteExpired(this.#open('deleteExpired'), queues, limit);
  }

  // Aggregation.

  async groups(queue: string): Promise<readonly GroupInfo[]> {
    return aggregation.groups(this.#open('groups'), queue);
  }

  async takeGroup(queue: string, group: string, limits: GroupLimits, holdMs: number): Promise<GroupTaking> {
    return aggregation.takeGroup(this.#open('takeGroup'), queue, group, limits, holdMs);
  }

  async replaceSet(set: TaskSet, task: NewTask): Promise<TaskRecord> {
    return aggregation.replaceSet(this.#open('replaceSet'), set, task);
  }

  async reclaimSets(queues: readonly string[]): Promise<number> {
    return aggregation.reclaimSets(this.#open('reclaimSets'), queues);
  }

  // Hints and cancellation.

  /** Whoever listens hears of all queues. */
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

  /** Whoever runs the task answers at once: `waitMs` is not needed. */
  async cancel(request: CancelRequest, _waitMs: number): Promise<boolean> {
    return this.#open('cancel').hints.cancel(request);
  }

  // Servers and schedulers.

  async announceServer(read: () => ServerState, _ttlMs: number): Promise<void> {
    this.#open('announceServer');
    this.#registry.announceServer(read);
  }

  async withdrawServer(id: string): Promise<void> {
    this.#open('withdrawServer');
    this.#registry.withdrawServer(id);
  }

  async servers(): Promise<readonly ServerState[]> {
    this.#open('servers');
    return this.#registry.servers();
  }

  async announceScheduler(id: string, read: () => readonly ScheduleEntry[], _ttlMs: number): Promise<void> {
    this.#open('announceScheduler');
    this.#registry.announceScheduler(id, read);
  }

  async withdrawScheduler(id: string): Promise<void> {
    this.#open('withdrawScheduler');
    this.#registry.withdrawScheduler(id);
  }

  async scheduleEntries(): Promise<readonly ScheduleEntry[]> {
    this.#open('scheduleEntries');
    return this.#registry.scheduleEntries();
  }

  async recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void> {
    this.#open('recordEnqueueEvent');
    this.#registry.recordEvent(entryId, event);
  }

  async enqueueEvents(entryId: string, page: Page): Promise<readonly EnqueueEvent[]> {
    this.#open('enqueueEvents');
    return this.#registry.events(entryId, page);
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
    return recordOf(store, store.row(queue, id));
  }

  async tasks(queue: string, state: TaskState, page: Page, group?: string): Promise<readonly TaskRecord[]> {
    return inspection.tasks(this.#open('tasks'), queue, state, page, group);
  }

  async deleteTask(queue: string, id: string): Promise<void> {
    administration.deleteTask(this.#open('deleteTask'), queue, id);
  }

  async runTask(queue: string, id: string): Promise<void> {
    administration.runTask(this.#open('runTask'), queue, id);
  }

  async archiveTask(queue: string, id: string): Promise<void> {
    administration.archiveTask(this.#open('archiveTask'), queue, id);
  }

  async updatePayload(queue: string, id: string, payload: Uint8Array): Promise<void> {
    administration.updatePayload(this.#open('updatePayload'), queue, id, payload);
  }

  async deleteAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return applyToAll(this.#open('deleteAll'), DELETE_ALL, queue, state, group);
  }

  async runAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return applyToAll(this.#open('runAll'), RUN_ALL, queue, state, group);
  }

  async archiveAll(queue: string, state: TaskState, group?: string): Promise<number> {
    return applyToAll(this.#open('archiveAll'), ARCHIVE_ALL, queue, state, group);
  }

  /** Nothing is ever wrong: there is nobody but us. */
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

  /** The queue is gone at once; what its tasks hold is given back in pieces. */
  async removeQueue(queue: string, options: { readonly force: boolean }): Promise<void> {
    const store = this.#open('removeQueue');
    await clear(store, administration.detachQueue(store, queue, options.force));
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => {
      const queues = this.#store && [...this.#store.queues.values()];
      return {
        ...{ clock: undefined, isSelfDriven: undefined, state: queues ? 'open' : 'closed' },
        queues: queues?.length,
        tasks: queues?.reduce((tasks, { rows }) => tasks + rows.size, 0),
      };
    });
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
