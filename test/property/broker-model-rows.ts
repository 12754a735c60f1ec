import type { LeasedTask, TaskState } from 'escapement/tasks';
import { failWith } from './actions.ts';
import {
  isWaitingIn,
  tasksIn,
  type ModelLock,
  type ModelOptions,
  type ModelQueue,
  type ModelSet,
  type ModelTask,
} from './broker-model-parts.ts';
import { arrange } from './broker-model-turns.ts';

/** The tasks of a BrokerModel, and the ways in which they move from one state to another. */
export class BrokerModelRows {
  protected queues = new Map<string, ModelQueue>();
  protected readonly options: ModelOptions;
  protected locks: ModelLock[] = [];
  protected serial = 0;
  protected epoch = 0;
  protected nowMs: number;

  constructor(options: ModelOptions) {
    this.options = options;
    this.nowMs = options.startMs;
  }

  protected queueOf(name: string): ModelQueue {
    return this.queues.get(name) ?? failWith('ERR_QUEUE_NOT_FOUND');
  }

  protected homeOf({ message }: ModelTask): ModelQueue {
    return this.queueOf(message.queue);
  }

  protected find(queue: string, id: string): ModelTask | undefined {
    return this.queues.get(queue)?.tasks.find(({ message }) => message.id === id);
  }

  protected rowsIn(queue: string, state: TaskState): ModelTask[] {
    return tasksIn(this.queues.get(queue)?.tasks ?? [], this.options.ties, state);
  }

  /** What waits in a group, and is in no set. */
  protected waitingIn(queue: string, group: string): ModelTask[] {
    return this.rowsIn(queue, 'aggregating').filter((row) => isWaitingIn(row, group));
  }

  protected enter(row: ModelTask, state: TaskState, atMs: number): void {
    Object.assign(row, { state, atMs, order: ++this.serial, armed: ++this.serial });
    arrange(this.homeOf(row), this.nowMs);
  }

  protected makeReady(row: ModelTask, isNext = false): void {
    if (row.message.group !== '') this.enter(row, 'aggregating', this.nowMs);
    else if (isNext) this.toHead(row);
    else this.enter(row, 'pending', this.nowMs);
  }

  protected toHead(row: ModelTask): void {
    this.enter(row, 'pending', this.nowMs);
    row.order = -row.order;
  }

  protected moveToArchive(row: ModelTask): void {
    this.free(row);
    row.recoveries = 0;
    this.enter(row, 'archived', this.nowMs + this.options.archiveRetentionMs);
    const archived = this.rowsIn(row.message.queue, 'archived');
    for (const old of archived.slice(0, Math.max(archived.length - this.options.maxArchived, 0)))
      this.remove(old);
  }

  protected leaseRow(row: ModelTask, leaseMs: number): LeasedTask {
    this.enter(row, 'active', this.nowMs + leaseMs);
    row.epoch = ++this.epoch;
    return { message: row.message, epoch: row.epoch, recoveries: row.recoveries };
  }

  protected reclaim(queue: string, set: ModelSet): number {
    const home = this.queueOf(queue);
    home.sets = home.sets.filter((one) => one !== set);
    const rows = home.tasks.filter((row) => row.set === set);
    for (const row of rows) row.set = undefined;
    return rows.length;
  }

  protected free(row: ModelTask): void {
    this.locks = this.locks.filter(({ task }) => task !== row);
  }

  protected remove(row: ModelTask): void {
    this.free(row);
    const home = this.homeOf(row);
    home.tasks = home.tasks.filter((other) => other !== row);
    arrange(home, this.nowMs);
  }

  protected findLeased({ message, epoch }: LeasedTask): ModelTask | undefined {
    const row = this.find(message.queue, message.id);
    return row?.state === 'active' && row.epoch === epoch ? row : undefined;
  }

  protected leased(task: LeasedTask): ModelTask {
    return this.findLeased(task) ?? failWith('ERR_LEASE_LOST');
  }

  protected byHand(queue: string, id: string, except: readonly TaskState[]): ModelTask {
    this.queueOf(queue);
    const row = this.find(queue, id) ?? failWith('ERR_TASK_NOT_FOUND');
    if (except.includes(row.state) || row.set !== undefined) failWith('ERR_TASK_STATE');
    return row;
  }

  protected changeAll(
    queue: string,
    state: TaskState,
    group: string | undefined,
    except: readonly TaskState[],
    apply: (row: ModelTask) => void,
  ): number {
    this.queueOf(queue);
    if (except.includes(state)) failWith('ERR_TASK_STATE');
    const rows = this.rowsIn(queue, state).filter(
      (row) => state !== 'aggregating' || isWaitingIn(row, group ?? row.message.group),
    );
    for (const row of rows) apply(row);
    return rows.length;
  }
}
