import type { ClockTimeout } from '../core/clock.ts';
import { EscapementError } from '../core/errors.ts';
import { isUnavailable } from './broker/is-unavailable.ts';
import type { Broker, Subscription } from './broker/broker.ts';
import { TaskInfo } from './task-info.ts';

/** How often a task is looked at if the broker may not tell of its end, or could not be asked, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;

/** Somebody who waits for the end of a task. */
class TaskWait {
  readonly queue: string;
  readonly id: string;
  readonly promise: Promise<TaskInfo>;
  declare readonly resolve: (info: TaskInfo) => void;
  declare readonly reject: (reason: unknown) => void;
  /** Undefined until the task is seen. */
  retentionMs: number | undefined;
  isOver = false;
  isLooking = false;
  /** The broker told of the task while it was looked at: what is seen may be older than that. */
  isStale = false;
  poll: ClockTimeout | undefined;

  constructor(queue: string, id: string) {
    this.queue = queue;
    this.id = id;
    this.promise = new Promise((resolve, reject) => {
      Object.assign(this, { resolve, reject });
    });
  }

  end(): void {
    this.isOver = true;
    this.poll?.cancel();
  }
}

/** Those who wait for tasks of one queue; they share a subscription, which ends with the last. */
class QueueWaits {
  /** By the id of the task. */
  readonly byId = new Map<string, Set<TaskWait>>();
  subscription: Promise<Subscription> | undefined;

  get all(): TaskWait[] {
    return [...this.byId.values()].flatMap((waits) => [...waits]);
  }

  add(wait: TaskWait): void {
    const waits = this.byId.get(wait.id);
    if (waits === undefined) this.byId.set(wait.id, new Set([wait]));
    else waits.add(wait);
  }

  remove(wait: TaskWait): void {
    const waits = this.byId.get(wait.id);
    waits?.delete(wait);
    if (waits?.size === 0) this.byId.delete(wait.id);
  }

  async unsubscribe(): Promise<void> {
    const { subscription } = this;
    this.subscription = undefined;
    try {
      await (await subscription)?.close();
    } catch {
      // It was not made, or the broker is gone, and it with it.
    }
  }
}

/**
 * Those who wait for the end of a task.
 *
 *      subscribe ──► look at the task ──► it is over: settle
 *                         ▲     └── it is not: wait ──┐
 *                         └── the broker tells, or ◄──┘ it is time, if it may not tell
 */
export class TaskWaits {
  readonly #broker: Broker;
  readonly #queues = new Map<string, QueueWaits>();
  #isClosed = false;

  constructor(broker: Broker) {
    this.#broker = broker;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async wait(queue: string, id: string, signal: AbortSignal | undefined): Promise<TaskInfo> {
    signal?.throwIfAborted();
    if (this.#isClosed) throw closed();
    const wait = new TaskWait(queue, id);
    const giveUp = (): void => {
      wait.reject(signal?.reason);
    };
    signal?.addEventListener('abort', giveUp);
    this.#queue(queue).add(wait);
    void this.#listenAndLook(wait);
    try {
      return await wait.promise;
    } finally {
      signal?.removeEventListener('abort', giveUp);
      wait.end();
      this.#remove(wait);
    }
  }

  /** Whoever waits is rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const queues = [...this.#queues.values()];
    for (const { all } of queues) for (const wait of all) wait.reject(closed());
    await Promise.all(queues.map((waits) => waits.unsubscribe()));
  }

  #queue(queue: string): QueueWaits {
    let waits = this.#queues.get(queue);
    if (waits === undefined) {
      waits = new QueueWaits();
      this.#queues.set(queue, waits);
    }
    return waits;
  }

  #remove(wait: TaskWait): void {
    const waits = this.#queue(wait.queue);
    waits.remove(wait);
    if (waits.byId.size > 0) return;
    this.#queues.delete(wait.queue);
    void waits.unsubscribe();
  }

  /** Nobody may be told of what ends before the subscription: so it comes first. */
  async #listenAndLook(wait: TaskWait): Promise<void> {
    try {
      await this.#subscribe(wait.queue);
    } catch (error) {
      if (!isUnavailable(error)) {
        wait.reject(error);
        return;
      }
      this.#lookLater(wait);
    }
    await this.#look(wait);
  }

  #subscribe(queue: string): Promise<Subscription> {
    const waits = this.#queue(queue);
    waits.subscription ??= this.#newSubscription(queue, waits);
    return waits.subscription;
  }

  #newSubscription(queue: string, waits: QueueWaits): Promise<Subscription> {
    const made = this.#broker.subscribe(
      {
        settled: (of, id) => {
          if (of === queue) for (const wait of waits.byId.get(id) ?? []) void this.#look(wait);
        },
        closed: () => {
          for (const wait of waits.all) void this.#look(wait);
        },
      },
      [queue],
    );
    made.catch(() => {
      if (waits.subscription === made) waits.subscription = undefined;
    });
    return made;
  }

  async #look(wait: TaskWait): Promise<void> {
    wait.isStale = true;
    if (wait.isLooking) return;
    wait.isLooking = true;
    while (wait.isStale && !wait.isOver) {
      wait.isStale = false;
      await this.#lookOnce(wait);
    }
    wait.isLooking = false;
  }

  async #lookOnce(wait: TaskWait): Promise<void> {
    try {
      const record = await this.#broker.task(wait.queue, wait.id);
      wait.retentionMs = record.message.retentionMs;
      if (record.state === 'completed') wait.resolve(new TaskInfo(record));
      else if (record.state === 'archived') wait.reject(archived(wait, record.message.lastError));
      else if (!this.#broker.isSelfDriven) this.#lookLater(wait);
    } catch (error) {
      if (isUnavailable(error)) this.#lookLater(wait);
      else wait.reject(explain(wait, error));
    }
  }

  #lookLater(wait: TaskWait): void {
    wait.poll?.cancel();
    if (wait.isOver) return;
    wait.poll = this.#broker.clock.setTimeout(() => {
      void this.#listenAndLook(wait);
    }, POLL_INTERVAL_MS);
  }
}

function archived({ queue, id }: TaskWait, lastError: string): EscapementError {
  const why = lastError === '' ? '' : `: ${lastError}`;
  return new EscapementError('ERR_TASK_ARCHIVED', `task '${id}' of queue '${queue}' is archived${why}`, {
    op: 'Inspector.waitFor',
  });
}

/** What was there and is not any more is done, unless it was deleted, and nobody can tell. */
function explain({ queue, id, retentionMs }: TaskWait, error: unknown): unknown {
  if (retentionMs === undefined) return error;
  if (!(error instanceof EscapementError) || !GONE.includes(error.code)) return error;
  const advice = retentionMs === 0 ? ': with retentionMs it would be kept when it is done' : '';
  return new EscapementError(
    'ERR_TASK_NOT_FOUND',
    `task '${id}' of queue '${queue}' is gone: done, or deleted${advice}`,
    { op: 'Inspector.waitFor', cause: error },
  );
}

const GONE = ['ERR_TASK_NOT_FOUND', 'ERR_QUEUE_NOT_FOUND'];

function closed(): EscapementError {
  return new EscapementError('ERR_INSPECTOR_CLOSED', 'the inspector is closed', { op: 'Inspector.waitFor' });
}
