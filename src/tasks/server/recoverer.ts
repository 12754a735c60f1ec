import type { LeasedTask } from '../broker/broker.ts';
import { leaseLost } from './interruptions.ts';
import { Periodic } from './periodic.ts';
import { MessageTask } from './received-task.ts';
import { retryDelayOf } from './retry-delay.ts';
import type { ServerParts } from './server-parts.ts';

/** asynq's. */
const INTERVAL_MS = 60_000;
/** How far the clocks of a fleet may differ. */
const SKEW_MS = 30_000;

/**
 * Sees to tasks whose worker is gone: their lease is over, or they are active without one (B3). They are tried again.
 * That is nobody's failure (B13), but a task that has lost its worker too often is archived: it may be what kills them.
 */
export class Recoverer {
  readonly #parts: ServerParts;
  readonly #rounds: Periodic;

  constructor(parts: ServerParts) {
    const { broker, timer, logger } = parts;
    this.#parts = parts;
    this.#rounds = new Periodic({
      timer,
      intervalMs: broker.isSelfDriven ? undefined : INTERVAL_MS,
      job: () => this.#round(),
      onError: (error) => {
        logger.warn({ err: error }, 'tasks not recovered');
      },
    });
  }

  start(): void {
    this.#rounds.start();
    this.#rounds.trigger();
  }

  /** There may be something to recover. */
  trigger(): void {
    this.#rounds.trigger();
  }

  async shutdown(): Promise<void> {
    await this.#rounds.shutdown();
  }

  async #round(): Promise<void> {
    const { broker, options } = this.#parts;
    const { queueNames, leaseMs } = options;
    if (!broker.isSelfDriven) await broker.reclaimSets(queueNames);
    const lost = await broker.recover(queueNames, broker.isSelfDriven ? 0 : SKEW_MS, leaseMs);
    for (const task of lost) await this.#recover(task);
  }

  /** What goes wrong here is tried again by whoever recovers it next: it is leased like any other. */
  async #recover(leased: LeasedTask): Promise<void> {
    const { broker, options, logger } = this.#parts;
    const { id, queue, type, retried } = leased.message;
    const reason = leaseLost();
    const failure = { error: reason.message, isFailure: false, isRecovery: true };
    const fields = { taskId: id, queue, type, recoveries: leased.recoveries };
    try {
      if (leased.recoveries >= options.maxRecoveries) {
        await broker.archive(leased, { ...failure, isFailure: true });
        logger.warn(fields, 'task archived: its worker was gone too often');
        return;
      }
      const task = new MessageTask(leased.message, undefined);
      const delayMs = retryDelayOf(options.retryDelayMs, retried, reason, task);
      await broker.retry(leased, failure, broker.clock.wallNow() + delayMs);
      logger.warn(fields, 'task recovered: its worker was gone');
    } catch (error) {
      logger.warn({ ...fields, err: error }, 'task not recovered');
    }
  }
}
