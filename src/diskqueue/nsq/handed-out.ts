import { AckRanges } from '../ack-ranges.ts';
import type { Position } from './metadata.ts';

/** What can be left behind. */
export interface Done {
  /** Where the last of its records ends. */
  readonly end: Position;
  readonly records: number;
}

/**
 * The messages that were handed out, in their order, from the first that is not acknowledged on.
 *
 *      sequence      5   6   7   8   9
 *                    .   ✓   ✓   .   ✓        takeDone: nothing, until 5 is acknowledged; then 5, 6 and 7
 *      end kept      5       7   8   9
 *
 * The format has one read position, so only the records before the first that is not acknowledged can be left behind.
 * How much is remembered depends on how many messages somebody holds, not on how many were acknowledged meanwhile.
 */
export class HandedOut {
  readonly #acks = new AckRanges(1);
  #next = 1;
  /** How far it was taken. */
  #taken = 1;
  /** Where records end: of each message that is not acknowledged, and of the last one of each range that is. */
  readonly #ends = new Map<number, Position>();

  /** @returns the sequence of the message. */
  add(end: Position): number {
    this.#ends.set(this.#next, end);
    return this.#next++;
  }

  /** Something that nobody will acknowledge: it goes with the message before it. */
  addDamage(end: Position): void {
    this.#ends.set(this.#next - 1, end);
  }

  /** @returns whether it was not acknowledged before. */
  acknowledge(sequence: number): boolean {
    if (this.#acks.add(sequence, sequence + 1, 0) === 0) return false;
    if (this.#acks.has(sequence - 1)) this.#ends.delete(sequence - 1);
    if (this.#acks.has(sequence + 1)) this.#ends.delete(sequence);
    return true;
  }

  /** All before the first message that is not acknowledged, if anything is there since this was last called. */
  takeDone(): Done | undefined {
    const { prefix } = this.#acks;
    const end = this.#ends.get(prefix - 1);
    if (end === undefined) return undefined;
    this.#ends.delete(prefix - 1);
    const records = prefix - this.#taken;
    this.#taken = prefix;
    return { end, records };
  }

  /** Messages that were handed out before mean nothing any more. */
  clear(): void {
    this.#acks.add(this.#acks.prefix, this.#next, 0);
    this.#taken = this.#next;
    this.#ends.clear();
  }
}
