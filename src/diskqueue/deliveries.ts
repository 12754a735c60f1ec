import TinyQueue from 'tinyqueue';
import { RingQueue } from '../core/ring-queue.ts';
import { Serial } from '../core/serial.ts';
import { WaitLine, type WaitGroup } from '../core/wait-line.ts';
import type { Delivery } from './backend-queue.ts';
import { SettleOnce } from './delivery.ts';
import type { StoredMessage } from './message-log.ts';

/** Receivers that can leave together; given undefined, they leave without a message. */
export type Receivers = WaitGroup<StoredMessage | undefined>;

/**
 * Delivers messages in order, to pending receivers in order: first the messages that were returned, by their old places,
 * then those of the log, which is read a block at a time when a receiver needs more.
 *
 *      log ──► read ──┐
 *                     ├──► receiver ──► ack
 *      returned ──────┘        │
 *         ▲────────────────────┘ nack
 */
export class Deliveries {
  readonly #readLog: () => Promise<StoredMessage[]>;
  readonly #onAck: (message: StoredMessage) => void;
  readonly #read = new RingQueue<StoredMessage>();
  readonly #waiting = new WaitLine<StoredMessage | undefined>();
  #returned = bySequence();
  /** Deliveries of an earlier epoch have no effect when they are settled. */
  #epoch = 0;
  /** Reads of the log run one at a time, and not beside `alone`. */
  readonly #reads = new Serial();
  #reading: Promise<void> | undefined;
  /** Whether something was committed since the end of the log was reached. */
  #mayHaveMore = true;
  #isPumping = false;
  #closed: { readonly error: unknown } | undefined;

  constructor(readLog: () => Promise<StoredMessage[]>, onAck: (message: StoredMessage) => void) {
    this.#readLog = readLog;
    this.#onAck = onAck;
  }

  /** Returns a promise of the next message; of undefined only for receivers that are dismissed with their group. */
  take(signal?: AbortSignal, group?: Receivers): Promise<Delivery | undefined> {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- it is one
    if (this.#closed !== undefined) return Promise.reject(this.#closed.error);
    const message = this.#next();
    if (message !== undefined) return Promise.resolve(this.#deliver(message));
    const delivery = this.#waiting.wait(
      (taken) => (taken === undefined ? undefined : this.#deliver(taken)),
      signal,
      group,
    );
    void this.#pump();
    return delivery;
  }

  /** Returns the message that would be delivered next; undefined if there is none. */
  async peek(): Promise<StoredMessage | undefined> {
    while (this.#closed === undefined && this.#first() === undefined && this.#canReadMore) {
      await this.#readMore();
    }
    if (this.#closed !== undefined) throw this.#closed.error;
    return this.#first();
  }

  /** Messages may have become readable. */
  committed(): void {
    this.#mayHaveMore = true;
    void this.#pump();
  }

  /** Rejects pending and later receivers. Messages in flight can no longer be settled. */
  close(error: unknown): void {
    this.#closed = { error };
    this.#epoch++;
    this.#waiting.failAll(error);
  }

  /** Forgets all messages, and runs an action on the log while it is not read. */
  alone(action: () => Promise<void>): Promise<void> {
    return this.#reads.run(async () => {
      this.#epoch++;
      this.#read.clear();
      this.#returned = bySequence();
      try {
        await action();
      } finally {
        this.committed();
      }
    });
  }

  /** Whether the log may have more messages; a read that has begun may find some. */
  get #canReadMore(): boolean {
    return this.#mayHaveMore || this.#reading !== undefined;
  }

  #first(): StoredMessage | undefined {
    return this.#returned.peek() ?? this.#read.first;
  }

  #next(): StoredMessage | undefined {
    return this.#returned.length > 0 ? this.#returned.pop() : this.#read.shift();
  }

  #deliver(message: StoredMessage): Delivery {
    const epoch = this.#epoch;
    // A copy, because the message may return: the receiver may change the copy, or transfer its memory to another thread.
    return new SettleOnce(Buffer.from(message.data), (isAcked) => {
      if (epoch !== this.#epoch) return;
      if (isAcked) this.#onAck(message);
      else this.#takeBack(message);
    });
  }

  #takeBack(message: StoredMessage): void {
    this.#returned.push(message);
    this.#serve();
  }

  /** Reads as long as receivers wait and there may be more. An error is for the receivers. */
  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      this.#serve();
      while (this.#waiting.size > 0 && this.#canReadMore) await this.#readMore();
    } catch (error) {
      this.#waiting.failAll(error);
    } finally {
      this.#isPumping = false;
    }
  }

  /** Reads one block, which all callers share. */
  #readMore(): Promise<void> {
    this.#reading ??= this.#reads
      .run(() => this.#readBlock())
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #readBlock(): Promise<void> {
    if (this.#closed !== undefined) return;
    this.#mayHaveMore = false;
    try {
      const messages = await this.#readLog();
      if (messages.length > 0) this.#mayHaveMore = true;
      for (const message of messages) this.#read.push(message);
    } catch (error) {
      this.#mayHaveMore = true;
      throw error;
    }
    this.#serve();
  }

  #serve(): void {
    while (this.#waiting.size > 0) {
      const message = this.#next();
      if (message === undefined) return;
      this.#waiting.give(message);
    }
  }
}

function bySequence(): TinyQueue<StoredMessage> {
  return new TinyQueue<StoredMessage>([], (a, b) => a.sequence - b.sequence);
}
