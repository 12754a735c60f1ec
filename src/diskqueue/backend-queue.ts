import { types } from 'node:util';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType, wrongValue } from '../core/errors.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { isDetached } from '../core/validate.ts';
import { WaitLine } from '../core/wait-line.ts';

/** A delivered message. Without `ack` or `nack` it stays in flight, and is delivered again after a reopen. */
export interface Delivery {
  /** A copy, which may be kept and changed: after a `nack` the original is delivered again. */
  readonly data: Uint8Array;
  /** Removes the message from the queue. Does nothing after `ack` or `nack`, or after `close` or `empty` of the queue. */
  ack(): void;
  /** Returns the message to its old place in the queue. Does nothing when `ack` would do nothing. */
  nack(): void;
}

/** A queue of messages behind another one: in NSQ, what takes over when memory is full. */
export interface BackendQueue {
  /** Throws if `put` would reject such a message even when the queue is empty. For queues in front of this one. */
  requireMessage?(data: Uint8Array): void;
  /** Resolves when the message is safe, in the sense of the queue. A signal ends the wait for capacity. */
  put(data: Uint8Array, options?: SignalOptions): Promise<void>;
  /** The same as `put`, but without a limit of capacity: for a queue in front of this one that closes. */
  putBeyondLimit?(data: Uint8Array): Promise<void>;
  /** Delivers the first message, or waits for one. Pending calls are served in order. */
  receive(options?: SignalOptions): Promise<Delivery>;
  /** Number of messages that were put and not acknowledged, those in flight included. */
  readonly depth: number;
  /** Drops all messages. */
  empty(): Promise<void>;
  /** Releases all resources. Idempotent. */
  close(): Promise<void>;
  /** The same as `close`, and removes what is stored. */
  delete(): Promise<void>;
}

/** Throws unless `data` is bytes; `instanceof` would refuse those of another realm. */
export function requireData(data: unknown): asserts data is Uint8Array {
  if (!types.isUint8Array(data)) throw wrongType('data', 'a Uint8Array', data);
  if (isDetached(data)) throw wrongValue('data', 'bytes that were not transferred', data);
}

/**
 * A backend that drops and counts what overflows, for queues that may lose messages: NSQ's backend of ephemeral topics and
 * channels.
 */
export class DummyBackendQueue implements BackendQueue {
  /** Always 0: no message is kept. */
  readonly depth = 0;
  readonly #waiting = new WaitLine<Delivery>();
  #dropped = 0;
  #isClosed = false;

  /** Number of messages that were put, and dropped. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Drops the message. */
  async put(data: Uint8Array, options: SignalOptions = {}): Promise<void> {
    requireData(data);
    signalOf('DummyBackendQueue.put', options)?.throwIfAborted();
    this.#requireOpen('put');
    this.#dropped++;
    return Promise.resolve();
  }

  /** Waits until the signal fires or the queue is closed. */
  async receive(options: SignalOptions = {}): Promise<Delivery> {
    const signal = signalOf('DummyBackendQueue.receive', options);
    this.#requireOpen('receive');
    return this.#waiting.wait((delivery) => delivery, signal);
  }

  /** Does nothing, because there are no messages. */
  async empty(): Promise<void> {
    this.#requireOpen('empty');
    return Promise.resolve();
  }

  /** Rejects pending calls with `ERR_QUEUE_CLOSED`. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#waiting.failAll(queueClosed('DummyBackendQueue.receive'));
    return Promise.resolve();
  }

  /** The same as `close`. */
  delete(): Promise<void> {
    return this.close();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ dropped: this.dropped, state: this.#isClosed ? 'closed' : 'open' }));
  }

  #requireOpen(operation: string): void {
    if (this.#isClosed) throw queueClosed(`DummyBackendQueue.${operation}`);
  }
}

/** @param op - the operation that fails, with its class. */
export function queueClosed(op: string): EscapementError {
  return new EscapementError('ERR_QUEUE_CLOSED', 'the queue is closed', { op });
}
