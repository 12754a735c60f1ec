import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError } from '../core/errors.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { WaitLine } from '../core/wait-line.ts';
import { requireData, type BackendQueue, type Delivery } from './backend-queue.ts';

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
    this.#waiting.failAll(closedError('receive'));
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
    if (this.#isClosed) throw closedError(operation);
  }
}

function closedError(operation: string): EscapementError {
  const op = `DummyBackendQueue.${operation}`;
  return new EscapementError('ERR_QUEUE_CLOSED', 'the queue is closed', { op });
}
