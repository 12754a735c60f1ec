import { original } from '../../../core/host.ts';
import { callEach } from '../../../core/report-uncaught.ts';
import type { BrokerListener, CancelRequest } from '../broker.ts';
import type { QueueState } from './queue-state.ts';

/** Events that are queued until the operation is over. */
const KINDS = ['work', 'leaseExpired', 'grouped', 'settled', 'progressed'] as const;
type Kind = (typeof KINDS)[number];

/** That of the host: the fake one of jest would hold notifications back while its time advances. */
const { queueMicrotask } = original;

interface Notification {
  readonly kind: Kind;
  readonly queue: QueueState;
  /** The group, or the id of the task; undefined if it is about the queue. */
  readonly name: string | undefined;
}

/**
 * Notifies listeners of events: after the operation, in a microtask of its own, so that no listener runs in the middle of
 * one; and once for events that repeat. Without a listener for it, an event costs one comparison.
 */
export class Notifications {
  /** Replaced, never changed: listeners may come and go while others are called. */
  #listeners: readonly BrokerListener[] = [];
  #isHeard: Readonly<Record<Kind, boolean>> = heardBy([]);
  #pending: Notification[] = [];

  get listeners(): readonly BrokerListener[] {
    return this.#listeners;
  }

  add(listener: BrokerListener): void {
    this.#setListeners([...this.#listeners, listener]);
  }

  remove(listener: BrokerListener): void {
    this.#setListeners(this.#listeners.toSpliced(this.#listeners.indexOf(listener), 1));
  }

  /** Removes every listener; its last event is `closed`. */
  close(): void {
    const listeners = this.#listeners;
    this.#setListeners([]);
    queueMicrotask(() => {
      callEach(listeners, (listener) => listener.closed?.());
    });
  }

  work(queue: QueueState): void {
    if (queue.isWorkNotified || queue.isPaused || !this.#isHeard.work) return;
    queue.isWorkNotified = true;
    this.#push('work', queue, undefined);
  }

  leaseExpired(queue: QueueState): void {
    if (queue.isLeaseNotified || !this.#isHeard.leaseExpired) return;
    queue.isLeaseNotified = true;
    this.#push('leaseExpired', queue, undefined);
  }

  grouped(queue: QueueState, group: string): void {
    if (!this.#isHeard.grouped) return;
    const last = this.#pending.at(-1);
    if (last?.kind === 'grouped' && last.queue === queue && last.name === group) return;
    this.#push('grouped', queue, group);
  }

  settled(queue: QueueState, id: string): void {
    if (this.#isHeard.settled) this.#push('settled', queue, id);
  }

  progressed(queue: QueueState, id: string): void {
    if (this.#isHeard.progressed) this.#push('progressed', queue, id);
  }

  /** Calls every listener synchronously. @returns whether one of them runs the task. */
  cancel(request: CancelRequest): boolean {
    let isCancelled = false;
    callEach(this.#listeners, (listener) => {
      if (listener.cancel?.(request) === true) isCancelled = true;
    });
    return isCancelled;
  }

  #setListeners(listeners: readonly BrokerListener[]): void {
    this.#listeners = listeners;
    this.#isHeard = heardBy(listeners);
  }

  #push(kind: Kind, queue: QueueState, name: string | undefined): void {
    if (this.#pending.length === 0) queueMicrotask(this.#flush);
    this.#pending.push({ kind, queue, name });
  }

  readonly #flush = (): void => {
    const notifications = this.#pending;
    this.#pending = [];
    for (const { kind, queue, name } of notifications) {
      if (kind === 'work') queue.isWorkNotified = false;
      else if (kind === 'leaseExpired') queue.isLeaseNotified = false;
      callEach(this.#listeners, (listener) => {
        if (name !== undefined) listener[kind]?.(queue.name, name);
        else if (kind === 'work' || kind === 'leaseExpired') listener[kind]?.(queue.name);
      });
    }
  };
}

function heardBy(listeners: readonly BrokerListener[]): Record<Kind, boolean> {
  const isHeard = (kind: Kind): boolean => listeners.some((listener) => listener[kind] !== undefined);
  return Object.fromEntries(KINDS.map((kind) => [kind, isHeard(kind)])) as Record<Kind, boolean>;
}
