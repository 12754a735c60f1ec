import { EscapementError } from '../../core/errors.ts';
import { requireTask, type Task } from '../task.ts';
import type { GroupLimits, TaskSet } from '../broker/broker.ts';
import { newTaskOf } from '../new-task.ts';
import { BackOff } from './back-off.ts';
import { codeOf } from './code-of.ts';
import { GroupChecks, type GroupCheck } from './group-checks.ts';
import { serverClosed } from './interruptions.ts';
import { Periodic } from './periodic.ts';
import { MessageTask, type ReceivedTask } from './received-task.ts';
import type { GroupAggregator } from './server-options.ts';
import type { GroupFailedEvent } from './server-events.ts';
import type { ServerParts } from './server-parts.ts';
import { endedWithin, settledWithin } from './settled-within.ts';

/** asynq's: how often groups are looked at, at least. */
const LONGEST_INTERVAL_MS = 7_000;
/** asynq's: how long a set may be worked on before its tasks are back in their group. */
const HOLD_MS = 120_000;

/**
 * Makes one task of those of a group, when it is time. A group is looked at when it grows and when the broker has said
 * to; or all of them every few seconds, with a broker that has to be asked. What goes wrong loses nothing: a set that is
 * not replaced comes back to its group, and is seen there (B2).
 *
 * An aggregator that has not answered when its set is back is not waited for any more: its group is checked again, and its
 * answer is dropped. asynq waits for it, and three that hang stop all groups of its server. A check takes one set, then the
 * group queues up behind the others: one that grows faster than it is aggregated does not hold them up.
 */
export class Aggregator {
  readonly #parts: ServerParts;
  readonly #aggregate: GroupAggregator | undefined;
  readonly #onFailed: (event: GroupFailedEvent) => void;
  readonly #limits: GroupLimits;
  readonly #backOff = new BackOff();
  readonly #checks: GroupChecks;
  readonly #lists: Periodic;
  /** Sets that are being replaced. */
  #replacing = 0;
  #isStopped = true;

  constructor(parts: ServerParts, onFailed: (event: GroupFailedEvent) => void) {
    const { broker, options, timer, logger } = parts;
    const { groupAggregator, groupGracePeriodMs, groupMaxDelayMs, groupMaxSize } = options;
    this.#parts = parts;
    this.#aggregate = groupAggregator;
    this.#onFailed = onFailed;
    this.#limits = { graceMs: groupGracePeriodMs, maxDelayMs: groupMaxDelayMs, maxSize: groupMaxSize };
    this.#checks = new GroupChecks(timer, (check) => this.#check(check));
    this.#lists = new Periodic({
      timer,
      intervalMs: broker.isSelfDriven ? undefined : Math.min(LONGEST_INTERVAL_MS, groupGracePeriodMs),
      job: () => this.#checkAll(),
      onError: (error) => {
        logger.warn({ err: error }, 'groups not listed');
      },
    });
  }

  start(): void {
    if (this.#aggregate === undefined) return;
    this.#isStopped = false;
    this.#lists.start();
    this.#lists.trigger();
  }

  /** A group has grown, or has come back. */
  grouped(queue: string, group: string): void {
    if (!this.#isStopped && this.#parts.options.queueNames.includes(queue)) this.#checks.ask(queue, group);
  }

  /** There may be groups that were not heard of. */
  trigger(): void {
    if (!this.#isStopped) this.#lists.trigger();
  }

  /** Waits for what is being aggregated, as long as for tasks. */
  async shutdown(): Promise<void> {
    const { timer, options } = this.#parts;
    this.#isStopped = true;
    const ended = Promise.all([this.#lists.shutdown(), this.#checks.shutdown()]);
    await endedWithin(timer, options.shutdownTimeoutMs, ended, () => this.#replacing > 0);
  }

  async #checkAll(): Promise<void> {
    const { broker, options } = this.#parts;
    for (const queue of options.queueNames) {
      for (const { group } of await this.#groupsOf(broker, queue)) this.#checks.ask(queue, group);
    }
  }

  /** A queue that nobody has used is none yet. */
  async #groupsOf(broker: ServerParts['broker'], queue: string): Promise<readonly { group: string }[]> {
    try {
      return await broker.groups(queue);
    } catch (error) {
      if (codeOf(error) === 'ERR_QUEUE_NOT_FOUND') return [];
      throw error;
    }
  }

  /** Takes a set out of a group, if it is time. @returns when to check again, in milliseconds. */
  async #check({ queue, group }: GroupCheck): Promise<number | undefined> {
    const { broker, logger } = this.#parts;
    try {
      const { set, againInMs } = await broker.takeGroup(queue, group, this.#limits, HOLD_MS);
      this.#backOff.reset();
      if (set === undefined) return broker.isSelfDriven ? againInMs : undefined;
      this.#replacing++;
      await this.#replace(set);
      this.#replacing--;
      return 0;
    } catch (error) {
      logger.warn({ queue, group, err: error }, 'group not looked at');
      return this.#backOff.next();
    }
  }

  async #replace(set: TaskSet): Promise<void> {
    const { broker, logger } = this.#parts;
    const { queue, group } = set;
    const tasks = set.messages.map((message) => new MessageTask(message, undefined));
    try {
      const task = await this.#answerInTime(this.#makeTask(group, tasks));
      await broker.replaceSet(set, newTaskOf(task, { queue }, broker.clock.wallNow()));
    } catch (error) {
      logger.error({ queue, group, tasks: tasks.length, err: error }, 'group not aggregated');
      this.#onFailed({ queue, group, tasks, error });
    }
  }

  async #makeTask(group: string, tasks: readonly ReceivedTask[]): Promise<Task> {
    const task: unknown = await this.#aggregate?.(group, tasks);
    requireTask('what groupAggregator returns', task);
    if (task.check !== undefined) await task.check(task);
    return task;
  }

  async #answerInTime(answer: Promise<Task>): Promise<Task> {
    if (await settledWithin(this.#parts.timer, HOLD_MS, answer)) return answer;
    if (this.#isStopped) throw serverClosed();
    throw new EscapementError(
      'ERR_OPERATION_EXPIRED',
      `groupAggregator has not settled within ${HOLD_MS} ms`,
    );
  }
}
