import type { SignalOptions } from '../core/signal-options.ts';

/** A message that was handed out. Whoever has it owes an `ack` or a `nack`; without, it comes again after a reopen. */
export interface Delivery {
  /** A copy: it may be kept and changed; after a `nack` what was put comes again. */
  readonly data: Uint8Array;
  /** The message is done with. Settled already, or after `close` or `empty`, it does nothing; `nack` too. */
  ack(): void;
  /** The message is handed out again, in its old place. */
  nack(): void;
}

/** A queue of messages behind another one: NSQ's role for what takes over when memory is full. */
export interface BackendQueue {
  /** Throws if `put` would refuse such a message whatever else it holds. For queues in front of this one. */
  requireMessage?(data: Uint8Array): void;
  /** Resolves when the message is safe, in whatever sense the queue gives that. A signal ends the wait for room. */
  put(data: Uint8Array, options?: SignalOptions): Promise<void>;
  /** As `put`, whatever room there is: for messages that would be lost otherwise, by a queue in front of this one. */
  putBeyondLimit?(data: Uint8Array): Promise<void>;
  /** Hands out the first message, or waits for one. Callers are served in the order they came. */
  receive(options?: SignalOptions): Promise<Delivery>;
  /** Messages that were put and not yet acknowledged; those handed out included. */
  readonly depth: number;
  /** Drops all messages. */
  empty(): Promise<void>;
  /** Gives back everything the process holds. Idempotent. */
  close(): Promise<void>;
  /** As `close`, and nothing remains. */
  delete(): Promise<void>;
}
