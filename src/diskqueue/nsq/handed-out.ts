/** A record that was handed out, or a stretch that nobody can read. */
interface Entry {
  /** Where it ends in its file, in bytes. */
  readonly end: number;
  readonly records: number;
  isDone: boolean;
}

/** Entries that were taken are forgotten when there are this many of them. */
const FORGET = 1024;

/**
 * The messages that were handed out, in their order, from the first that is not acknowledged on.
 *
 *      sequence      5   6   7   8   9
 *                    .   ✓   ✓   .   ✓        takeDone: nothing, until 5 is acknowledged; then 5, 6 and 7
 *
 * The format has one read position, so only the records before the first that is not acknowledged can be left behind.
 */
export class HandedOut {
  #entries: Entry[] = [];
  /** How many of the entries were taken. */
  #taken = 0;
  /** The sequence of the first entry. */
  #first = 1;

  /** @returns the sequence of the message. */
  add(end: number): number {
    return this.#push({ end, records: 1, isDone: false });
  }

  /** Something that nobody will acknowledge. */
  addDamage(end: number): void {
    this.#push({ end, records: 0, isDone: true });
  }

  /** @returns whether it was not acknowledged before. */
  acknowledge(sequence: number): boolean {
    const entry = this.#entries[sequence - this.#first];
    if (entry === undefined || entry.isDone) return false;
    entry.isDone = true;
    return true;
  }

  /** The first entry, if it is done with. */
  takeDone(): Entry | undefined {
    const entry = this.#entries[this.#taken];
    if (entry?.isDone !== true) return undefined;
    this.#taken++;
    if (this.#taken >= FORGET && this.#taken * 2 > this.#entries.length) this.#forget();
    return entry;
  }

  /** Messages that were handed out before mean nothing any more. */
  clear(): void {
    this.#taken = this.#entries.length;
    this.#forget();
  }

  #push(entry: Entry): number {
    return this.#first + this.#entries.push(entry) - 1;
  }

  #forget(): void {
    this.#first += this.#taken;
    this.#entries = this.#entries.slice(this.#taken);
    this.#taken = 0;
  }
}
