import { requireTask } from '../task.ts';
import type { GroupLimits, GroupTaking, TaskSet } from '../broker/broker.ts';
import { newTaskOf } from '../new-task.ts';
import { BackOff } from './back-off.ts';
import { codeOf } from './code-of.ts';
import { GroupChecks, type GroupCheck } from './group-checks.ts';
import { Periodic } from './periodic.ts';
import { MessageTask } from './received-task.ts';
import type { GroupAggregator } from './server-options.ts';
import type { ServerParts } from './server-parts.ts';
import { settledWithin } from './settled-within.ts';

/** asynq's: how often groups are looked at, at least. */
const LONGEST_INTERVAL_MS = 7_000;
/** asynq's: how long a set may be worked on before its tasks are back in their group. */
const HOLD_MS = 120_000;

/**
 * Makes one task of those of a group, when it is time. A group is looked at when it grows and when the broker has said
 * to; or all of them every few seconds, with a broker that has to be asked. What goes wrong loses nothing: a set that is
 * not replaced comes back to its group, and is seen there (B2).
 */
export class Aggregator {
  readonly #parts: ServerParts;
  readonly #aggregate: GroupAggregator | undefined;
  readonly #limits: GroupLimits;
  readonly #backOff = new BackOff();
  readonly #checks: GroupChecks;
  readonly #lists: Periodic;
  #isStopped = true;

  constructor(parts: ServerParts) {
    const { broker, options, timer, logger } = parts;
    const { groupAggregator, groupGracePeriodMs, groupMaxDelayMs, groupMaxSize } = options;
    this.#parts = parts;
    this.#aggregate = groupAggregator;
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
    await settledWithin(timer, options.shutdownTimeoutMs, ended);
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

  /** Takes sets out of a group until it is not time any more. @returns when to look again, in milliseconds. */
  async #check({ queue, group }: GroupCheck): Promise<number | undefined> {
    const { broker, logger } = this.#parts;
    try {
      let taking: GroupTaking;
      do {
        taking = await broker.takeGroup(queue, group, this.#limits, HOLD_MS);
        if (taking.set !== undefined) await this.#replace(taking.set);
      } while (taking.set !== undefined && !this.#mustStop());
      this.#backOff.reset();
      return broker.isSelfDriven ? taking.againInMs : undefined;
    } catch (error) {
      logger.warn({ queue, group, err: error }, 'group not looked at');
      return this.#backOff.next();
    }
  }

  async #replace(set: TaskSet): Promise<void> {
    const { broker, logger } = this.#parts;
    const { queue, group } = set;
    try {
      const tasks = set.messages.map((message) => new MessageTask(message, undefined));
      const task: unknown = await this.#aggregate?.(group, tasks);
      requireTask('what groupAggregator returns', task);
      if (task.check !== undefined) await task.check(task);
      await broker.replaceSet(set, newTaskOf(task, { queue }, broker.clock.wallNow()));
    } catch (error) {
      logger.error({ queue, group, tasks: set.messages.length, err: error }, 'group not aggregated');
    }
  }

  #mustStop(): boolean {
    return this.#isStopped;
  }
}
