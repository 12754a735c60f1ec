import type { Broker, LeasedTask, QueueLimits, TaskSet } from 'escapement/tasks';
import { TASK_STATES } from '../../src/tasks/task-state.ts';
import { newTask } from '../conformance/broker/support.ts';

/** What a crowd does to a few queues: each for itself, all at once, and at random. */

export const QUEUES = ['q', 'r'];
const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'];
const GROUPS = ['', '', 'x', 'x:y'];
const LOCKS = ['', 'k', 'l'];
const KEYS = ['', '', 'a', 'b', 'ä:1'];
const LIMITS: readonly QueueLimits[] = [
  {},
  { concurrency: 3, perKey: { concurrency: 1 } },
  { rate: { tasks: 1_000, perMs: 1_000, burst: 5 } },
  { perKey: { concurrency: 2, rate: { tasks: 100, perMs: 1_000, burst: 2 } } },
];
/** How long a lease, a hold or a delay is: many are over at once. */
const SPANS_MS = [0, 0, 1_000, 60_000];

/** A number from 0 to 1, without 1. */
export type Random = () => number;

/** One of the crowd: it has a broker of its own, and may use leases and sets of others. */
export class Member {
  readonly #broker: Broker;
  readonly #random: Random;
  readonly #leases: LeasedTask[];
  readonly #sets: TaskSet[];

  constructor(broker: Broker, random: Random, leases: LeasedTask[], sets: TaskSet[]) {
    this.#broker = broker;
    this.#random = random;
    this.#leases = leases;
    this.#sets = sets;
  }

  /** Anything. Rejects as the broker does. */
  act(): Promise<unknown> {
    const acts = [
      () => this.#enqueue(),
      () => this.#enqueue(),
      () => this.#broker.enqueueMany([this.#newTask(), this.#newTask(), this.#newTask()]),
      () =>
        this.#broker.enqueueTick(this.#newTask(), { entryKey: 'e', atMs: Math.ceil(this.#random() * 50) }),
      () => this.#lease(this.#broker.dequeue(this.#queue(), 2, this.#span())),
      () => this.#lease(this.#broker.dequeue(this.#queue(), 2, this.#span())),
      () => this.#lease(this.#broker.recover(QUEUES, this.#span(), this.#span())),
      () => this.#end(),
      () => this.#end(),
      () => this.#end(),
      () => this.#broker.extendLeases(this.#leases.slice(-3), this.#span()),
      () => this.#takeGroup(),
      () => this.#replaceSet(),
      () => this.#sweep(),
      () => this.#byHand(),
      () => this.#administer(),
    ];
    return this.#one(acts)();
  }

  /** Nothing that was leased stays active. */
  async endAll(): Promise<void> {
    const leases = this.#leases.splice(0);
    await Promise.allSettled(leases.map((task) => this.#broker.discard(task)));
  }

  #one<T>(some: readonly T[]): T {
    return some[Math.floor(this.#random() * some.length)] as T;
  }

  #queue(): string {
    return this.#one(QUEUES);
  }

  #span(): number {
    return this.#one(SPANS_MS);
  }

  #newTask(queue = this.#queue()): ReturnType<typeof newTask> {
    const lock = this.#one(LOCKS);
    return newTask({
      queue,
      id: this.#one(IDS),
      group: this.#one(GROUPS),
      retentionMs: this.#span(),
      key: this.#one(KEYS),
      uniqueKey: lock === '' ? '' : `asynq:{${queue}}:unique:t:${lock}`,
      uniqueTtlMs: 3_600_000,
      processAtMs: this.#moment(),
    });
  }

  #moment(): number {
    return this.#broker.clock.wallNow() + this.#span();
  }

  #enqueue(): Promise<unknown> {
    return this.#broker.enqueue({ ...this.#newTask(), isNext: this.#random() < 0.2 });
  }

  async #lease(leased: Promise<readonly LeasedTask[]>): Promise<void> {
    this.#leases.push(...(await leased));
  }

  async #end(): Promise<void> {
    const task = this.#leases.at(-1 - Math.floor(this.#random() * 6));
    if (task === undefined) return;
    const failure = { error: 'failed', isFailure: true };
    const ends = [
      () => this.#broker.complete(task),
      () => this.#broker.complete(task),
      () => this.#broker.retry(task, failure, this.#moment()),
      () => this.#broker.archive(task, failure),
      () => this.#broker.release(task),
      () => this.#broker.discard(task),
      () => this.#broker.writeResult(task, new Uint8Array(3)),
      () => this.#broker.writeProgress(task, '1'),
    ];
    await this.#one(ends)();
  }

  async #takeGroup(): Promise<void> {
    const limits = { graceMs: this.#span(), maxDelayMs: this.#span(), maxSize: this.#one([0, 1, 2]) };
    const { set } = await this.#broker.takeGroup(
      this.#queue(),
      this.#one(['x', 'x:y']),
      limits,
      this.#span(),
    );
    if (set !== undefined) this.#sets.push(set);
  }

  async #replaceSet(): Promise<void> {
    const set = this.#sets.at(-1 - Math.floor(this.#random() * 4));
    if (set !== undefined) await this.#broker.replaceSet(set, this.#newTask(set.queue));
  }

  #sweep(): Promise<unknown> {
    return this.#one([
      () => this.#broker.forward(QUEUES),
      () => this.#broker.reclaimSets(QUEUES),
      () => this.#broker.deleteExpired(QUEUES, 3),
      () => this.#broker.repair(this.#queue(), { apply: false }),
    ])();
  }

  #byHand(): Promise<unknown> {
    const [queue, id] = [this.#queue(), this.#one(IDS)];
    return this.#one([
      () => this.#broker.change(queue, { id }, 'delete'),
      () => this.#broker.change(queue, { id }, 'run'),
      () => this.#broker.change(queue, { id }, 'archive'),
      () => this.#broker.updatePayload(queue, id, new Uint8Array(1)),
      () => this.#broker.task(queue, id),
    ])();
  }

  #administer(): Promise<unknown> {
    const [queue, state] = [this.#queue(), this.#one(TASK_STATES)];
    return this.#one([
      () => this.#broker.change(queue, { state }, 'delete'),
      () => this.#broker.change(queue, { state }, 'run'),
      () => this.#broker.change(queue, { state }, 'archive'),
      () => this.#broker.tasks(queue, state, { page: 1, size: 10 }),
      () => this.#broker.queueStats(queue),
      () => this.#broker.keys(queue, { page: 1, size: 2 }),
      () => this.#broker.setLimits(queue, this.#one(LIMITS)),
      () => this.#broker.setLimits(queue, this.#one(LIMITS)),
      () => this.#broker.pause(queue),
      () => this.#broker.resume(queue),
      () => this.#broker.removeQueue(queue, { force: true }),
      () => this.#broker.removeQueue(queue, { force: this.#random() < 0.5 }),
    ])();
  }
}
