import TinyQueue from 'tinyqueue';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { integer, objectWith, readOptions, type OptionTable } from '../core/options.ts';
import { WaitLine } from '../core/wait-line.ts';
import { queueClosed, requireData, type BackendQueue, type Delivery } from './backend-queue.ts';
import { MessageIterator, SettleOnce, type Receivers } from './deliveries.ts';

/** Options of an `OverflowQueue`. */
export interface OverflowQueueOptions {
  /** Maximum number of messages in memory, those in flight included: an integer >= 0. */
  readonly memorySize: number;
  /** Takes messages when memory is full. The queue owns it: `close` closes it. */
  readonly backend: BackendQueue;
}

const OPTIONS = {
  memorySize: [integer(0)],
  backend: [objectWith('a BackendQueue', 'put', 'receive', 'empty', 'close', 'delete')],
} satisfies OptionTable<OverflowQueueOptions>;

/** A message in memory, or one that was received from the backend. */
interface HeldMessage {
  /** Ascending in the order in which messages are delivered first. */
  readonly order: number;
  readonly data: Uint8Array;
  /** The delivery of the backend, which keeps the message until it is acknowledged; undefined for one of memory. */
  readonly source: Delivery | undefined;
}

/**
 * Messages in memory, and behind them a backend for those that do not fit.
 *
 *      put ──► memory ───────────► ready ──► receive
 *         └──► backend ──► pull ─────┘          │
 *                                    ▲── nack ──┘
 *
 * Messages keep their order (nsqd receives from both at random): once a message overflows, all later ones go to the backend
 * until the backend has delivered everything. So messages in memory are older than those that the backend has not
 * delivered yet. Messages of the backend are numbered here, and return to this queue after a `nack`.
 *
 * Messages in memory are lost when the process ends, unless `close` moves them to the backend.
 */
export class OverflowQueue implements BackendQueue {
  readonly #memorySize: number;
  readonly #backend: BackendQueue;
  readonly #ready = new TinyQueue<HeldMessage>([], (a, b) => a.order - b.order);
  readonly #inFlight = new Set<HeldMessage>();
  readonly #waiting = new WaitLine<Delivery | undefined>();
  #order = 0;
  /** Number of messages that only this queue has. */
  #inMemory = 0;
  /** Number of puts of the backend that are pending. */
  #toBackend = 0;
  /** Number of messages received from the backend and not acknowledged. */
  #ofBackend = 0;
  #isPulling = false;
  #emptying = 0;
  #closing: Promise<void> | undefined;

  /** @throws RangeError `ERR_OUT_OF_RANGE`, TypeError `ERR_INVALID_ARG_TYPE` - an option is invalid. */
  constructor(options: OverflowQueueOptions) {
    const { memorySize, backend } = readOptions('OverflowQueue', options, OPTIONS);
    this.#memorySize = memorySize;
    this.#backend = backend;
  }

  /** Number of messages that are not acknowledged, in memory and in the backend. */
  get depth(): number {
    return this.#inMemory + this.#backend.depth;
  }

  /**
   * Copies the message to memory if there is capacity; otherwise resolves when the backend has it.
   *
   * @param options - a signal, which the backend gets: it may cancel a put that waits for capacity there.
   */
  async put(data: Uint8Array, options: SignalOptions = {}): Promise<void> {
    requireData(data);
    signalOf('OverflowQueue.put', options)?.throwIfAborted();
    this.#requireOpen('put');
    this.#backend.requireMessage?.(data); // `close` may move it there
    if (this.#inMemory >= this.#memorySize || this.#isBackendOlder) await this.#overflow(data, options);
    else {
      this.#inMemory++;
      this.#add(Buffer.from(data), undefined);
    }
  }

  /** Delivers the first message, or waits for one. Pending calls are served in order. */
  async receive(options: SignalOptions = {}): Promise<Delivery> {
    const signal = signalOf('OverflowQueue.receive', options);
    signal?.throwIfAborted();
    return (await this.#take(signal)) as Delivery;
  }

  /** Drops every message, in memory and in the backend, those in flight included. */
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
   * Moves the messages in memory to the backend, and closes it. Nothing is lost, but the order changes: the messages of
   * memory, which are older, come after those that the backend has. `maxBytesTotal` of a `DiskQueue` does not apply.
   * Idempotent.
   *
   * @throws AggregateError - the backend has rejected messages, which are lost. It is closed all the same.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Drops every message, and deletes the backend. */
  delete(): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(queueClosed('OverflowQueue.delete'));
    this.#closing = this.#delete();
    return this.#closing;
  }

  /** Iterates over messages: each is acknowledged when the loop requests the next one. Ends when the queue is closed. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array, undefined, undefined> {
    return new MessageIterator((group) => this.#take(undefined, group));
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

  /** Returns a promise of the next message; of undefined only for receivers that are dismissed with their group. */
  #take(signal?: AbortSignal, group?: Receivers): Promise<Delivery | undefined> {
    if (this.#closing !== undefined) return Promise.reject(queueClosed('OverflowQueue.receive'));
    const delivery = this.#waiting.wait((given) => given, signal, group);
    this.#serve();
    return delivery;
  }

  /** Whether the backend has, or will have, messages that it has not delivered: they are older than a new one. */
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
      this.#inFlight.add(message);
      this.#waiting.give(this.#deliver(message));
    }
  }

  #deliver(message: HeldMessage): Delivery {
    return new SettleOnce(Buffer.from(message.data), (isAcked) => {
      if (!this.#inFlight.delete(message)) return;
      if (isAcked) this.#acked(message);
      else this.#ready.push(message);
      this.#serve();
    });
  }

  #acked({ source }: HeldMessage): void {
    if (source === undefined) this.#inMemory--;
    else {
      this.#ofBackend--;
      source.ack();
    }
  }

  /** Receives one message from the backend. If the receiver has left when it arrives, it stays ready in this queue. */
  #pull(): void {
    if (this.#isPulling || this.#emptying > 0) return;
    this.#isPulling = true;
    const received = (async () => this.#backend.receive())(); // a backend of the application may throw instead
    received.then(
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

  /** Drops the messages in memory, and returns those of the backend to it. Returns the dropped ones, in order. */
  #forget(): HeldMessage[] {
    const all = [...this.#inFlight, ...this.#ready.data].sort((a, b) => a.order - b.order);
    this.#inFlight.clear();
    while (this.#ready.length > 0) this.#ready.pop();
    this.#inMemory = 0;
    this.#ofBackend = 0;
    for (const { source } of all) source?.nack();
    return all.filter(({ source }) => source === undefined);
  }

  async #close(): Promise<void> {
    this.#waiting.failAll(queueClosed('OverflowQueue.receive'));
    const moved = await Promise.allSettled(this.#forget().map(({ data }) => this.#move(data)));
    const closed = await Promise.allSettled([(async () => this.#backend.close())()]);
    const rejected = errorsOf(moved);
    const errors = [...rejected, ...errorsOf(closed)];
    if (rejected.length > 0)
      throw new AggregateError(errors, `the backend has rejected ${rejected.length} messages`);
    if (errors.length > 0) throw errors[0];
  }

  /** A put that waits for capacity would wait for ever, because no message is received any more. */
  async #move(data: Uint8Array): Promise<void> {
    await (this.#backend.putBeyondLimit?.(data) ?? this.#backend.put(data));
  }

  async #delete(): Promise<void> {
    this.#waiting.failAll(queueClosed('OverflowQueue.receive'));
    this.#forget();
    await this.#backend.delete();
  }

  #requireOpen(operation: string): void {
    if (this.#closing !== undefined) throw queueClosed(`OverflowQueue.${operation}`);
  }
}

function errorsOf(results: readonly PromiseSettledResult<void>[]): unknown[] {
  return results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
}
