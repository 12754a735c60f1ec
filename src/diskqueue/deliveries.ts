import TinyQueue from 'tinyqueue';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { CoalescedRun } from '../core/coalesced-run.ts';
import { hasCode } from '../core/errors.ts';
import { Serial } from '../core/serial.ts';
import { WaitGroup, WaitLine } from '../core/wait-line.ts';
import type { Delivery } from './backend-queue.ts';
import type { StoredMessage } from './message-log.ts';

/** A delivery that is settled by the first call of `ack` or `nack`. */
export class SettleOnce implements Delivery {
  /** The name in a console: that of the public interface. */
  static readonly name = 'Delivery';
  readonly data: Uint8Array;
  #settle: ((isAcked: boolean) => void) | undefined;

  constructor(data: Uint8Array, settle: (isAcked: boolean) => void) {
    this.data = data;
    this.#settle = settle;
  }

  ack(): void {
    this.#once(true);
  }

  nack(): void {
    this.#once(false);
  }

  /** What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      data: undefined,
      bytes: this.data.length,
      state: this.#settle === undefined ? 'settled' : 'in flight',
    }));
  }

  #once(isAcked: boolean): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(isAcked);
  }
}

/** Receivers that can leave together; given undefined, they leave without a message. */
export type Receivers = WaitGroup<Delivery | undefined>;

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
  inFlight = 0;
  readonly #readLog: () => Promise<StoredMessage[]>;
  readonly #onAck: (message: StoredMessage) => void;
  /** The rest of the block that was read last, in reverse order. */
  #read: StoredMessage[] = [];
  readonly #waiting = new WaitLine<Delivery | undefined>();
  #returned = bySequence();
  /** Deliveries of an earlier epoch have no effect when they are settled. */
  #epoch = 0;
  /** Reads of the log run one at a time, and not beside `alone`. */
  readonly #reads = new Serial();
  #reading: Promise<void> | undefined;
  /** Whether something was committed since the end of the log was reached. */
  #mayHaveMore = true;
  readonly #pump = new CoalescedRun(() => this.#readForReceivers());
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
    const delivery = this.#waiting.wait((given) => given, signal, group);
    this.#pump.trigger();
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
    this.#pump.trigger();
  }

  /** Rejects pending and later receivers. Messages in flight can no longer be settled. */
  close(error: unknown): void {
    this.#closed = { error };
    this.#epoch++;
    this.inFlight = 0;
    this.#waiting.failAll(error);
  }

  /** Forgets all messages, and runs an action on the log while it is not read. */
  alone(action: () => Promise<void>): Promise<void> {
    return this.#reads.run(async () => {
      this.#epoch++;
      this.inFlight = 0;
      this.#read = [];
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
    return this.#returned.peek() ?? this.#read.at(-1);
  }

  #next(): StoredMessage | undefined {
    return this.#returned.length > 0 ? this.#returned.pop() : this.#read.pop();
  }

  #deliver(message: StoredMessage): Delivery {
    const epoch = this.#epoch;
    this.inFlight++;
    // A copy, because the message may return: the receiver may change the copy, or transfer its memory to another thread.
    return new SettleOnce(Buffer.from(message.data), (isAcked) => {
      if (epoch !== this.#epoch) return;
      this.inFlight--;
      if (isAcked) this.#onAck(message);
      else {
        this.#returned.push(message);
        this.#serve();
      }
    });
  }

  /** Reads as long as receivers wait and there may be more. An error is for the receivers. */
  async #readForReceivers(): Promise<void> {
    try {
      while (this.#waiting.size > 0 && this.#canReadMore) await this.#readMore();
    } catch (error) {
      this.#waiting.failAll(error);
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
      // Reading begins when no message is left, and reads run one at a time.
      this.#read = (await this.#readLog()).reverse();
      if (this.#read.length > 0) this.#mayHaveMore = true;
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
      this.#waiting.give(this.#deliver(message));
    }
  }
}

function bySequence(): TinyQueue<StoredMessage> {
  return new TinyQueue<StoredMessage>([], (a, b) => a.sequence - b.sequence);
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Iterates over messages, and acknowledges each when the next one is requested. Ends when the queue is closed. */
export class MessageIterator implements AsyncIterableIterator<Uint8Array, undefined, undefined> {
  readonly #take: (group: Receivers) => Promise<Delivery | undefined>;
  readonly #receivers: Receivers = new WaitGroup();
  /** Deliveries in flight: at most one, unless `next` is called again before its promise settles. */
  readonly #held: Delivery[] = [];
  #isOver = false;

  /** @param take - waits for a message; undefined when the group is dismissed. */
  constructor(take: (group: Receivers) => Promise<Delivery | undefined>) {
    this.#take = take;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (const held of this.#held.splice(0)) held.ack();
    const delivery = this.#isOver ? undefined : await this.#next();
    return delivery === undefined ? END : this.#hold(delivery);
  }

  /** Ends the loop. The message of its last turn may be half processed, so it returns to the queue. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    this.#receivers.dismiss(undefined);
    for (const held of this.#held.splice(0)) held.nack();
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #hold(delivery: Delivery): IteratorResult<Uint8Array, undefined> {
    if (this.#isOver) {
      delivery.nack(); // the loop ended while the message was on its way
      return END;
    }
    this.#held.push(delivery);
    return { done: false, value: delivery.data };
  }

  async #next(): Promise<Delivery | undefined> {
    try {
      return await this.#take(this.#receivers);
    } catch (error) {
      if (hasCode(error, 'ERR_QUEUE_CLOSED')) return undefined;
      throw error;
    }
  }
}
