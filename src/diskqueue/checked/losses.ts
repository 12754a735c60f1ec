import type { CorruptionEvent } from '../message-log.ts';
import type { AckJournal } from './ack-journal.ts';
import { UNKNOWN_BYTES } from './ack-ranges.ts';
import { damagedBytes } from './locate-start.ts';
import { RECORD_HEADER_BYTES } from './segment-format.ts';
import type { DamagePiece } from './segment-scan.ts';
import type { Segment } from './segment.ts';

/** Messages that nobody will ever see: they are as good as acknowledged, and told of once. */
export class Losses {
  readonly #journal: AckJournal;
  readonly #onCorruption: (event: CorruptionEvent) => void;

  constructor(journal: AckJournal, onCorruption: (event: CorruptionEvent) => void) {
    this.#journal = journal;
    this.#onCorruption = onCorruption;
  }

  /** @returns how many were still waited for; none, if it was found before. */
  damage(segment: Segment, piece: DamagePiece): number {
    const { offset, end, from, to = segment.next, reason } = piece;
    if (segment.knownDamage.has(offset)) return 0;
    segment.knownDamage.add(offset);
    const lost = this.#journal.add(from, to, countedBytes(segment, piece));
    const isNews = lost > 0 || to === from; // what was lost is told of once
    if (isNews) this.#report(segment, offset, end, from, to, reason);
    return lost;
  }

  /** Messages between two segments. Those that were acknowledged have no bytes any more. */
  before(segment: Segment, from: number): void {
    if (this.#journal.add(from, segment.base, UNKNOWN_BYTES) === 0) return;
    this.#report(segment, 0, 0, from, segment.base, 'the segment before this one is missing');
  }

  /** The file ends before its segment does. @returns how many were still waited for. */
  end(segment: Segment, from: number): number {
    const lost = this.#journal.add(from, segment.next, missingBytes(segment, from));
    if (lost > 0) {
      this.#report(segment, segment.end, segment.end, from, segment.next, 'the segment ends too early');
    }
    return lost;
  }

  #report(segment: Segment, offset: number, end: number, from: number, to: number, reason: string): void {
    const sequences = to > from ? { firstSequence: from, lastSequence: to - 1 } : {};
    this.#onCorruption({ file: segment.path, offset, bytes: end - offset, ...sequences, reason });
  }
}

/** Of a segment that cannot be read, nothing was counted; but something was when it was acknowledged. */
function countedBytes(segment: Segment, piece: DamagePiece): number {
  return segment.header === undefined ? UNKNOWN_BYTES : damagedBytes(piece, segment);
}

/** What a segment that ends too early was counted as, from the first message that is not there: less than nothing. */
export function missingBytes({ next }: Segment, from: number): number {
  return (from - next) * RECORD_HEADER_BYTES;
}
