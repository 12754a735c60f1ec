import TinyQueue from 'tinyqueue';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError } from '../core/errors.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { integer, objectWith, readOptions, type OptionTable } from '../core/options.ts';
import { WaitLine, type WaitGroup } from '../core/wait-line.ts';
import { requireData, type BackendQueue, type Delivery } from './backend-queue.ts';
import { MessageIterator, SettleOnce } from './delivery.ts';

/** Options of an `OverflowQueue`. */
export interface OverflowQueueOptions {
  /** Messages in memory, those handed out and not acknowledged included: an integer, 0 or more. */
  readonly memorySize: number;
  /** What takes over when memory is full. It belongs to this queue from now on: `close` closes it. */
  readonly backend: BackendQueue;
}

const OPTIONS = {
  memorySize: [integer(0)],
  backend: [objectWith('a BackendQueue', 'put', 'receive', 'empty', 'close', 'delete')],
} satisfies OptionTable<OverflowQueueOptions>;

/** A message that this queue has. */
interface HeldMessage {
  /** Ascending in the order in which messages are handed out first. */
  readonly order: number;
  readonly data: Uint8Array;
  /** The backend's own delivery, of a message that was taken from there: it is the backend's until it is done with. */
  readonly source: Delivery | undefined;
}

/**
 * Messages in memory, and behind them a backend for those that do not fit.
 *
 *      put ──► memory ───────────► ready ──► receive
 *         └──► backend ──► pull ─────┘          │
 *                                    ▲── nack ──┘
 *
 * The order is kept: from the first message that goes to the backend all go there, until the backend has handed out
 * what it has. (nsqd takes from both at random.) So whatever is in memory is older than what the backend has not handed
 * out yet; and what it has is numbered here like the rest, and comes back here.
 *
 * What is in memory dies with the process; `close` moves it to the backend.
 */
export class OverflowQueue implements BackendQueue {
  readonly #memorySize: number;
  readonly #backend: BackendQueue;
  /** What nobody has, the oldest first; and what somebody has. */
  readonly #ready = new TinyQueue<HeldMessage>([], (a, b) => a.order - b.order);
  readonly #handedOut = new Set<HeldMessage>();
  readonly #waiting = new WaitLine<Delivery | undefined>();
  #order = 0;
  /** Messages that are in memory only. */
  #inMemory = 0;
  /** Messages on their way to the backend, and those of it that are here. */
  #toBackend = 0;
  #ofBackend = 0;
  #isPulling = false;
  #emptying = 0;
  #closing: Promise<void> | undefined;

  /** @throws RangeError `ERR_OUT_OF_RANGE`, TypeError `ERR_INVALID_ARG_TYPE` - an option of another value or type. */
  constructor(options: OverflowQueueOptions) {
    const { memorySize, backend } = readOptions('OverflowQueue', options, OPTIONS);
    this.#memorySize = memorySize;
    this.#backend = backend;
  }

  /** Messages that are not acknowledged, here and in the backend. */
  get depth(): number {
    return this.#inMemory + this.#backend.depth;
  }

  /**
   * Resolves at once if the message is in memory, of which it takes a copy; else when the backend has it.
   *
   * @param options - a signal, for the backend: it may call back a put that waits for room there.
   */
  async put(data: Uint8Array, options: SignalOptions = {}): Promise<void> {
    requireData(data);
    signalOf('OverflowQueue.put', options)?.throwIfAborted();
    this.#requireOpen('put');
    this.#backend.requireMessage?.(data); // at `close` it may have to go there
    if (this.#inMemory >= this.#memorySize || this.#isBackendOlder) await this.#overflow(data, options);
    else {
      this.#inMemory++;
      this.#add(Buffer.from(data), undefined);
    }
  }

  async receive(options: SignalOptions = {}): Promise<Delivery> {
    const signal = signalOf('OverflowQueue.receive', options);
    signal?.throwIfAborted();
    return (await this.#take(signal)) as Delivery;
  }

  /** Drops every message, here and in the backend; those that were handed out included. */
  async empty(): Promise<void> {
    this.#requireOpen('empty');
    this.#forget();
    this.#emptying++;
    try {
      await this.#backend.empty();
    } finally {
      this.#emptying--;
      this.#serve();
    }
  }

  /**
   * Moves what is in memory to the backend, and closes that. Nothing is lost; but what was in memory is older than what
   * the backend had, and comes behind it now. A limit of a `DiskQueue` does not hold it back. Idempotent.
   *
   * @throws AggregateError - the backend has refused messages: these are lost. It is closed all the same.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Drops every message, and deletes the backend. */
  delete(): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(closedError('delete'));
    this.#closing = this.#delete();
    return this.#closing;
  }

  /** Messages, one after the other: each is acknowledged when the loop asks for the next one. Ends with the queue. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array, undefined, undefined> {
    return new MessageIterator((group: WaitGroup<Delivery | undefined>) => this.#take(undefined, group));
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ depth: this.depth, inMemory: this.#inMemory, memorySize: this.#memorySize },
      state: this.#closing === undefined ? 'open' : 'closed',
      backend: this.#backend,
    }));
  }

  /** @returns a promise of undefined only to those who are dismissed with their group. */
  #take(signal?: AbortSignal, group?: WaitGroup<Delivery | undefined>): Promise<Delivery | undefined> {
    if (this.#closing !== undefined) return Promise.reject(closedError('receive'));
    const delivery = this.#waiting.wait((given) => given, signal, group);
    this.#serve();
    return delivery;
  }

  /** Whether the backend has, or will have, messages that were never here: they are older than any that comes now. */
  get #isBackendOlder(): boolean {
    return this.#toBackend > 0 || this.#backend.depth > this.#ofBackend;
  }

  async #overflow(data: Uint8Array, options: SignalOptions): Promise<void> {
    this.#toBackend++;
    try {
      await this.#backend.put(data, options);
    } finally {
      this.#toBackend--;
      this.#serve();
    }
  }

  #add(data: Uint8Array, source: Delivery | undefined): void {
    this.#ready.push({ order: this.#order++, data, source });
    this.#serve();
  }

  #serve(): void {
    while (this.#waiting.size > 0) {
      const message = this.#ready.pop();
      if (message === undefined) {
        if (this.#isBackendOlder) this.#pull();
        return;
      }
      this.#handedOut.add(message);
      this.#waiting.give(this.#deliver(message));
    }
  }

  #deliver(message: HeldMessage): Delivery {
    return new SettleOnce(Buffer.from(message.data), (isDone) => {
      if (!this.#handedOut.delete(message)) return;
      if (isDone) this.#done(message);
      else this.#ready.push(message);
      this.#serve();
    });
  }

  #done({ source }: HeldMessage): void {
    if (source === undefined) this.#inMemory--;
    else {
      this.#ofBackend--;
      source.ack();
    }
  }

  /** Asks the backend for one message. Whoever waits for it may have gone when it comes: then it is ready here. */
  #pull(): void {
    if (this.#isPulling || this.#emptying > 0) return;
    this.#isPulling = true;
    this.#backend.receive().then(
      (delivery) => {
        this.#pulled(delivery);
      },
      (error: unknown) => {
        this.#isPulling = false;
        this.#waiting.failAll(error);
      },
    );
  }

  #pulled(delivery: Delivery): void {
    this.#isPulling = false;
    if (this.#emptying > 0 || this.#closing !== undefined) delivery.nack();
    else {
      this.#ofBackend++;
      this.#add(delivery.data, delivery);
    }
  }

  /** Drops what is in memory, and gives back to the backend what belongs there. @returns the dropped ones, in order. */
  #forget(): HeldMessage[] {
    const all = [...this.#handedOut, ...this.#ready.data].sort((a, b) => a.order - b.order);
    this.#handedOut.clear();
    while (this.#ready.length > 0) this.#ready.pop();
    this.#inMemory = 0;
    this.#ofBackend = 0;
    for (const { source } of all) source?.nack();
    return all.filter(({ source }) => source === undefined);
  }

  async #close(): Promise<void> {
    this.#waiting.failAll(closedError('receive'));
    const moved = await Promise.allSettled(this.#forget().map(({ data }) => this.#move(data)));
    const closed = await Promise.allSettled([this.#backend.close()]);
    const refused = errorsOf(moved);
    const errors = [...refused, ...errorsOf(closed)];
    if (refused.length > 0)
      throw new AggregateError(errors, `the backend has refused ${refused.length} messages`);
    if (errors.length > 0) throw errors[0];
  }

  /** A put that waits for room would wait for ever: nobody receives any more. */
  #move(data: Uint8Array): Promise<void> {
    return this.#backend.putBeyondLimit?.(data) ?? this.#backend.put(data);
  }

  async #delete(): Promise<void> {
    this.#waiting.failAll(closedError('receive'));
    this.#forget();
    await this.#backend.delete();
  }

  #requireOpen(operation: string): void {
    if (this.#closing !== undefined) throw closedError(operation);
  }
}

function errorsOf(results: readonly PromiseSettledResult<void>[]): unknown[] {
  return results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
}

function closedError(operation: string): EscapementError {
  const op = `OverflowQueue.${operation}`;
  return new EscapementError('ERR_QUEUE_CLOSED', 'the queue is closed', { op });
}
