import { types } from 'node:util';
import { wrongType } from '../core/errors.ts';
import type { SignalOptions } from '../core/signal-options.ts';

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
}
