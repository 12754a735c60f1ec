import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { wrongType } from '../core/errors.ts';
import { readOptions } from '../core/options.ts';
import {
  requireFiniteNumber,
  requireIntegerAtLeast,
  requireObject,
  requireOneOf,
  requireOptions,
} from '../core/validate.ts';
import type { Broker, CancelOutcome, Defect, GroupInfo, TaskTarget } from './broker/broker.ts';
import { requireBroker } from './broker/require-broker.ts';
import {
  dailyStatsOf,
  enqueueEventOf,
  queueInfoOf,
  schedulerEntryInfoOf,
  serverInfoOf,
  type DailyStats,
  type QueueInfo,
  type SchedulerEnqueueEvent,
  type SchedulerEntryInfo,
  type ServerInfo,
} from './inspector-info.ts';
import {
  CANCEL_OPTIONS,
  DELETE_QUEUE_OPTIONS,
  INSPECTOR_OPTIONS,
  REPAIR_OPTIONS,
  WAIT_FOR_OPTIONS,
  type CancelOptions,
  type DeleteQueueOptions,
  type InspectorOptions,
  type RepairOptions,
  type WaitForOptions,
} from './inspector-options.ts';
import { pageOf, type ListOptions } from './list-options.ts';
import { encodePayload } from './payload.ts';
import { requireExistingQueueName, requireText } from './require-text.ts';
import { TaskInfo } from './task-info.ts';
import { requireDuration } from './task-options.ts';
import { TASK_CHANGES, TASK_STATES, type TaskChange, type TaskState } from './task-state.ts';
import { TaskWaits } from './task-waits.ts';

const OUTCOMES: readonly CancelOutcome[] = ['retry', 'archive', 'delete'];
const DEFAULT_CANCEL_WAIT_MS = 1_000;

/** Statistics are kept for ninety days. */
const MAX_HISTORY_DAYS = 90;

/**
 * Looks at queues and tasks, and changes them by hand: asynq's class of this name.
 *
 * Of a queue that is not there everything rejects with `ERR_QUEUE_NOT_FOUND`, of a task with `ERR_TASK_NOT_FOUND`, unless
 * it says otherwise; with a wrong argument, with a TypeError or RangeError. A list is a page of it, see {@link ListOptions}.
 *
 * @example
 * ```ts
 * const inspector = new Inspector({ broker });
 * for (const queue of await inspector.queues()) console.log(await inspector.getQueueInfo(queue));
 * await inspector.runAllArchivedTasks('default');
 * ```
 */
export class Inspector {
  readonly #broker: Broker;
  readonly #waits: TaskWaits;

  constructor(options: InspectorOptions) {
    requireOptions('Inspector', options, INSPECTOR_OPTIONS);
    requireBroker('options.broker', options.broker);
    this.#broker = options.broker;
    this.#waits = new TaskWaits(options.broker);
  }

  /** Ends all waits, with `ERR_INSPECTOR_CLOSED`. The broker stays open. Idempotent. */
  close(): Promise<void> {
    return this.#waits.close();
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      state: this.#waits.isClosed ? 'closed' : 'open',
      broker: this.#broker,
    }));
  }

  // Queues.

  /** The names of all queues, except those whose keys in Redis could be those of another one: `}:` is in such a name. */
  async queues(): Promise<readonly string[]> {
    return this.#broker.queues();
  }

  /** How many tasks a queue has, and what it has done. */
  async getQueueInfo(queue: string): Promise<QueueInfo> {
    requireExistingQueueName('queue', queue);
    return queueInfoOf(await this.#broker.queueStats(queue));
  }

  /** @param days - how many, up to today: from 1 to 90. @returns today first. */
  async history(queue: string, days: number): Promise<readonly DailyStats[]> {
    requireExistingQueueName('queue', queue);
    requireIntegerAtLeast('days', 1, days);
    return (await this.#broker.history(queue, Math.min(days, MAX_HISTORY_DAYS))).map(dailyStatsOf);
  }

  /** Groups that have tasks. */
  async groups(queue: string): Promise<readonly GroupInfo[]> {
    requireExistingQueueName('queue', queue);
    return this.#broker.groups(queue);
  }

  /** No task of it is handed out until it is resumed; those that run are not touched. @throws `ERR_QUEUE_STATE` - it is paused. */
  async pauseQueue(queue: string): Promise<void> {
    requireExistingQueueName('queue', queue);
    await this.#broker.pause(queue);
  }

  /** @throws EscapementError `ERR_QUEUE_STATE` - it is not paused. */
  async unpauseQueue(queue: string): Promise<void> {
    requireExistingQueueName('queue', queue);
    await this.#broker.resume(queue);
  }

  /**
   * Deletes a queue.
   *
   * @param options - `force`: with all of its tasks, if none is active.
   * @throws EscapementError `ERR_QUEUE_NOT_EMPTY` - it has tasks; with `force`, active ones.
   */
  async deleteQueue(queue: string, options: DeleteQueueOptions = {}): Promise<void> {
    requireExistingQueueName('queue', queue);
    requireOptions('Inspector.deleteQueue', options, DELETE_QUEUE_OPTIONS);
    const { force = false } = options;
    if (typeof force !== 'boolean') throw wrongType('options.force', 'a boolean', force);
    await this.#broker.removeQueue(queue, { force });
  }

  /**
   * Looks for what is wrong with queues, as after a crash of Redis, a bug of another program, or a change by hand: ids
   * without tasks, tasks in no list, active ones without a lease, leaked locks and more; see `DefectKind`. O(all tasks).
   *
   * @param options - `apply` sees to it: without, nothing is changed. `queues`: all of them if it is absent.
   * @returns what was found.
   */
  async repair(options: RepairOptions = {}): Promise<readonly Defect[]> {
    requireOptions('Inspector.repair', options, REPAIR_OPTIONS);
    const { apply = false, queues } = options;
    if (typeof apply !== 'boolean') throw wrongType('options.apply', 'a boolean', apply);
    if (queues !== undefined) requireNames('options.queues', queues);
    const defects: Defect[] = [];
    for (const queue of queues ?? (await this.#broker.queues())) {
      defects.push(...(await this.#broker.repair(queue, { apply })));
    }
    return defects;
  }

  // Tasks.

  /** All that is known of a task. */
  async getTaskInfo(queue: string, id: string): Promise<TaskInfo> {
    requireTaskName(queue, id);
    return new TaskInfo(await this.#broker.task(queue, id));
  }

  /**
   * Returns a page of the tasks in a state. Pending tasks: the next one first; scheduled and retry tasks: the earliest first;
   * others: the oldest first.
   *
   * @param group - of aggregating tasks, their group.
   */
  async list(
    queue: string,
    state: TaskState,
    options: ListOptions = {},
    group?: string,
  ): Promise<readonly TaskInfo[]> {
    requireExistingQueueName('queue', queue);
    requireState(state, group);
    const records = await this.#broker.tasks(queue, state, pageOf(options), group);
    return records.map((record) => new TaskInfo(record));
  }

  /**
   * Deletes, runs (makes pending) or archives one task, or all in a state: in pieces, so that no other program waits for long.
   *
   * @param target - the task's id, or a state; of aggregating tasks, with their group.
   * @returns how many tasks were changed.
   * @throws EscapementError `ERR_TASK_STATE` - the change is refused in that state; see `TASK_CHANGES`.
   *
   * @example
   * ```ts
   * await inspector.change('default', { id: 'a' }, 'run');
   * await inspector.change('default', { state: 'archived' }, 'delete');
   * ```
   */
  async change(queue: string, target: TaskTarget, change: TaskChange): Promise<number> {
    requireExistingQueueName('queue', queue);
    requireObject('target', target);
    if ('id' in target) requireText('id', target.id);
    else requireState(target.state, target.group);
    requireOneOf('change', Object.keys(TASK_CHANGES), change);
    return this.#broker.change(queue, target, change);
  }

  /** The next one first. */
  listPendingTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'pending', options);
  }

  /** Those that somebody processes, or did until lately: see `isOrphaned`. The oldest first. */
  listActiveTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'active', options);
  }

  /** The earliest first. */
  listScheduledTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'scheduled', options);
  }

  /** The earliest first. */
  listRetryTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'retry', options);
  }

  /** The oldest first. */
  listArchivedTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'archived', options);
  }

  /** The oldest first. */
  listCompletedTasks(queue: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'completed', options);
  }

  /** The oldest first. */
  listAggregatingTasks(queue: string, group: string, options?: ListOptions): Promise<readonly TaskInfo[]> {
    return this.list(queue, 'aggregating', options, group);
  }

  /** @throws EscapementError `ERR_TASK_STATE` - it is active: it can be cancelled. */
  async deleteTask(queue: string, id: string): Promise<void> {
    await this.change(queue, { id }, 'delete');
  }

  /** Makes it pending. @throws EscapementError `ERR_TASK_STATE` - it is already, or active. */
  async runTask(queue: string, id: string): Promise<void> {
    await this.change(queue, { id }, 'run');
  }

  /** @throws EscapementError `ERR_TASK_STATE` - it is archived already, or active: it can be cancelled. */
  async archiveTask(queue: string, id: string): Promise<void> {
    await this.change(queue, { id }, 'archive');
  }

  /**
   * Gives a scheduled task another payload: bytes, or anything that JSON can say. Its lock, if it has one, stays that of
   * the old payload.
   *
   * @throws EscapementError `ERR_TASK_STATE` - it is not scheduled.
   */
  async updateTaskPayload(queue: string, id: string, payload: unknown): Promise<void> {
    requireTaskName(queue, id);
    await this.#broker.updatePayload(queue, id, encodePayload(payload));
  }

  // All tasks of a state: in pieces, so that nobody else waits for long.

  /** Deletes all pending tasks. @returns how many. */
  deleteAllPendingTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'pending' }, 'delete');
  }

  /** Deletes all scheduled tasks. @returns how many. */
  deleteAllScheduledTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'scheduled' }, 'delete');
  }

  /** Deletes all tasks that wait for a retry. @returns how many. */
  deleteAllRetryTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'retry' }, 'delete');
  }

  /** Deletes all archived tasks. @returns how many. */
  deleteAllArchivedTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'archived' }, 'delete');
  }

  /** Deletes all completed tasks. @returns how many. */
  deleteAllCompletedTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'completed' }, 'delete');
  }

  /** Deletes all tasks of a group. @returns how many. */
  deleteAllAggregatingTasks(queue: string, group: string): Promise<number> {
    return this.change(queue, { state: 'aggregating', group }, 'delete');
  }

  /** Makes pending all scheduled tasks. @returns how many. */
  runAllScheduledTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'scheduled' }, 'run');
  }

  /** Makes pending all tasks that wait for a retry. @returns how many. */
  runAllRetryTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'retry' }, 'run');
  }

  /** Makes pending all archived tasks. @returns how many. */
  runAllArchivedTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'archived' }, 'run');
  }

  /** Makes pending all tasks of a group. @returns how many. */
  runAllAggregatingTasks(queue: string, group: string): Promise<number> {
    return this.change(queue, { state: 'aggregating', group }, 'run');
  }

  /** Archives all pending tasks. @returns how many. */
  archiveAllPendingTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'pending' }, 'archive');
  }

  /** Archives all scheduled tasks. @returns how many. */
  archiveAllScheduledTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'scheduled' }, 'archive');
  }

  /** Archives all tasks that wait for a retry. @returns how many. */
  archiveAllRetryTasks(queue: string): Promise<number> {
    return this.change(queue, { state: 'retry' }, 'archive');
  }

  /** Archives all tasks of a group. @returns how many. */
  archiveAllAggregatingTasks(queue: string, group: string): Promise<number> {
    return this.change(queue, { state: 'aggregating', group }, 'archive');
  }

  // Runs.

  /**
   * Asks whoever runs a task to stop: its signal fires. Best effort: a task that nobody runs is not touched.
   *
   * @returns whether somebody who runs it has answered, within `waitMs`.
   */
  async cancelProcessing(id: string, options: CancelOptions = {}): Promise<boolean> {
    requireText('id', id);
    requireOptions('Inspector.cancelProcessing', options, CANCEL_OPTIONS);
    const { queue, outcome = 'retry', waitMs = DEFAULT_CANCEL_WAIT_MS } = options;
    if (queue !== undefined) requireExistingQueueName('options.queue', queue);
    requireOneOf('options.outcome', OUTCOMES, outcome);
    requireFiniteNumber('options.waitMs', waitMs);
    requireDuration('options.waitMs', waitMs);
    return this.#broker.cancel({ taskId: id, queue, outcome }, waitMs);
  }

  /**
   * Waits for the end of a task; for any time, unless a signal is given. Costs nothing while nothing happens, if the
   * broker is in this process; else the task is looked at every second. While the broker is unavailable it waits on.
   *
   * Only a task that is retained when it is done (`retentionMs`) can be told from one that was deleted. Retain it for some
   * seconds, more where the broker is not in this process.
   *
   * @param task - what `enqueue` has returned, or an id: then of the queue in the options.
   * @returns the completed task, with its result.
   * @throws EscapementError `ERR_TASK_ARCHIVED` - it has failed for the last time, or somebody has archived it.
   * `ERR_TASK_NOT_FOUND` - it was never there; or is gone: done and not retained, or deleted. `ERR_INSPECTOR_CLOSED`.
   * @throws the signal's reason - it fired.
   */
  async waitFor(
    task: string | Pick<TaskInfo, 'id' | 'queue'>,
    options: WaitForOptions = {},
  ): Promise<TaskInfo> {
    const { signal, queue: given } = readOptions('Inspector.waitFor', options, WAIT_FOR_OPTIONS);
    if (typeof task !== 'string') requireObject('task', task);
    const { id, queue } = typeof task === 'string' ? { id: task, queue: given } : task;
    requireTaskName(queue, id);
    return this.#waits.wait(queue, id, signal);
  }

  // Servers and schedulers.

  /** Those that run now. */
  async servers(): Promise<readonly ServerInfo[]> {
    return (await this.#broker.servers()).map(serverInfoOf);
  }

  /** Of all schedulers that run now. */
  async schedulerEntries(): Promise<readonly SchedulerEntryInfo[]> {
    return (await this.#broker.scheduleEntries()).map(schedulerEntryInfoOf);
  }

  /** The newest first; the last thousand are kept. Of an entry that is not there: none. */
  async listSchedulerEnqueueEvents(
    entryId: string,
    options: ListOptions = {},
  ): Promise<readonly SchedulerEnqueueEvent[]> {
    requireText('entryId', entryId);
    return (await this.#broker.enqueueEvents(entryId, pageOf(options))).map(enqueueEventOf);
  }
}

function requireTaskName(queue: unknown, id: unknown): void {
  requireExistingQueueName('queue', queue);
  requireText('id', id);
}

function requireState(state: TaskState, group: unknown): void {
  requireOneOf('state', TASK_STATES, state);
  if (state === 'aggregating') requireText('group', group);
}

function requireNames(argument: string, value: unknown): void {
  if (!Array.isArray(value)) throw wrongType(argument, 'an array of names', value);
  for (const name of value as unknown[]) requireExistingQueueName(argument, name);
}
