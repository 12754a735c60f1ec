import type {
  Broker,
  GroupLimits,
  GroupTaking,
  KeyStats,
  LeasedTask,
  NewTask,
  Page,
  QueueLimits,
  QueueStats,
  TaskMessage,
  TaskRecord,
  TaskSet,
  TaskState,
  Tick,
} from 'escapement/tasks';
import type { TestedBroker } from './broker-side.ts';

/** What a millisecond of the test is to a broker that keeps seconds: so many that it matters little how long a test takes. */
export const SCALE = 10_000;

/** When the time of the test begins, in wall-clock milliseconds: what expires by Redis's own clock does not meanwhile. */
const BASE_MS = Date.UTC(2100, 0, 1);

/** 0 stays 0, which is never. */
export function toBrokerTime(ms: number): number {
  return ms === 0 ? 0 : BASE_MS + ms * SCALE;
}

/** The other way round. */
export function fromBrokerTime(ms: number): number {
  return ms === 0 ? 0 : (ms - BASE_MS) / SCALE;
}

/** A broker as one whose time goes faster would be: every moment and duration is put into its time, and back. */
export class ScaledBroker implements TestedBroker {
  readonly #inner: Broker;

  constructor(inner: Broker) {
    this.#inner = inner;
  }

  async enqueue(task: NewTask): Promise<TaskRecord> {
    return recordOut(await this.#inner.enqueue(newTaskIn(task)));
  }

  async enqueueMany(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    const outcomes = await this.#inner.enqueueMany(tasks.map(newTaskIn));
    return outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? { ...outcome, value: recordOut(outcome.value) } : outcome,
    );
  }

  async enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined> {
    const record = await this.#inner.enqueueTick(newTaskIn(task), tick);
    return record === undefined ? undefined : recordOut(record);
  }

  async dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return (await this.#inner.dequeue(queue, limit, leaseMs * SCALE)).map(leasedOut);
  }

  readonly complete: Broker['complete'] = (task) => this.#inner.complete(leasedIn(task));
  readonly retry: Broker['retry'] = (task, failure, atMs) =>
    this.#inner.retry(leasedIn(task), failure, toBrokerTime(atMs));
  readonly archive: Broker['archive'] = (task, failure) => this.#inner.archive(leasedIn(task), failure);
  readonly release: Broker['release'] = (task) => this.#inner.release(leasedIn(task));
  readonly discard: Broker['discard'] = (task) => this.#inner.discard(leasedIn(task));
  readonly writeResult: Broker['writeResult'] = (task, result) =>
    this.#inner.writeResult(leasedIn(task), result);
  readonly writeProgress: Broker['writeProgress'] = (task, progress) =>
    this.#inner.writeProgress(leasedIn(task), progress);

  async extendLeases(tasks: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]> {
    const given = new Map(tasks.map((task) => [leasedIn(task), task]));
    const lost = await this.#inner.extendLeases([...given.keys()], leaseMs * SCALE);
    return lost.map((task) => given.get(task) as LeasedTask);
  }

  async recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    return (await this.#inner.recover(queues, graceMs * SCALE, leaseMs * SCALE)).map(leasedOut);
  }

  async takeGroup(
    queue: string,
    group: string,
    { graceMs, maxDelayMs, maxSize }: GroupLimits,
    holdMs: number,
  ): Promise<GroupTaking> {
    const limits = { graceMs: graceMs * SCALE, maxDelayMs: maxDelayMs * SCALE, maxSize };
    const { set, againInMs } = await this.#inner.takeGroup(queue, group, limits, holdMs * SCALE);
    return {
      set: set === undefined ? undefined : { ...set, messages: set.messages.map(messageOut) },
      againInMs: againInMs === undefined ? undefined : againInMs / SCALE,
    };
  }

  async replaceSet(set: TaskSet, task: NewTask): Promise<TaskRecord> {
    const setIn = { ...set, messages: set.messages.map(messageIn) };
    return recordOut(await this.#inner.replaceSet(setIn, newTaskIn(task)));
  }

  async tasks(queue: string, state: TaskState, page: Page, group?: string): Promise<readonly TaskRecord[]> {
    return (await this.#inner.tasks(queue, state, page, group)).map(recordOut);
  }

  async queueStats(queue: string): Promise<QueueStats> {
    const stats = await this.#inner.queueStats(queue);
    return { ...stats, latencyMs: stats.latencyMs / SCALE, atMs: fromBrokerTime(stats.atMs) };
  }

  async limits(queue: string): Promise<QueueLimits | undefined> {
    const limits = await this.#inner.limits(queue);
    return limits && limitsIn(limits, 1 / SCALE);
  }

  setLimits(queue: string, limits: QueueLimits | undefined): Promise<void> {
    return this.#inner.setLimits(queue, limits && limitsIn(limits, SCALE));
  }

  async keys(queue: string, page: Page): Promise<readonly KeyStats[]> {
    const keys = await this.#inner.keys(queue, page);
    return keys.map(({ againInMs, ...rest }) => ({ ...rest, againInMs: againInMs && againInMs / SCALE }));
  }

  // What has nothing to do with time.

  readonly forward: Broker['forward'] = (...args) => this.#inner.forward(...args);
  readonly reclaimSets: Broker['reclaimSets'] = (...args) => this.#inner.reclaimSets(...args);
  readonly deleteExpired: Broker['deleteExpired'] = (...args) => this.#inner.deleteExpired(...args);
  readonly groups: Broker['groups'] = (...args) => this.#inner.groups(...args);
  readonly queues: Broker['queues'] = () => this.#inner.queues();
  readonly change: Broker['change'] = (...args) => this.#inner.change(...args);
  readonly updatePayload: Broker['updatePayload'] = (...args) => this.#inner.updatePayload(...args);
  readonly pause: Broker['pause'] = (...args) => this.#inner.pause(...args);
  readonly resume: Broker['resume'] = (...args) => this.#inner.resume(...args);
  readonly removeQueue: Broker['removeQueue'] = (...args) => this.#inner.removeQueue(...args);
}

function limitsIn({ perKey, ...limits }: QueueLimits, scale: number): QueueLimits {
  return { ...limitsOfOneIn(limits, scale), ...(perKey && { perKey: limitsOfOneIn(perKey, scale) }) };
}

function limitsOfOneIn<L extends Omit<QueueLimits, 'perKey'>>(
  { rate, ...limits }: L,
  scale: number,
): Omit<L, 'rate'> {
  return { ...limits, ...(rate && { rate: { ...rate, perMs: rate.perMs * scale } }) };
}

function messageIn(message: TaskMessage): TaskMessage {
  return scaled(message, SCALE, toBrokerTime);
}

function messageOut(message: TaskMessage): TaskMessage {
  return scaled(message, 1 / SCALE, fromBrokerTime);
}

function scaled(message: TaskMessage, scale: number, time: (ms: number) => number): TaskMessage {
  const { retentionMs, lastFailedAtMs, completedAtMs } = message;
  const times = { lastFailedAtMs: time(lastFailedAtMs), completedAtMs: time(completedAtMs) };
  return { ...message, retentionMs: retentionMs * scale, ...times };
}

function newTaskIn({ message, processAtMs, uniqueTtlMs, ...rest }: NewTask): NewTask {
  return {
    ...rest,
    message: messageIn(message),
    processAtMs: toBrokerTime(processAtMs),
    uniqueTtlMs: uniqueTtlMs * SCALE,
  };
}

function leasedIn(task: LeasedTask): LeasedTask {
  return { ...task, message: messageIn(task.message) };
}

function leasedOut(task: LeasedTask): LeasedTask {
  return { ...task, message: messageOut(task.message) };
}

function recordOut(record: TaskRecord): TaskRecord {
  const { message, nextProcessAtMs } = record;
  return { ...record, message: messageOut(message), nextProcessAtMs: fromBrokerTime(nextProcessAtMs) };
}
