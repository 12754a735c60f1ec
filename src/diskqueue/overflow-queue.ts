import TinyQueue from 'tinyqueue';
import { EscapementError } from '../core/errors.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { requireIntegerAtLeast, requireMethods, requireObject } from '../core/validate.ts';
import { WaitLine } from '../core/wait-line.ts';
import type { BackendQueue, Delivery } from './backend-queue.ts';
import { SettleOnce } from './settle-once.ts';
import { requireData } from './require-data.ts';

/** Options of an `OverflowQueue`. */
export interface OverflowQueueOptions {
  /** Messages in memory, those handed out and not acknowledged included: an integer, 0 or more. */
  readonly memorySize: number;
  /** What takes over when memory is full. It belongs to this queue from now on: `close` closes it. */
  readonly backend: BackendQueue;
}

/** A message in memory. */
interface MemoryMessage {
  readonly order: number;
  readonly data: Uint8Array;
}

const BACKEND_METHODS: readonly (keyof BackendQueue)[] = ['put', 'receive', 'empty', 'close', 'delete'];

/**
 * Messages in memory, and behind them a backend for those that do not fit.
 *
 *      put ──► memory ──────────────► receive
 *         └──► backend ──► (when memory is empty) ──┘
 *
 * The order is kept: from the first message that goes to the backend all go there, until the backend has handed out
 * what it has. (nsqd takes from both at random.) What is in memory dies with the process; `close` moves it to the
 * backend.
 */
export class OverflowQueue implements BackendQueue {
  readonly #memorySize: number;
  readonly #backend: BackendQueue;
  /** Of what is in memory and not handed out, the oldest first. */
  readonly #memory = new TinyQueue<MemoryMessage>([], (a, b) => a.order - b.order);
  readonly #handedOut = new Set<MemoryMessage>();
  readonly #waiting = new WaitLine<Delivery>();
  #order = 0;
  /** Messages on their way to the backend, and those of it that were handed out. */
  #toBackend = 0;
  #heldOfBackend = 0;
  /** Messages of the backend that came back: they are older than what is in memory. */
  #cameBack = 0;
  #isPulling = false;
  /** What was handed out in an earlier era is nobody's business any more. */
  #era = 0;
  #closing: Promise<void> | undefined;

  /** @throws RangeError `ERR_OUT_OF_RANGE`, TypeError `ERR_INVALID_ARG_TYPE` - an option of another value or type. */
  constructor(options: OverflowQueueOptions) {
    requireObject('options', options);
    const { memorySize, backend } = options;
    requireIntegerAtLeast('memorySize', 0, memorySize);
    requireMethods('backend', 'a BackendQueue', BACKEND_METHODS, backend);
    this.#memorySize = memorySize;
    this.#backend = backend;
  }

  /** Messages that are not acknowledged, here and in the backend. */
  get depth(): number {
    return this.#memory.length + this.#handedOut.size + this.#backend.depth;
  }

  /** Resolves at once if the message is in memory, of which it takes a copy; else when the backend has it. */
  async put(data: Uint8Array): Promise<void> {
    requireData(data);
    this.#requireOpen('put');
    this.#backend.requireMessage?.(data); // at `close` it may have to go there
    const isFull = this.#memory.length + this.#handedOut.size >= this.#memorySize;
    if (isFull || this.#isBackendOlder) await this.#overflow(data);
    else {
      this.#memory.push({ order: this.#order++, data: Uint8Array.from(data) });
      this.#serve();
    }
  }

  async receive(options: SignalOptions = {}): Promise<Delivery> {
    const signal = signalOf(options);
    signal?.throwIfAborted();
    this.#requireOpen('receive');
    const delivery = this.#waiting.wait((given) => given, signal);
    this.#serve();
    return delivery;
  }

  /** Drops every message, here and in the backend. */
  async empty(): Promise<void> {
    this.#requireOpen('empty');
    this.#forget();
    await this.#backend.empty();
  }

  /**
   * Moves what is in memory to the backend, and closes that. Nothing is lost; but what was in memory is older than what
   * the backend had, and comes behind it now. Idempotent.
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

  /** Whether the backend has, or will have, messages that nobody has: they are older than any that comes now. */
  get #isBackendOlder(): boolean {
    return this.#toBackend > 0 || this.#backend.depth > this.#heldOfBackend;
  }

  async #overflow(data: Uint8Array): Promise<void> {
    this.#toBackend++;
    try {
      await this.#backend.put(data);
    } finally {
      this.#toBackend--;
      this.#serve();
    }
  }

  #serve(): void {
    while (this.#waiting.size > 0) {
      const message = this.#cameBack > 0 ? undefined : this.#memory.pop();
      if (message === undefined) {
        if (this.#isBackendOlder) this.#pull();
        return;
      }
      this.#handedOut.add(message);
      this.#waiting.give(this.#deliver(message));
    }
  }

  #deliver(message: MemoryMessage): Delivery {
    return new SettleOnce(message.data, (isDone) => {
      if (!this.#handedOut.delete(message) || isDone) return;
      this.#memory.push(message);
      this.#serve();
    });
  }

  /** Asks the backend for one message, for whoever waits when it comes. */
  #pull(): void {
    if (this.#isPulling) return;
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
    this.#heldOfBackend++;
    if (this.#cameBack > 0) this.#cameBack--;
    const wrapped = this.#wrap(delivery);
    if (!this.#waiting.give(wrapped)) wrapped.nack();
    this.#serve();
  }

  #wrap(delivery: Delivery): Delivery {
    const era = this.#era;
    return new SettleOnce(delivery.data, (isDone) => {
      if (era !== this.#era) return;
      this.#heldOfBackend--;
      if (isDone) {
        delivery.ack();
        return;
      }
      this.#cameBack++;
      delivery.nack();
      this.#serve();
    });
  }

  #forget(): void {
    this.#era++;
    this.#heldOfBackend = 0;
    this.#cameBack = 0;
    this.#handedOut.clear();
    while (this.#memory.length > 0) this.#memory.pop();
  }

  async #close(): Promise<void> {
    const left = [...this.#handedOut, ...this.#memory.data].sort((a, b) => a.order - b.order);
    this.#waiting.failAll(closedError('receive'));
    this.#forget();
    const results = await Promise.allSettled(left.map(({ data }) => this.#backend.put(data)));
    await this.#backend.close();
    const errors = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    if (errors.length > 0)
      throw new AggregateError(errors, `the backend has refused ${errors.length} messages`);
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

function closedError(operation: string): EscapementError {
  const op = `OverflowQueue.${operation}`;
  return new EscapementError('ERR_QUEUE_CLOSED', 'the queue is closed', { op });
}
