import type { ClockTimeout } from '../core/clock.ts';
import { EscapementError, hasCode } from '../core/errors.ts';
import { SECOND_MS } from '../core/units.ts';
import { DelayedOperationPurgatory } from '../purgatory/purgatory.ts';
import { isUnavailable } from './broker/broker-errors.ts';
import type { Broker, Subscription } from './broker/broker.ts';
import { TaskInfo } from './info.ts';
import { isRetained, RETENTION_ADVICE } from './task-options.ts';

/** How often a task is read if the broker may not notify, or was unavailable. */
const POLL_INTERVAL_MS = SECOND_MS;

const OP = 'Inspector.waitFor';

/** The waits for tasks of one queue share a subscription, which is closed with the last one. */
interface QueueWaits {
  count: number;
  subscription: Promise<Subscription> | undefined;
}

interface Wait {
  readonly queue: string;
  readonly id: string;
  /** Number of the last notification after which the task was read. */
  readAt: number;
  /** Retention of the task; undefined until it was read. */
  isRetained: boolean | undefined;
  poll: ClockTimeout | undefined;
  isOver: boolean;
}

/**
 * Waits for the end of tasks: each wait is an operation in a purgatory, under the keys of its task and of its queue.
 *
 *      wait ──► subscribe ──► read the task ──► it has ended: settle
 *                   ▲               └──► it has not: watch ──┐
 *                   └── notified, or after an interval ◄─────┘
 *
 * A notification costs one read of the task for each of its waits; waiting itself costs nothing.
 */
export class TaskWaits {
  readonly #broker: Broker;
  readonly #purgatory = new DelayedOperationPurgatory<string>('task waits', { timerEnabled: false });
  readonly #queues = new Map<string, QueueWaits>();
  /** Number of notifications and intervals so far. */
  #notifications = 0;
  #isClosed = false;

  constructor(broker: Broker) {
    this.#broker = broker;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async wait(queue: string, id: string, signal: AbortSignal | undefined): Promise<TaskInfo> {
    const wait: Wait = { queue, id, readAt: -1, isRetained: undefined, poll: undefined, isOver: false };
    const waits = this.#enter(queue);
    try {
      return await this.#purgatory.wait([keyOf(queue, id), keyOf(queue)], () => this.#check(wait, waits), {
        timeoutMs: Infinity,
        signal,
      });
    } catch (error) {
      if (!hasCode(error, 'ERR_PURGATORY_CLOSED')) throw error;
      throw new EscapementError('ERR_INSPECTOR_CLOSED', 'the inspector is closed', { op: OP });
    } finally {
      wait.isOver = true;
      wait.poll?.cancel();
      this.#leave(queue, waits);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#purgatory.close();
    await Promise.all(Array.from(this.#queues.values(), unsubscribe));
  }

  #enter(queue: string): QueueWaits {
    const waits = this.#queues.get(queue) ?? { count: 0, subscription: undefined };
    this.#queues.set(queue, waits);
    waits.count++;
    return waits;
  }

  #leave(queue: string, waits: QueueWaits): void {
    waits.count--;
    if (waits.count > 0) return;
    this.#queues.delete(queue);
    void unsubscribe(waits);
  }

  /** @returns undefined while the task has not ended. */
  async #check(wait: Wait, waits: QueueWaits): Promise<TaskInfo | undefined> {
    if (wait.readAt === this.#notifications) return undefined; // the purgatory checks a new operation twice
    wait.readAt = this.#notifications;
    let mustPoll = this.#broker.maintenance.includes('task');
    try {
      await this.#subscribe(wait.queue, waits); // before the read, so that the end of the task is not missed
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      mustPoll = true;
    }
    try {
      const record = await this.#broker.task(wait.queue, wait.id);
      wait.isRetained = isRetained(record.message);
      if (record.state === 'completed') return new TaskInfo(record);
      if (record.state === 'archived') throw archived(wait, record.message.lastError);
    } catch (error) {
      if (!isUnavailable(error)) throw explain(wait, error);
      mustPoll = true;
    }
    if (mustPoll) this.#pollLater(wait);
    return undefined;
  }

  #subscribe(queue: string, waits: QueueWaits): Promise<Subscription> {
    if (waits.subscription !== undefined) return waits.subscription;
    const settled = (of: string, id: string): void => {
      if (of === queue) this.#notify(keyOf(queue, id));
    };
    const closed = (): void => {
      this.#notify(keyOf(queue));
    };
    const subscription = this.#broker.subscribe({ settled, closed }, [queue]);
    waits.subscription = subscription;
    subscription.catch(() => {
      if (waits.subscription === subscription) waits.subscription = undefined;
    });
    return subscription;
  }

  #notify(key: string): void {
    this.#notifications++;
    this.#purgatory.checkAndComplete(key);
  }

  #pollLater(wait: Wait): void {
    wait.poll?.cancel();
    if (wait.isOver) return;
    wait.poll = this.#broker.clock.setTimeout(() => {
      this.#notify(keyOf(wait.queue, wait.id));
    }, POLL_INTERVAL_MS);
  }
}

function keyOf(...names: readonly string[]): string {
  return JSON.stringify(names);
}

async function unsubscribe(waits: QueueWaits): Promise<void> {
  const { subscription } = waits;
  waits.subscription = undefined;
  try {
    await (await subscription)?.close();
  } catch {
    // The subscription failed, or was closed with its broker.
  }
}

function archived({ queue, id }: Wait, lastError: string): EscapementError {
  const why = lastError === '' ? '' : `: ${lastError}`;
  return new EscapementError('ERR_TASK_ARCHIVED', `task '${id}' of queue '${queue}' is archived${why}`, {
    op: OP,
  });
}

/** A task that does not exist is done, was deleted, or never existed: these cannot be distinguished. */
function explain({ queue, id, isRetained }: Wait, error: unknown): unknown {
  if (!hasCode(error, 'ERR_TASK_NOT_FOUND', 'ERR_QUEUE_NOT_FOUND')) return error;
  const wasFound = isRetained !== undefined;
  if (!wasFound && hasCode(error, 'ERR_QUEUE_NOT_FOUND')) return error;
  const missing = wasFound
    ? `task '${id}' of queue '${queue}' no longer exists: it is done, or was deleted`
    : `queue '${queue}' has no task '${id}'`;
  const advice = isRetained === true ? '' : `. ${RETENTION_ADVICE}`;
  return new EscapementError('ERR_TASK_NOT_FOUND', `${missing}${advice}`, { op: OP, cause: error });
}
