import type { AckedRange } from '../ack-ranges.ts';

/**
 * What was left out when the bytes of a log were counted, because it was acknowledged before.
 *
 *      counted     │ 5 . 7 8 . 10 │     everything from there, less what the ranges [5, 6) [7, 9) [10, 11) say
 *      read        ──────►              at the end of a range, what was passed in it should be what it has said
 *
 * It is, as long as nothing is damaged. Damage that runs into a range, or a range that is wrong, is put right there: so
 * nothing is counted twice, or never.
 */
export class LeftOut {
  /** Messages before it were not counted at all. */
  readonly #countedFrom: number;
  readonly #ranges: readonly AckedRange[];
  /** The first range that was not passed. */
  #at = 0;
  /** What was passed in ranges, and damage with it, less what they have said. */
  #difference = 0;

  constructor(countedFrom: number, ranges: readonly AckedRange[]) {
    this.#countedFrom = countedFrom;
    this.#ranges = [...ranges]; // the ranges themselves are replaced when they change
  }

  /**
   * Everything before the message `to` was read.
   *
   * @param bytes - of the last piece of it, if nobody gets that.
   * @returns how much of what was counted nobody gets.
   */
  pass(to: number, bytes: number): number {
    if (to <= this.#countedFrom) return 0;
    this.#difference += bytes;
    let range = this.#ranges[this.#at];
    for (; range !== undefined && range.to <= to; range = this.#ranges[++this.#at]) {
      this.#difference -= range.bytes;
    }
    if (range !== undefined && range.from < to) return 0; // in the midst of one
    const difference = this.#difference;
    this.#difference = 0;
    return difference;
  }
}
