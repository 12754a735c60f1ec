import { BackOff } from '../../core/back-off.ts';
import { EscapementError } from '../../core/errors.ts';
import { MINUTE_MS } from '../../core/units.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import { DelayingQueue } from '../../workqueue/delaying-queue.ts';
import type { GroupLimits, TaskSet } from '../broker/broker.ts';
import { endedWithin, settledWithin } from '../timed-work.ts';
import { newTaskOf, optionsOf } from '../task-options.ts';
import { requireTask, type Task } from '../task.ts';
import type { ReceivedTask } from '../handler.ts';
import type { Reports } from './reports.ts';
import { MessageTask, serverClosed } from './run.ts';
import type { ResolvedServerOptions } from './server-options.ts';

/** Groups that are checked, or aggregated, at once; as asynq. */
const CONCURRENCY = 3;
/** How long a set may be aggregated before its tasks return to their group, in milliseconds; as asynq. */
const HOLD_MS = 2 * MINUTE_MS;

type Group = Pick<TaskSet, 'queue' | 'group'>;

/**
 * Makes one task of the tasks of a group, when it is time.
 *
 *      notified, listed ──► delaying queue ──► check: takeGroup ──► aggregate ──► replaceSet
 *                             ▲  ▲               │ too early            │ done, or failed
 *                             │  └─ when it is ◄─┘                      │
 *                             └──── behind the other groups ◄───────────┘
 *
 * A group is checked when it has grown and at the time the broker has returned; with a broker that must be polled, every few
 * seconds. A failure loses nothing: a set that is not replaced returns to its group, and is notified or listed again. (asynq does
 * not find such a group until a new task arrives in it.)
 *
 * An aggregator that has not settled when its set returns is not awaited any longer: its group is checked again, and its result is
 * ignored. (asynq waits for it, and three that hang stop all groups of its server.) A check takes one set, then the group goes
 * behind the others: one that grows faster than it is aggregated does not hold them up.
 */
export class Groups {
  readonly #options: ResolvedServerOptions;
  readonly #timer: SystemTimer;
  readonly #reports: Reports;
  readonly #limits: GroupLimits;
  readonly #isListed: boolean;
  readonly #backOff = new BackOff();
  readonly #queue: DelayingQueue<Group>;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  /** Number of sets that are being aggregated. */
  #aggregating = 0;

  constructor(options: ResolvedServerOptions, timer: SystemTimer, reports: Reports) {
    const { groupGracePeriodMs, groupMaxDelayMs, groupMaxSize } = options;
    this.#options = options;
    this.#timer = timer;
    this.#reports = reports;
    this.#limits = { graceMs: groupGracePeriodMs, maxDelayMs: groupMaxDelayMs, maxSize: groupMaxSize };
    this.#isListed = options.broker.maintenance.includes('groups');
    this.#queue = new DelayingQueue({ timer, keyOf: ({ queue, group }) => JSON.stringify([queue, group]) });
  }

  start(): void {
    if (this.#options.groupAggregator === undefined) return;
    const { signal } = this.#stopping;
    this.#running = this.#queue.run((group) => this.#check(group), { concurrency: CONCURRENCY, signal });
  }

  /** A group has grown, or a set has returned to it. */
  notify(queue: string, group: string): void {
    if (this.#running === undefined || !this.#options.queueNames.includes(queue)) return;
    this.#queue.add({ queue, group });
  }

  /** Checks all groups of a queue: some may have grown without a notification. */
  async checkAll(queue: string): Promise<void> {
    if (this.#running === undefined) return;
    for (const { group } of await this.#options.broker.groups(queue)) this.#queue.add({ queue, group });
  }

  /** Waits for what is being aggregated, as long as for tasks. */
  async shutdown(): Promise<void> {
    this.#stopping.abort();
    this.#queue.shutDown();
    const ended = this.#running ?? Promise.resolve();
    await endedWithin(this.#timer, this.#options.shutdownTimeoutMs, ended, () => this.#aggregating > 0);
  }

  /** Takes a set out of a group and aggregates it, if it is time. */
  async #check(checked: Group): Promise<void> {
    const { queue, group } = checked;
    const { broker, logger } = this.#options;
    try {
      const { set, againInMs } = await broker.takeGroup(queue, group, this.#limits, HOLD_MS);
      this.#backOff.reset();
      if (set !== undefined) {
        this.#aggregating++;
        await this.#aggregate(set);
        this.#aggregating--;
        this.#queue.add(checked);
      } else if (againInMs !== undefined && !this.#isListed) this.#queue.addAfter(checked, againInMs);
    } catch (error) {
      logger.warn({ queue, group, err: error }, 'group not checked');
      this.#queue.addAfter(checked, this.#backOff.next());
    }
  }

  async #aggregate(set: TaskSet): Promise<void> {
    if (set.messages.length === 0) return; // none of its tasks can be read
    const { broker, logger } = this.#options;
    const { queue, group } = set;
    const tasks = set.messages.map((message) => new MessageTask(message));
    try {
      const task = await this.#settleInTime(this.#makeTask(group, tasks));
      await broker.replaceSet(set, newTaskOf(task, optionsOf(task, { queue }), broker.clock));
    } catch (error) {
      logger.error({ queue, group, tasks: tasks.length, err: error }, 'group not aggregated');
      this.#reports.groupFailed({ queue, group, tasks, error });
    }
  }

  async #makeTask(group: string, tasks: readonly ReceivedTask[]): Promise<Task> {
    const task: unknown = await this.#options.groupAggregator?.(group, tasks);
    requireTask('the result of groupAggregator', task);
    await task.check?.(task);
    return task;
  }

  async #settleInTime(made: Promise<Task>): Promise<Task> {
    if (await settledWithin(this.#timer, HOLD_MS, made)) return made;
    if (this.#stopping.signal.aborted) throw serverClosed();
    const message = `groupAggregator has not settled within ${HOLD_MS} ms`;
    throw new EscapementError('ERR_OPERATION_EXPIRED', message, { op: 'groupAggregator' });
  }
}
