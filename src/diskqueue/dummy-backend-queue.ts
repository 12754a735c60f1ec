import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError } from '../core/errors.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { WaitLine } from '../core/wait-line.ts';
import { requireData, type BackendQueue, type Delivery } from './backend-queue.ts';

/**
 * A backend that keeps nothing, for queues that need not survive: what overflows is dropped, and counted. NSQ has it
 * behind its ephemeral topics and channels.
 */
export class DummyBackendQueue implements BackendQueue {
  /** Nothing is ever kept. */
  readonly depth = 0;
  readonly #waiting = new WaitLine<Delivery>();
  #dropped = 0;
  #isClosed = false;

  /** Messages that were put, and are gone. */
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

  /** Waits for the signal, or for the end. */
  async receive(options: SignalOptions = {}): Promise<Delivery> {
    const signal = signalOf('DummyBackendQueue.receive', options);
    this.#requireOpen('receive');
    return this.#waiting.wait((delivery) => delivery, signal);
  }

  /** Does nothing: there is nothing to drop. */
  async empty(): Promise<void> {
    this.#requireOpen('empty');
    return Promise.resolve();
  }

  /** Sends away whoever waits. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#waiting.failAll(closedError('receive'));
    return Promise.resolve();
  }

  /** As `close`. */
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
