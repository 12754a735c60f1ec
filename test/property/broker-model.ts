import type {
  GroupLimits,
  LeasedTask,
  NewTask,
  QueueLimits,
  TaskChange,
  TaskFailure,
  TaskRecord,
  TaskSet,
  TaskState,
  TaskTarget,
  Tick,
} from 'escapement/tasks';
import { limitsOf } from '../../src/tasks/broker/broker-settings.ts';
import { failWith } from './actions.ts';
import {
  emptyQueue,
  groupDueInMs,
  isReplacedBy,
  newRow,
  NOT_SCHEDULED,
  outcomeOf,
  recordOf,
  REFUSED,
  showQueue,
  tie,
  type ModelEvent,
  type ModelLock,
  type ModelQueue,
  type ModelTask,
} from './broker-model-parts.ts';
import { BrokerModelRows } from './broker-model-rows.ts';
import { arrange, arrangeAs, setLimits, takeTurn, tokenTimes } from './broker-model-turns.ts';
import type { ShownBroker } from './broker-show.ts';

/** What broker.ts says, with arrays that are searched and sorted every time. Both clocks show the same. */
export class BrokerModel extends BrokerModelRows {
  /** A copy, to which other things can happen. */
  copy(): BrokerModel {
    const copy = new BrokerModel({ ...this.options, startMs: this.nowMs });
    [copy.queues, copy.locks] = structuredClone([this.queues, this.locks] as const);
    [copy.serial, copy.epoch] = [this.serial, this.epoch];
    return copy;
  }

  enqueue(task: NewTask, leaving: readonly ModelTask[] = []): TaskRecord {
    const { message, uniqueTtlMs, processAtMs, isNext } = task;
    const { uniqueKey, queue, id } = message;
    const isUnique = uniqueKey !== '' && uniqueTtlMs > 0;
    const lock = this.locks.find(({ key, endsAtMs }) => key === uniqueKey && endsAtMs > this.nowMs);
    if (isUnique && lock !== undefined && !leaving.includes(lock.task)) {
      if (isReplacedBy(lock.task, task)) return this.#replace(lock, task);
      failWith(lock.task.message.id === id ? 'ERR_TASK_ID_CONFLICT' : 'ERR_TASK_DUPLICATE');
    }
    const namesake = this.find(queue, id);
    if (namesake !== undefined && !leaving.includes(namesake)) failWith('ERR_TASK_ID_CONFLICT');
    for (const one of leaving) this.remove(one);
    const home = this.queues.get(queue) ?? emptyQueue();
    this.queues.set(queue, home);
    const row = newRow(message);
    home.tasks.push(row);
    if (isUnique) {
      this.locks = this.locks.filter(({ key }) => key !== uniqueKey);
      const fromMs = Math.max(processAtMs, this.nowMs);
      this.locks.push({ key: uniqueKey, task: row, endsAtMs: fromMs + uniqueTtlMs });
    }
    if (processAtMs > this.nowMs) this.enter(row, 'scheduled', processAtMs);
    else this.makeReady(row, isNext);
    return recordOf(row, this.nowMs);
  }

  #replace(lock: ModelLock, { message, processAtMs, uniqueTtlMs, onDuplicate, isNext }: NewTask): TaskRecord {
    const row = lock.task;
    const { id, retried, lastError, lastFailedAtMs, group, key } = row.message;
    const first = this.rowsIn(message.queue, 'pending').find((one) => one.message.key === key);
    row.message = { ...message, id, retried, lastError, lastFailedAtMs };
    const isSame = group === message.group && key === message.key && (isNext !== true || row === first);
    const isInPlace = ['pending', 'aggregating'].includes(row.state) && isSame;
    if (processAtMs > this.nowMs) this.enter(row, 'scheduled', processAtMs);
    else if (!isInPlace) this.makeReady(row, isNext);
    if (onDuplicate === 'extend') lock.endsAtMs = Math.max(processAtMs, this.nowMs) + uniqueTtlMs;
    return recordOf(row, this.nowMs);
  }

  enqueueMany(tasks: readonly NewTask[]): unknown[] {
    return tasks.map((task) => outcomeOf(() => this.enqueue(task)));
  }

  enqueueTick(task: NewTask, { entryKey, atMs }: Tick): TaskRecord | undefined {
    const { queue } = task.message;
    if ((this.queues.get(queue)?.ticks.get(entryKey) ?? -1) >= atMs) return undefined;
    try {
      return this.enqueue(task);
    } finally {
      this.queueOf(queue).ticks.set(entryKey, atMs);
    }
  }

  dequeue(queue: string, limit: number, leaseMs: number): LeasedTask[] {
    const home = this.queues.get(queue);
    if (home === undefined || home.isPaused) return [];
    const leased: LeasedTask[] = [];
    while (leased.length < limit) {
      const next = takeTurn(home, this.nowMs);
      const row = this.rowsIn(queue, 'pending').find(({ message }) => message.key === next);
      if (row === undefined) break;
      leased.push(this.leaseRow(row, leaseMs));
    }
    return leased;
  }

  complete(task: LeasedTask): void {
    const row = this.leased(task);
    this.homeOf(row).processed++;
    const { retentionMs } = row.message;
    if (retentionMs === 0) {
      this.remove(row);
      return;
    }
    this.free(row);
    row.message = { ...row.message, completedAtMs: this.nowMs };
    this.enter(row, 'completed', this.nowMs + retentionMs);
  }

  retry(task: LeasedTask, { error, isFailure, isRecovery }: TaskFailure, atMs: number): void {
    const row = this.leased(task);
    const retried = row.message.retried + (isFailure ? 1 : 0);
    row.message = { ...row.message, retried, lastError: error, lastFailedAtMs: this.nowMs };
    if (isRecovery === true) row.recoveries++;
    if (isFailure) {
      this.homeOf(row).processed++;
      this.homeOf(row).failed++;
    }
    this.enter(row, 'retry', Math.max(atMs, this.nowMs));
  }

  archive(task: LeasedTask, { error }: TaskFailure): void {
    const row = this.leased(task);
    row.message = { ...row.message, lastError: error, lastFailedAtMs: this.nowMs };
    this.homeOf(row).processed++;
    this.homeOf(row).failed++;
    this.moveToArchive(row);
  }

  release(task: LeasedTask): void {
    this.toHead(this.leased(task));
  }

  discard(task: LeasedTask): void {
    this.remove(this.leased(task));
  }

  writeResult(task: LeasedTask, result: Uint8Array): void {
    this.leased(task).result = result;
  }

  writeProgress(task: LeasedTask, progress: string): void {
    this.leased(task).progress = progress;
  }

  extendLeases(tasks: readonly LeasedTask[], leaseMs: number): LeasedTask[] {
    return tasks.filter((task) => {
      const row = this.findLeased(task);
      if (row !== undefined) row.atMs = this.nowMs + leaseMs;
      return row === undefined;
    });
  }

  recover(queues: readonly string[], graceMs: number, leaseMs: number): LeasedTask[] {
    return queues.flatMap((queue) =>
      this.rowsIn(queue, 'active')
        .filter(({ atMs }) => atMs + graceMs <= this.nowMs)
        .map((row) => this.leaseRow(row, leaseMs)),
    );
  }

  takeGroup(
    queue: string,
    group: string,
    limits: GroupLimits,
    holdMs: number,
  ): { set: TaskSet | undefined; againInMs: number | undefined } {
    const { maxSize } = limits;
    const dueInMs = (): number | undefined => groupDueInMs(this.waitingIn(queue, group), limits, this.nowMs);
    if (dueInMs() !== 0) return { set: undefined, againInMs: dueInMs() };
    const taken = this.waitingIn(queue, group).slice(0, maxSize === 0 ? Infinity : maxSize);
    const shown = { id: `${++this.serial}`, queue, group, messages: taken.map(({ message }) => message) };
    const set = { shown, endsAtMs: this.nowMs + holdMs, armed: ++this.serial };
    this.queues.get(queue)?.sets.push(set);
    for (const row of taken) row.set = set;
    return { set: shown, againInMs: dueInMs() };
  }

  replaceSet(shown: TaskSet, task: NewTask): TaskRecord {
    if (task.message.queue !== shown.queue) failWith('ERR_INVALID_ARG_VALUE');
    const home = this.queues.get(shown.queue);
    const set = home?.sets.find((one) => one.shown === shown);
    if (home === undefined || set === undefined) failWith('ERR_LEASE_LOST');
    const leaving = home.tasks.filter((row) => row.set === set);
    const record = this.enqueue({ ...task, onDuplicate: 'reject' }, leaving);
    home.sets = home.sets.filter((one) => one !== set);
    return record;
  }

  /** Nothing is left to sweep, but what is due at this very moment. */
  sweep(queues: readonly string[]): [number, number, number] {
    const counts: [number, number, number] = [0, 0, 0];
    const isDue = ({ atMs }: ModelTask): boolean => atMs <= this.nowMs;
    const dueIn = (...states: readonly TaskState[]): ModelTask[] =>
      queues.flatMap((queue) => states.flatMap((state) => this.rowsIn(queue, state).filter(isDue)));
    for (const row of dueIn('scheduled', 'retry')) {
      this.makeReady(row);
      counts[0]++;
    }
    for (const queue of queues) {
      for (const set of this.queues.get(queue)?.sets ?? []) {
        if (set.endsAtMs <= this.nowMs) counts[1] += this.reclaim(queue, set);
      }
    }
    for (const row of dueIn('completed', 'archived')) {
      this.remove(row);
      counts[2]++;
    }
    return counts;
  }

  change(queue: string, target: TaskTarget, change: TaskChange): number {
    const refused = REFUSED[change];
    const apply = (row: ModelTask): void => {
      if (change === 'delete') this.remove(row);
      else if (change === 'archive') this.moveToArchive(row);
      else this.enter(row, 'pending', this.nowMs);
    };
    if ('state' in target) return this.changeAll(queue, target.state, target.group, refused, apply);
    apply(this.byHand(queue, target.id, refused));
    return 1;
  }

  updatePayload(queue: string, id: string, payload: Uint8Array): void {
    const row = this.byHand(queue, id, NOT_SCHEDULED);
    row.message = { ...row.message, payload };
  }

  setLimits(queue: string, limits: QueueLimits | undefined): void {
    if (limitsOf(limits) === undefined && !this.queues.has(queue)) return;
    const home = this.queues.get(queue) ?? emptyQueue();
    this.queues.set(queue, home);
    setLimits(home, limits, this.nowMs);
  }

  pause(queue: string): void {
    if (this.queueOf(queue).isPaused) failWith('ERR_QUEUE_STATE');
    this.queueOf(queue).isPaused = true;
  }

  resume(queue: string): void {
    if (!this.queueOf(queue).isPaused) failWith('ERR_QUEUE_STATE');
    this.queueOf(queue).isPaused = false;
  }

  removeQueue(queue: string, { force }: { force: boolean }): void {
    const { tasks } = this.queueOf(queue);
    const mayGo = tasks.length === 0 || (force && !tasks.some(({ state }) => state === 'active'));
    if (!mayGo) failWith('ERR_QUEUE_NOT_EMPTY');
    for (const row of tasks) this.free(row);
    this.queues.delete(queue);
  }

  /** Everything that happens by itself until then. */
  advance(ms: number): void {
    const targetMs = this.nowMs + ms;
    for (;;) {
      const next = [...this.queues]
        .flatMap(([queue, home]) => [...this.#eventsOf(queue, home)])
        .filter(({ atMs }) => atMs <= targetMs)
        .sort((a, b) => a.atMs - b.atMs || tie(this.options.ties, a, b))[0];
      if (next === undefined) break;
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.happen();
    }
    this.nowMs = targetMs;
  }

  /** The process ends, and another one opens the broker: what was in work goes back, and what is due by now happens. */
  reopen(hasTokens = true): void {
    for (const [queue, home] of this.queues) {
      for (const set of home.sets) this.reclaim(queue, set);
      for (const row of this.rowsIn(queue, 'active').reverse()) {
        row.recoveries++;
        this.toHead(row);
      }
    }
    this.sweep([...this.queues.keys()]);
    for (const home of this.queues.values()) {
      home.ring = [];
      if (!hasTokens) home.fullAtMs.clear();
      arrange(home, this.nowMs);
    }
  }

  /** In which order keys have their turns that came at once is not promised: the order becomes the one that is shown. */
  arrangeAs(shown: ShownBroker): void {
    for (const [queue, home] of this.queues) arrangeAs(home, shown[queue]?.turns ?? []);
  }

  /** As `shown` of the world reads it from the real one. */
  show(): unknown {
    const { ties } = this.options;
    const shown = [...this.queues].map(([name, home]) => {
      return [name, showQueue(home, ties, this.nowMs)] as const;
    });
    return Object.fromEntries(shown.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  *#eventsOf(queue: string, home: ModelQueue): Generator<ModelEvent> {
    for (const row of home.tasks) {
      const { state, atMs, armed } = row;
      if (state === 'scheduled' || state === 'retry')
        yield { atMs, armed, row, happen: this.makeReady.bind(this, row) };
      else if (state === 'completed' || state === 'archived')
        yield { atMs, armed, row, happen: this.remove.bind(this, row) };
    }
    for (const set of home.sets) {
      yield {
        atMs: set.endsAtMs,
        armed: set.armed,
        row: undefined,
        happen: this.reclaim.bind(this, queue, set),
      };
    }
    for (const atMs of tokenTimes(home, this.nowMs)) {
      yield { atMs, armed: 0, row: undefined, happen: arrange.bind(undefined, home, atMs) };
    }
  }
}
