import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { wrongType, wrongValue } from '../core/errors.ts';
import { readOptions } from '../core/options.ts';
import { ownTurn } from '../core/own-turn.ts';
import { requireIntegerAtLeast, requireObject, requireOneOf } from '../core/validate.ts';
import { requireExistingQueueName, requireQueueName, requireText } from './argument-checks.ts';
import { HISTORY_DAYS, requireLimits } from './broker/broker-settings.ts';
import type {
  Broker,
  Defect,
  GroupInfo,
  KeyStats,
  Page,
  QueueLimits,
  ScanPosition,
  TaskRecord,
  TaskTarget,
} from './broker/broker.ts';
import {
  type DailyStats,
  dailyStatsOf,
  enqueueEventOf,
  type QueueInfo,
  queueInfoOf,
  type SchedulerEnqueueEvent,
  type SchedulerEntryInfo,
  schedulerEntryInfoOf,
  type ServerInfo,
  serverInfoOf,
  TaskInfo,
} from './info.ts';
import {
  CANCEL_OPTIONS,
  DELETE_QUEUE_OPTIONS,
  INSPECTOR_OPTIONS,
  LIST_OPTIONS,
  REPAIR_OPTIONS,
  SCAN_OPTIONS,
  WAIT_FOR_OPTIONS,
  type CancelOptions,
  type DeleteQueueOptions,
  type InspectorOptions,
  type ListOptions,
  type RepairOptions,
  type ScanOptions,
  type WaitForOptions,
} from './inspector-options.ts';
import { encodePayload } from './payload.ts';
import { StateOperations } from './state-operations.ts';
import { TASK_CHANGES, TASK_STATES, type TaskChange, type TaskState } from './task-state.ts';
import { TaskWaits } from './task-waits.ts';

/**
 * Reads and changes queues and tasks: asynq's class of this name.
 *
 * Operations on a queue that does not exist reject with `ERR_QUEUE_NOT_FOUND`, those on a task with `ERR_TASK_NOT_FOUND`, except
 * where their description differs; with an invalid argument, they reject with a TypeError or RangeError. A list is read page by
 * page, see {@link ListOptions}.
 *
 * @example
 * ```ts
 * const inspector = new Inspector({ broker });
 * for (const queue of await inspector.queues()) console.log(await inspector.getQueueInfo(queue));
 * await inspector.runAllArchivedTasks('default');
 * ```
 */
export class Inspector extends StateOperations {
  readonly #broker: Broker;
  readonly #waits: TaskWaits;

  constructor(options: InspectorOptions) {
    super();
    this.#broker = readOptions('Inspector', options, INSPECTOR_OPTIONS).broker;
    this.#waits = new TaskWaits(this.#broker);
  }

  /** Rejects all calls of `waitFor` with `ERR_INSPECTOR_CLOSED`. The broker stays open. Idempotent. */
  close(): Promise<void> {
    return this.#waits.close();
  }

  /** Calls `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      state: this.#waits.isClosed ? 'closed' : 'open',
      broker: this.#broker,
    }));
  }

  /** Returns the names of all queues, except those whose keys in Redis could be those of another one: their names contain `}:`. */
  async queues(): Promise<readonly string[]> {
    return this.#broker.queues();
  }

  /** Returns counts and sizes of a queue. */
  async getQueueInfo(queue: string): Promise<QueueInfo> {
    requireExistingQueueName('queue', queue);
    return queueInfoOf(await this.#broker.queueStats(queue));
  }

  /** Returns the counts of the last days by UTC, today first. @param days - at least 1; counts of 90 days are kept. */
  async history(queue: string, days: number): Promise<readonly DailyStats[]> {
    requireExistingQueueName('queue', queue);
    requireIntegerAtLeast('days', 1, days);
    return (await this.#broker.history(queue, Math.min(days, HISTORY_DAYS))).map(dailyStatsOf);
  }

  /** Returns the groups of a queue that have tasks: none if it does not exist. */
  async groups(queue: string): Promise<readonly GroupInfo[]> {
    requireExistingQueueName('queue', queue);
    return this.#broker.groups(queue);
  }

  /** Returns the limits of a queue as they were set; undefined if it has none, or does not exist. */
  async limits(queue: string): Promise<QueueLimits | undefined> {
    requireExistingQueueName('queue', queue);
    return this.#broker.limits(queue);
  }

  /**
   * Sets the limits of a queue, for all servers of the broker, within a second; undefined removes them. Runs in progress go on.
   *
   * @example
   * ```ts
   * await inspector.setLimits('mail', { rate: { tasks: 100, perMs: 1_000 }, perKey: { concurrency: 1 } });
   * ```
   */
  async setLimits(queue: string, limits: QueueLimits | undefined): Promise<void> {
    requireQueueName('queue', queue);
    if (limits !== undefined) requireLimits('limits', limits);
    await this.#broker.setLimits(queue, limits);
  }

  /** Returns a page of the keys of a queue that have tasks which wait or run, and what holds them back. */
  async keys(queue: string, options: ListOptions = {}): Promise<readonly KeyStats[]> {
    requireExistingQueueName('queue', queue);
    return this.#broker.keys(queue, pageOf(options));
  }

  /** Pauses a queue: none of its tasks is started until it is resumed. Runs in progress go on. @throws `ERR_QUEUE_STATE` - it is paused. */
  async pauseQueue(queue: string): Promise<void> {
    requireExistingQueueName('queue', queue);
    await this.#broker.pause(queue);
  }

  /** Resumes a queue. @throws EscapementError `ERR_QUEUE_STATE` - it is not paused. */
  async unpauseQueue(queue: string): Promise<void> {
    requireExistingQueueName('queue', queue);
    await this.#broker.resume(queue);
  }

  /**
   * Deletes a queue.
   *
   * @param options - `force` to delete its tasks too, if none is active.
   * @throws EscapementError `ERR_QUEUE_NOT_EMPTY` - it has tasks; with `force`, active ones.
   */
  async deleteQueue(queue: string, options: DeleteQueueOptions = {}): Promise<void> {
    requireExistingQueueName('queue', queue);
    await this.#broker.removeQueue(
      queue,
      readOptions('Inspector.deleteQueue', options, DELETE_QUEUE_OPTIONS),
    );
  }

  /**
   * Finds defects of queues, as a crash of Redis, a bug of another program or a manual change leaves them: ids without tasks,
   * tasks in no list, active tasks without a lease, leaked locks and more; see `DefectKind`. O(tasks); on Redis, where all keys of the
   * database are scanned for each queue, O(queues × keys) as well, and each pending or active task that is in no list takes a search of that
   * list.
   *
   * @param options - `apply` to repair them; else nothing is changed.
   * @returns the defects that were found.
   */
  async repair(options: RepairOptions = {}): Promise<readonly Defect[]> {
    const { apply, queues } = readOptions('Inspector.repair', options, REPAIR_OPTIONS);
    const defects: Defect[] = [];
    for (const queue of queues ?? (await this.#broker.queues())) {
      for (const defect of await this.#broker.repair(queue, { apply })) defects.push(defect);
    }
    return defects;
  }

  // Tasks.

  /** @internal The dashboard has more fields of a task. */
  protected infoOf(record: TaskRecord): TaskInfo {
    return new TaskInfo(record);
  }

  /** Returns a task. */
  async getTaskInfo(queue: string, id: string): Promise<TaskInfo> {
    requireTaskName(queue, id);
    return this.infoOf(await this.#broker.task(queue, id));
  }

  /**
   * Returns a page of the tasks in a state. Pending tasks: the next one first; scheduled and retry tasks: the earliest first;
   * others: the oldest first; on Redis, of completed tasks the first that expires. Tasks of a group that are being aggregated come behind
   * those that wait in it.
   *
   * @param group - the group, if the state is aggregating.
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
    return records.map((record) => this.infoOf(record));
  }

  /**
   * Reads the tasks of a queue in some states or all, piece by piece and in any order, to find some of them: a loop may change what it has
   * read. Every task that stays in its state is among them; on Redis, one may come twice. Each piece is read when the loop requests
   * it, in a turn of its own: neither the event loop nor Redis is held up for more than some milliseconds, however many tasks there are.
   *
   * @example
   * ```ts
   * for await (const tasks of inspector.scan('default', { states: ['archived'] }))
   *   for (const task of tasks) if (task.lastError.includes('timeout')) await inspector.runTask('default', task.id);
   * ```
   */
  async *scan(
    queue: string,
    options: ScanOptions = {},
  ): AsyncGenerator<readonly TaskInfo[], void, undefined> {
    requireExistingQueueName('queue', queue);
    const { states, pageSize } = readOptions('Inspector.scan', options, SCAN_OPTIONS);
    let from: ScanPosition | undefined;
    do {
      const { tasks, next } = await this.#broker.scan(queue, states, pageSize, from);
      if (tasks.length > 0) yield tasks.map((record) => this.infoOf(record));
      from = next;
      await ownTurn(); // the embedded broker reads without a turn of the host
    } while (from !== undefined);
  }

  /**
   * Deletes, runs (makes pending) or archives one task, or all in a state: in batches, so that no other program waits for long.
   *
   * @param target - id of the task, or a state; for aggregating tasks, with their group.
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

  /** Deletes a task. @throws EscapementError `ERR_TASK_STATE` - it is active: cancel it instead. */
  async deleteTask(queue: string, id: string): Promise<void> {
    await this.change(queue, { id }, 'delete');
  }

  /** Makes a task pending. @throws EscapementError `ERR_TASK_STATE` - it is pending or active. */
  async runTask(queue: string, id: string): Promise<void> {
    await this.change(queue, { id }, 'run');
  }

  /** Archives a task. @throws EscapementError `ERR_TASK_STATE` - it is archived, or active: cancel it instead. */
  async archiveTask(queue: string, id: string): Promise<void> {
    await this.change(queue, { id }, 'archive');
  }

  /**
   * Replaces the payload of a scheduled task. Its unique lock, if it has one, stays that of the old payload.
   *
   * @param payload - a Uint8Array or a JSON-serializable value.
   * @throws EscapementError `ERR_TASK_STATE` - the task is not scheduled.
   */
  async updateTaskPayload(queue: string, id: string, payload: unknown): Promise<void> {
    requireTaskName(queue, id);
    await this.#broker.updatePayload(queue, id, encodePayload(payload));
  }

  /**
   * Requests the server that runs a task to stop it: the signal of its handler fires. Best effort: a task that is not running is
   * not changed.
   *
   * @returns whether a server that runs the task has answered within `waitMs`.
   */
  async cancelProcessing(id: string, options: CancelOptions = {}): Promise<boolean> {
    requireText('id', id);
    const { queue, outcome, waitMs } = readOptions('Inspector.cancelProcessing', options, CANCEL_OPTIONS);
    return this.#broker.cancel({ taskId: id, queue, outcome }, waitMs);
  }

  /**
   * Waits for the end of a task; without a limit, unless a signal is given. If the broker is in this process, waiting costs nothing;
   * otherwise the task is read every second. While the broker is unavailable, the wait goes on.
   *
   * A completed task can be distinguished from a deleted one only while it is retained: enqueue it with a retention of some seconds, more if
   * the broker is not in this process.
   *
   * @param task - the result of `enqueue`, or the id of a task of the queue in the options.
   * @returns the completed task, with its result.
   * @throws EscapementError `ERR_TASK_ARCHIVED` - it failed for the last time, or was archived. `ERR_TASK_NOT_FOUND` - it was
   * never enqueued, was deleted, or was completed and is not retained. `ERR_INSPECTOR_CLOSED`.
   * @throws the signal's reason - it fired.
   */
  async waitFor(
    task: string | Pick<TaskInfo, 'id' | 'queue'>,
    options: WaitForOptions = {},
  ): Promise<TaskInfo> {
    const { signal, queue: queueOfId } = readOptions('Inspector.waitFor', options, WAIT_FOR_OPTIONS);
    const given: unknown = typeof task === 'string' ? { id: task, queue: queueOfId } : task;
    const { id, queue } = (given ?? {}) as Partial<TaskInfo>;
    if (id === undefined || queue === undefined) {
      throw wrongType('task', 'what enqueue resolves to, or an id', task);
    }
    requireTaskName(queue, id);
    return this.#waits.wait(queue, id, signal);
  }

  // Servers and schedulers.

  /** Returns the servers that are running. */
  async servers(): Promise<readonly ServerInfo[]> {
    return (await this.#broker.servers()).map(serverInfoOf);
  }

  /** Returns the entries of all schedulers that are running. */
  async schedulerEntries(): Promise<readonly SchedulerEntryInfo[]> {
    return (await this.#broker.scheduleEntries()).map(schedulerEntryInfoOf);
  }

  /** Returns a page of the ticks of an entry that were enqueued, the newest first. The last thousand are kept; an unknown entry has none. */
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
  else if (group !== undefined)
    throw wrongValue('group', "undefined unless the state is 'aggregating'", group);
}

function pageOf(options: ListOptions): Page {
  const { page, pageSize } = readOptions('Inspector', options, LIST_OPTIONS);
  return { page, size: pageSize };
}
