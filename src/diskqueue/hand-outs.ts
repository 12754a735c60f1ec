import TinyQueue from 'tinyqueue';
import { RingQueue } from '../core/ring-queue.ts';
import { WaitLine, type WaitGroup } from '../core/wait-line.ts';
import type { Delivery } from './backend-queue.ts';
import type { MessageLog, StoredMessage } from './message-log.ts';
import { SettleOnce } from './settle-once.ts';

/** Those who wait for a message as one; given undefined, they leave without. */
export type Receivers = WaitGroup<StoredMessage | undefined>;

/** What the hand-outs tell their queue. */
export interface HandOutEvents {
  /** A message is done with. */
  acked(message: StoredMessage): void;
  /** A block of the log was read; there may have been damage in it. */
  read(): void;
  /** The log could not be read. @returns what whoever waits rejects with. */
  failed(error: unknown): unknown;
}

/**
 * Hands messages out, in order, to whoever waits longest: first those that came back, by their old places, then those
 * of the log, which is read a block at a time when somebody wants more.
 */
export class HandOuts {
  readonly #log: MessageLog;
  readonly #events: HandOutEvents;
  readonly #read = new RingQueue<StoredMessage>();
  readonly #waiting = new WaitLine<StoredMessage | undefined>();
  #returned = bySequence();
  /** What was handed out in an earlier era is nobody's business any more. */
  #era = 0;
  #reading: Promise<void> | undefined;
  /** The log was not yet found at its end, since something was last committed. */
  #mayHaveMore = true;
  #isPumping = false;
  #isPaused = false;
  #closed: { readonly error: unknown } | undefined;

  constructor(log: MessageLog, events: HandOutEvents) {
    this.#log = log;
    this.#events = events;
  }

  /** @returns a promise of undefined only to those who are dismissed with their group. */
  take(signal?: AbortSignal, group?: Receivers): Promise<Delivery | undefined> {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- it is one
    if (this.#closed !== undefined) return Promise.reject(this.#closed.error);
    const message = this.#isPaused ? undefined : this.#next();
    if (message !== undefined) return Promise.resolve(this.#deliver(message));
    const delivery = this.#waiting.wait(
      (taken) => (taken === undefined ? undefined : this.#deliver(taken)),
      signal,
      group,
    );
    void this.#pump();
    return delivery;
  }

  /** The message that would be handed out next; undefined at the end. */
  async peek(): Promise<StoredMessage | undefined> {
    while (this.#first() === undefined && this.#canReadMore) await this.#readMore();
    if (this.#closed !== undefined) throw this.#closed.error;
    return this.#first();
  }

  /** Messages may have become readable. */
  committed(): void {
    this.#mayHaveMore = true;
    void this.#pump();
  }

  /** Sends away whoever waits, and whoever comes. What was handed out can no longer be settled. */
  close(error: unknown): void {
    this.#closed = { error };
    this.#era++;
    this.#waiting.failAll(error);
  }

  /** Does something to the log, which nobody reads meanwhile, and forgets all it knows, whatever came of it. */
  async reset(action: () => Promise<void>): Promise<void> {
    this.#isPaused = true;
    try {
      await this.#reading?.catch(() => undefined);
      await action();
    } finally {
      this.#era++;
      this.#read.clear();
      this.#returned = bySequence();
      this.#isPaused = false;
      this.committed();
    }
  }

  /** Or somebody else is reading, and nobody knows yet. */
  get #canReadMore(): boolean {
    return !this.#isPaused && (this.#mayHaveMore || this.#reading !== undefined);
  }

  #first(): StoredMessage | undefined {
    return this.#returned.peek() ?? this.#read.first;
  }

  #next(): StoredMessage | undefined {
    return this.#returned.length > 0 ? this.#returned.pop() : this.#read.shift();
  }

  #deliver(message: StoredMessage): Delivery {
    const era = this.#era;
    // A copy, because it may come back: whoever has it may change it, or give its memory to another thread.
    return new SettleOnce(Buffer.from(message.data), (isDone) => {
      if (era !== this.#era) return;
      if (isDone) this.#events.acked(message);
      else this.#takeBack(message);
    });
  }

  #takeBack(message: StoredMessage): void {
    this.#returned.push(message);
    this.#serve();
  }

  /** Reads as long as somebody waits and there is more. An error is for those who wait. */
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

  /** One read at a time, whoever asks for it. */
  #readMore(): Promise<void> {
    this.#reading ??= this.#readBlock().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readBlock(): Promise<void> {
    this.#mayHaveMore = false;
    try {
      const messages = await this.#log.read();
      if (messages.length > 0) this.#mayHaveMore = true;
      for (const message of messages) this.#read.push(message);
    } catch (error) {
      this.#mayHaveMore = true;
      throw this.#events.failed(error);
    }
    this.#events.read();
    this.#serve();
  }

  #serve(): void {
    while (this.#waiting.size > 0 && !this.#isPaused) {
      const message = this.#next();
      if (message === undefined) return;
      this.#waiting.give(message);
    }
  }
}

function bySequence(): TinyQueue<StoredMessage> {
  return new TinyQueue<StoredMessage>([], (a, b) => a.sequence - b.sequence);
}
