/** Messages `from` up to, and not including, `to`. */
export interface SequenceRange {
  from: number;
  to: number;
}

/** Acknowledged messages, and what they take in the log: the bytes of their payloads. */
export interface AckedRange extends SequenceRange {
  /** `UNKNOWN_BYTES` if nobody knows. */
  bytes: number;
}

/** Whatever is added to it, it stays so. */
export const UNKNOWN_BYTES = NaN;

/**
 * Which messages are acknowledged: all below `prefix`, and some ranges beyond it.
 *
 *      acknowledged:  1 2 3 4 . 6 7 . . 10          prefix 5, ranges [6, 8) [10, 11)
 *      bytes:         3 9 2 2 5 4 4 7 1 6           of the ranges 8 and 6
 *
 * The log knows the bytes of everything behind a place. Less those of the ranges, that is what is not acknowledged,
 * without reading it. Ranges are disjoint, ascending, and never touch: there is one at most for each message that
 * somebody holds. Adding is O(log ranges) at their end, and where the prefix takes the first one in, as when a queue is
 * read on; elsewhere O(ranges).
 */
export class AckRanges {
  prefix: number;
  readonly #ranges: AckedRange[] = [];
  /** How many of them the prefix has taken in: they are dropped together, because each time all others move. */
  #taken = 0;

  constructor(prefix: number) {
    this.prefix = prefix;
  }

  get ranges(): readonly AckedRange[] {
    this.#dropTaken();
    return this.#ranges;
  }

  has(sequence: number): boolean {
    if (sequence < this.prefix) return true;
    const range = this.#ranges[this.#firstEndingAfter(sequence)];
    return range !== undefined && range.from <= sequence;
  }

  /** The first message at or after `sequence` that is not acknowledged. */
  nextAfter(sequence: number): number {
    if (sequence < this.prefix) return this.prefix;
    const range = this.#ranges[this.#firstEndingAfter(sequence)];
    return range !== undefined && range.from <= sequence ? range.to : sequence;
  }

  /**
   * @param bytes - of the messages `from` up to `to`. Where some of them were acknowledged before, nobody knows how much
   * of it is new; where all were, it is not asked, but `UNKNOWN_BYTES` says that what was known is wrong.
   * @returns how many of them were not acknowledged before.
   */
  add(from: number, to: number, bytes: number): number {
    const start = Math.max(from, this.prefix);
    if (start >= to) return 0;
    const first = this.#firstEndingAfter(start - 1);
    let last = first;
    const merged = { from: start, to, bytes: 0 };
    let known = 0;
    for (
      let range = this.#ranges[last];
      range !== undefined && range.from <= to;
      range = this.#ranges[++last]
    ) {
      known += Math.min(range.to, to) - Math.max(range.from, start);
      merged.bytes += range.bytes;
      merged.from = Math.min(merged.from, range.from);
      merged.to = Math.max(merged.to, range.to);
    }
    const added = to - start - known;
    if (known === 0) merged.bytes += bytes;
    else if (added > 0 || Number.isNaN(bytes)) merged.bytes = UNKNOWN_BYTES;
    if (merged.from <= this.prefix) {
      this.prefix = merged.to;
      this.#taken = last;
      if (last > this.#ranges.length / 2) this.#dropTaken();
    } else this.#ranges.splice(first, last - first, merged);
    return added;
  }

  /** Acknowledged messages beyond the prefix. */
  get beyond(): number {
    return this.ranges.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  /** Their bytes. */
  get bytesBeyond(): number {
    return this.ranges.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The last acknowledged message, and one. */
  get end(): number {
    return Math.max(this.#ranges.at(-1)?.to ?? 0, this.prefix);
  }

  #dropTaken(): void {
    this.#ranges.splice(0, this.#taken);
    this.#taken = 0;
  }

  /** Where the first range that ends after `sequence` is. */
  #firstEndingAfter(sequence: number): number {
    let low = this.#taken;
    let high = this.#ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ranges[middle] as SequenceRange).to > sequence) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
