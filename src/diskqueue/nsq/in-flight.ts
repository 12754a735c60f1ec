import { AckRanges } from '../ack-ranges.ts';
import type { Position } from './format.ts';

/** Records that the read position can move over. */
export interface DonePrefix {
  /** Where the last of them ends. */
  readonly end: Position;
  readonly records: number;
}

/**
 * The messages that were delivered, in order, from the first that is not acknowledged on.
 *
 *      sequence      5   6   7   8   9
 *                    .   ✓   ✓   .   ✓        takeDone: nothing, until 5 is acknowledged; then 5, 6 and 7
 *      end kept      5       7   8   9
 *
 * The format has one read position, so it can only move over the records before the first that is not acknowledged. The
 * memory used depends on how many messages are in flight, not on how many were acknowledged out of order.
 */
export class InFlight {
  readonly #acks = new AckRanges(1);
  #next = 1;
  /** How far `takeDone` has come. */
  #taken = 1;
  /** Where records end: of each message in flight, and of the last one of each acknowledged range. */
  readonly #ends = new Map<number, Position>();

  /** Adds a delivered message. Returns its sequence number. */
  add(end: Position): number {
    this.#ends.set(this.#next, end);
    return this.#next++;
  }

  /** Adds a damaged span, which needs no acknowledgement: it is passed with the message before it. */
  addDamage(end: Position): void {
    this.#ends.set(this.#next - 1, end);
  }

  /** Returns false if the message was acknowledged before. */
  acknowledge(sequence: number): boolean {
    if (this.#acks.add(sequence, sequence + 1, 0) === 0) return false;
    if (this.#acks.has(sequence - 1)) this.#ends.delete(sequence - 1);
    if (this.#acks.has(sequence + 1)) this.#ends.delete(sequence);
    return true;
  }

  /** Returns what was completed since the last call, up to the first message in flight; undefined if nothing was. */
  takeDone(): DonePrefix | undefined {
    const { prefix } = this.#acks;
    const end = this.#ends.get(prefix - 1);
    if (end === undefined) return undefined;
    this.#ends.delete(prefix - 1);
    const records = prefix - this.#taken;
    this.#taken = prefix;
    return { end, records };
  }

  /** Forgets all messages: acknowledging one of them has no effect any more. */
  clear(): void {
    this.#acks.add(this.#acks.prefix, this.#next, 0);
    this.#taken = this.#next;
    this.#ends.clear();
  }
}
