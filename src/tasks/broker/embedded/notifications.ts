import { reportUncaught } from '../../../core/report-uncaught.ts';
import type { BrokerListener, CancelRequest } from '../broker.ts';
import type { QueueState } from './task-lists.ts';

/**
 * Tells listeners what happens: after the operation, in a microtask of its own, so that nobody is called in the middle of
 * one; and what repeats itself only once. An operation that nobody listens to pays for one comparison.
 */
export class Notifications {
  /** Replaced, never changed: a listener may come or go while others are told. */
  #listeners: readonly BrokerListener[] = [];
  #hears: readonly boolean[] = heardBy([]);
  #pending: Notification[] = [];

  get listeners(): readonly BrokerListener[] {
    return this.#listeners;
  }

  add(listener: BrokerListener): void {
    this.#setListeners([...this.#listeners, listener]);
  }

  remove(listener: BrokerListener): void {
    const listeners = [...this.#listeners];
    const at = listeners.indexOf(listener);
    if (at >= 0) listeners.splice(at, 1);
    this.#setListeners(listeners);
  }

  /** Nobody is told anything any more, but that. */
  close(): void {
    const listeners = this.#listeners;
    this.#setListeners([]);
    queueMicrotask(() => {
      for (const listener of listeners) {
        try {
          listener.closed?.();
        } catch (error) {
          reportUncaught(error);
        }
      }
    });
  }

  work(queue: QueueState): void {
    if (queue.isWorkNotified || queue.isPaused || this.#hears[WORK] !== true) return;
    queue.isWorkNotified = true;
    this.#tell(WORK, queue, '');
  }

  leaseExpired(queue: QueueState): void {
    if (queue.isLeaseNotified || this.#hears[LEASE] !== true) return;
    queue.isLeaseNotified = true;
    this.#tell(LEASE, queue, '');
  }

  grouped(queue: QueueState, group: string): void {
    if (this.#hears[GROUPED] !== true) return;
    const last = this.#pending.at(-1);
    if (last?.kind === GROUPED && last.queue === queue && last.name === group) return;
    this.#tell(GROUPED, queue, group);
  }

  settled(queue: QueueState, id: string): void {
    if (this.#hears[SETTLED] === true) this.#tell(SETTLED, queue, id);
  }

  progressed(queue: QueueState, id: string): void {
    if (this.#hears[PROGRESSED] === true) this.#tell(PROGRESSED, queue, id);
  }

  /** Asks everybody at once. @returns whether somebody said yes. */
  cancel(request: CancelRequest): boolean {
    let isCancelled = false;
    for (const listener of this.#listeners) {
      try {
        if (listener.cancel?.(request) === true) isCancelled = true;
      } catch (error) {
        reportUncaught(error);
      }
    }
    return isCancelled;
  }

  #setListeners(listeners: readonly BrokerListener[]): void {
    this.#listeners = listeners;
    this.#hears = heardBy(listeners);
  }

  #tell(kind: Kind, queue: QueueState, name: string): void {
    if (this.#pending.length === 0) queueMicrotask(this.#flush);
    this.#pending.push({ kind, queue, name });
  }

  readonly #flush = (): void => {
    const notifications = this.#pending;
    this.#pending = [];
    for (const { kind, queue, name } of notifications) {
      if (kind === WORK) queue.isWorkNotified = false;
      else if (kind === LEASE) queue.isLeaseNotified = false;
      for (const listener of this.#listeners) {
        try {
          tell(listener, kind, queue.name, name);
        } catch (error) {
          reportUncaught(error);
        }
      }
    }
  };
}

const WORK = 0;
const LEASE = 1;
const GROUPED = 2;
const SETTLED = 3;
const PROGRESSED = 4;
type Kind = typeof WORK | typeof LEASE | typeof GROUPED | typeof SETTLED | typeof PROGRESSED;

interface Notification {
  readonly kind: Kind;
  readonly queue: QueueState;
  /** Of the group, or the id of the task. */
  readonly name: string;
}

/** By kind: whether anybody listens to it. */
function heardBy(listeners: readonly BrokerListener[]): readonly boolean[] {
  return [
    listeners.some((listener) => listener.work !== undefined),
    listeners.some((listener) => listener.leaseExpired !== undefined),
    listeners.some((listener) => listener.grouped !== undefined),
    listeners.some((listener) => listener.settled !== undefined),
    listeners.some((listener) => listener.progressed !== undefined),
  ];
}

function tell(listener: BrokerListener, kind: Kind, queue: string, name: string): void {
  if (kind === WORK) listener.work?.(queue);
  else if (kind === LEASE) listener.leaseExpired?.(queue);
  else if (kind === GROUPED) listener.grouped?.(queue, name);
  else if (kind === SETTLED) listener.settled?.(queue, name);
  else listener.progressed?.(queue, name);
}
