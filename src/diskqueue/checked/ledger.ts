import type { CorruptionEvent, StoredMessage } from '../message-log.ts';
import type { AckJournal } from './ack-journal.ts';
import { UNKNOWN_BYTES, type AckRanges } from '../ack-ranges.ts';
import type { LogEnd } from './cursor-format.ts';
import type { LogPosition } from '../../log/segment.ts';
import { LeftOut } from './left-out.ts';
import { damagedBytes, payloadBytes } from './locate-start.ts';
import type { FoundDamage } from '../../log/recover-segments.ts';
import type { DamagePiece, SegmentPiece } from '../../log/segment-reader.ts';
import type { Segment } from '../../log/segment.ts';

/**
 * What is missing at the end of a log that the cursor knows: messages `from` up to `to`; none, if the last segment was
 * removed and nobody can tell which messages were in it.
 */
export function missingAtEnd(
  segments: readonly Segment[],
  end: LogEnd,
  acks: AckRanges,
):
  | { readonly offset: number; readonly from: number; readonly to: number; readonly reason: string }
  | undefined {
  const last = segments.at(-1);
  const from = Math.max(last?.next ?? 0, acks.prefix);
  const isThere = last !== undefined && last.number >= end.segment;
  const reason = isThere ? 'messages at the end of the segment are missing' : 'the segment is missing';
  const offset = isThere ? last.end : 0;
  if (end.next > from && acks.nextAfter(from) < end.next) return { offset, from, to: end.next, reason };
  return isThere || end.isEnded || end.segment === 0 ? undefined : { offset, from, to: from, reason };
}

/**
 * How much is left in a log: messages that are not acknowledged, and their bytes.
 *
 *      appended ──► left ──► acknowledged
 *                    └─────► lost: nobody will ever see it. It is as good as acknowledged, and told of once
 *
 * The messages are known from the beginning. The bytes are counted as if there were no damage; what is found to be
 * something else when it is read is written off.
 */
export class Ledger {
  readonly #journal: AckJournal;
  readonly #onCorruption: (event: CorruptionEvent) => void;
  #depth = 0;
  #bytes = 0;
  #writtenOff = 0;
  /** Of what was counted when the log was opened. */
  #leftOut = new LeftOut(0, []);

  constructor(journal: AckJournal, onCorruption: (event: CorruptionEvent) => void) {
    this.#journal = journal;
    this.#onCorruption = onCorruption;
  }

  get depth(): number {
    return this.#depth;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** As `MessageLog` has it. */
  takeWrittenOff(): number {
    const bytes = this.#writtenOff;
    this.#writtenOff = 0;
    return bytes;
  }

  /**
   * Finds out what is missing, and how many messages are left.
   *
   * @param lastPath - of the segment that the cursor knows as the last one.
   */
  countMessages(segments: readonly Segment[], damages: readonly FoundDamage[], lastPath: string): void {
    const journal = this.#journal;
    const { acks } = journal;
    const [first] = segments;
    if (!journal.wasWhole && first !== undefined) journal.add(acks.prefix, first.base, UNKNOWN_BYTES);
    for (const { segment, piece } of damages) this.#lose(segment, piece);
    let expected = acks.prefix;
    for (const segment of segments) {
      if (segment.base > expected) this.#loseBefore(segment, expected);
      expected = Math.max(expected, segment.next);
    }
    expected = this.#loseEnd(segments, expected, lastPath);
    // What was acknowledged and is not there was lost with a machine that it was not promised to survive.
    journal.add(expected, acks.end, UNKNOWN_BYTES);
    const last = segments.at(-1);
    if (last !== undefined) last.next = Math.max(last.next, acks.end); // as the next one will say
    this.#depth = Math.max(expected, acks.end) - acks.prefix - acks.beyond;
  }

  /** @param bytes - of all messages behind the prefix, acknowledged or not. */
  countBytes(bytes: number): void {
    const { acks } = this.#journal;
    this.#bytes = bytes - acks.bytesBeyond;
    this.#leftOut = new LeftOut(acks.prefix, acks.ranges);
  }

  appended(messages: number, bytes: number): void {
    this.#depth += messages;
    this.#bytes += bytes;
  }

  acknowledge({ sequence, data }: StoredMessage): void {
    if (this.#journal.add(sequence, sequence + 1, data.length) === 0) return;
    this.#depth--;
    this.#bytes -= data.length;
  }

  /** Everything before `end` is dropped. */
  empty(end: number): void {
    this.#journal.add(this.#journal.acks.prefix, end, UNKNOWN_BYTES);
    this.#depth = 0;
    this.#bytes = 0;
    this.#writtenOff = 0;
    this.#leftOut = new LeftOut(end, []);
  }

  /** A piece of a segment was read. @returns whether it is a message that nobody has acknowledged. */
  pass(segment: Segment, piece: SegmentPiece): boolean {
    if (piece.kind === 'message') {
      const after = Math.min(piece.sequence + 1, segment.next);
      // The next segment has another one of that sequence; or an earlier process has acknowledged it.
      const isWanted = piece.sequence < after && !this.#journal.acks.has(piece.sequence);
      this.#pass(after, isWanted ? 0 : piece.payload.length);
      return isWanted;
    }
    const bytes = damagedBytes(piece, segment);
    this.#pass(piece.to ?? segment.next, bytes);
    if (piece.kind === 'damage') this.#depth -= this.#lose(segment, piece);
    // Whoever has repaired the segment has told.
    else if (piece.kind === 'lost') this.#depth -= this.#journal.add(piece.from, piece.to, bytes);
    return false;
  }

  /** The file of a segment has ended before the segment does. */
  passEnd(segment: Segment, position: LogPosition): void {
    const { sequence } = position;
    const bytes = payloadBytes(segment, position);
    this.#pass(segment.next, bytes);
    const lost = this.#journal.add(sequence, segment.next, bytes);
    this.#depth -= lost;
    const { end, next } = segment;
    if (lost > 0) this.#report(segment, end, end, sequence, next, 'the segment ends too early');
  }

  /** What is there from a place on is acknowledged, and not read. */
  passUnread(segment: Segment, position: LogPosition): void {
    this.#pass(segment.next, payloadBytes(segment, position));
  }

  /** Everything before `to` was read; of the last piece, nobody gets these bytes. */
  #pass(to: number, bytes: number): void {
    const writtenOff = this.#leftOut.pass(to, bytes);
    this.#bytes -= writtenOff;
    this.#writtenOff += writtenOff;
  }

  /** @returns how many messages were still waited for; none, if it was found before. */
  #lose(segment: Segment, piece: DamagePiece): number {
    const { offset, end, from, to = segment.next, reason } = piece;
    if (segment.knownDamage.has(offset)) return 0;
    segment.knownDamage.add(offset);
    // Of a segment that cannot be read, nothing was counted; but something was when it was acknowledged.
    const bytes = segment.header === undefined ? UNKNOWN_BYTES : damagedBytes(piece, segment);
    const lost = this.#journal.add(from, to, bytes);
    const isNews = lost > 0 || to === from; // what was lost is told of once
    if (isNews) this.#report(segment, offset, end, from, to, reason);
    return lost;
  }

  /** Messages between two segments. Those that were acknowledged have no bytes any more. */
  #loseBefore(segment: Segment, from: number): void {
    if (this.#journal.add(from, segment.base, UNKNOWN_BYTES) === 0) return;
    this.#report(segment, 0, 0, from, segment.base, 'the segment before this one is missing');
  }

  /** What the cursor knows at the end of the log, and nobody finds. @returns where the log ends. */
  #loseEnd(segments: readonly Segment[], expected: number, lastPath: string): number {
    const { acks, openedEnd } = this.#journal;
    const missing = missingAtEnd(segments, openedEnd, acks);
    if (missing === undefined) return expected;
    const { offset, from, to, reason } = missing;
    this.#journal.add(from, to, UNKNOWN_BYTES);
    this.#report({ path: lastPath }, offset, offset, from, to, reason);
    return Math.max(expected, to);
  }

  #report(
    { path }: Pick<Segment, 'path'>,
    offset: number,
    end: number,
    from: number,
    to: number,
    reason: string,
  ): void {
    const sequences = to > from ? { firstSequence: from, lastSequence: to - 1 } : {};
    this.#onCorruption({ file: path, offset, bytes: end - offset, ...sequences, reason });
  }
}
