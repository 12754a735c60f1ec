import { Serial } from '../../core/serial.ts';
import { allOf, isDiskFull, unlinkIfThere } from '../../log/file-system.ts';
import { Log, type LogOptions } from '../../log/log.ts';
import { listSegments, type RecoveredSegments } from '../../log/recover-segments.ts';
import type { DamagePiece, SegmentPiece } from '../../log/segment-reader.ts';
import { corruptionOf, gapsOf, type Segment } from '../../log/segment.ts';
import { UNKNOWN_BYTES, type AckRanges } from '../ack-ranges.ts';
import {
  MOST_SEGMENTS_SHOWN,
  type AppendResult,
  type CorruptionEvent,
  type CursorSnapshot,
  type MessageLog,
  type SegmentSnapshot,
  type StoredMessage,
} from '../message-log.ts';
import { AckSaver } from './ack-saver.ts';
import { cursorFileNames } from './cursor-file.ts';
import { firstExpected, isWhole, missingAtEnd } from './cursor-format.ts';
import { damagedBytes, locateStart, LogReader, measureUnknown } from './log-reader.ts';

interface CheckedLogOptions extends LogOptions {
  readonly onCorruption: (event: CorruptionEvent) => void;
}

/**
 * The default format: a log of checked records, and a cursor.
 *
 *      segments   ┌──── 7 ────┐┌──── 8 ────┐┌──── 9 ──
 *                 │ · · ✓ ✓ ✓ ││ ✓ . ✓ . . ││ . . . .│◄── append
 *                 └───────────┘└─────▲─────┘└─────────
 *                       ▲            └ read              ✓ acknowledged
 *                       └ removed when the cursor that covers it is on the disk
 *
 * The log is the truth. The cursor holds what may be left out; without it everything is delivered again. The log is in
 * src/log, the cursor in cursor-format.ts.
 *
 * What excludes what is stated in message-log.ts. Of the lanes that run beside each other, two write the cursor: a save of
 * acknowledgements, and an append that begins a segment. Those writes exclude each other.
 */
export class CheckedLog implements MessageLog {
  readonly #options: CheckedLogOptions;
  readonly #log: Log;
  readonly #saver: AckSaver;
  readonly #reader: LogReader;
  readonly #cursorWrites = new Serial();
  /** Bytes of messages that are left, less those that the log has appended since it was opened. */
  #left = 0;
  /** Bytes of the messages that were read, and are not acknowledged. */
  #held = 0;
  /** Places of damage that was reported without messages. */
  readonly #reported = new Set<string>();
  /** Whether the last write failed because the disk is full. */
  #isDiskFull = false;
  #isWriting = false;

  private constructor(options: CheckedLogOptions, saver: AckSaver, log: Log) {
    this.#options = options;
    this.#saver = saver;
    this.#log = log;
    this.#reader = new LogReader(log, saver.acks);
  }

  /** Recovers what is there, truncates a torn end, and reports what is missing. */
  static async open(options: CheckedLogOptions): Promise<CheckedLog> {
    const saver = await AckSaver.open(options.files, options.folder, options.name);
    const { log, found } = await Log.open(options, {
      firstNeeded: firstExpected(saver.opened),
      lastNumber: saver.opened.end.segment,
    });
    const checked = new CheckedLog(options, saver, log);
    try {
      await checked.#begin(found);
      return checked;
    } catch (error) {
      await saver.cursor.close().catch(() => undefined);
      throw error;
    }
  }

  get depth(): number {
    return this.#log.next - this.#saver.acks.count;
  }

  get bytes(): number {
    return Math.max(this.#left + this.#log.appendedBytes, 0);
  }

  get hasUnsavedAcks(): boolean {
    return this.#saver.hasUnsaved;
  }

  get segments(): readonly SegmentSnapshot[] {
    const { segments } = this.#log;
    return segments.slice(-MOST_SEGMENTS_SHOWN).map(({ path, end, base, next }) => {
      return { file: path, bytes: end, messages: next - base };
    });
  }

  get cursor(): CursorSnapshot | undefined {
    return this.#reader.cursor;
  }

  async append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    const result = await this.#write(messages);
    const mayTryAgain = this.#isDiskFull && result.appended === 0;
    return mayTryAgain && (await this.#freeSpace()) ? this.#write(messages) : result;
  }

  async sync(): Promise<void> {
    await this.#log.sync(this.#acks.prefix);
    const { written, next } = this.#log;
    if (written !== undefined) this.#saver.noteEnd({ segment: written.number, isEnded: false, next });
  }

  async read(): Promise<StoredMessage[]> {
    for (;;) {
      const found = await this.#reader.read();
      if (found === undefined) {
        this.#left = this.#held - this.#log.appendedBytes; // more was counted if there was damage
        return [];
      }
      this.#saver.noteHint(found.start);
      const messages: StoredMessage[] = [];
      for (const piece of found.pieces) {
        const message = this.#take(found.segment, piece);
        if (message !== undefined) messages.push(message);
      }
      if (messages.length > 0) return messages;
    }
  }

  acknowledge({ sequence, data }: StoredMessage): void {
    if (this.#saver.add(sequence, sequence + 1, data.length) === 0) return;
    this.#left -= data.length;
    this.#held -= data.length;
  }

  saveAcks(isDurable: boolean): Promise<void> {
    return this.#cursorWrites.run(() => this.#save(isDurable));
  }

  empty(): Promise<void> {
    this.#saver.add(this.#acks.prefix, this.#log.next, UNKNOWN_BYTES);
    this.#saver.forgetHints();
    this.#left = -this.#log.appendedBytes;
    this.#held = 0;
    return allOf([
      () => this.#reader.close(),
      async () => {
        await this.#save(true);
        await this.#log.leaveSegment(); // it need not be sealed: the cursor on the disk covers all of it
        await this.#save(true);
      },
    ]);
  }

  close(): Promise<void> {
    const saver = this.#saver;
    return allOf([
      () => this.#endSegment(),
      async () => {
        const mustSave = saver.hasUnsaved;
        if (!mustSave && !saver.hasUnsavedEnd) return;
        await this.#save(true).catch((error: unknown) => {
          if (mustSave) throw error;
        });
      },
      () => this.#reader.close(),
      () => saver.cursor.close(),
      () => this.#log.close(this.#acks.prefix),
    ]);
  }

  async remove(): Promise<void> {
    const { files, folder, name } = this.#options;
    for (const { path } of await listSegments(files, folder, name)) await unlinkIfThere(files, path);
    for (const file of cursorFileNames(name)) await unlinkIfThere(files, `${folder}/${file}`);
    await files.syncFolder(folder);
  }

  get #acks(): AckRanges {
    return this.#saver.acks;
  }

  // Opening.

  async #begin(found: RecoveredSegments): Promise<void> {
    const { files } = this.#options;
    const saver = this.#saver;
    const { segments, lastNumber } = found;
    const end = segments.at(-1)?.next;
    for (const event of found.misplaced) this.#options.onCorruption(event);
    this.#loseMissing(found);
    // Nothing is ever added to a segment of another process.
    if (lastNumber > 0) saver.noteEnd({ segment: lastNumber, isEnded: true, next: end ?? 0 });
    const isLastMissed = lastNumber < saver.opened.end.segment;
    if (isLastMissed) saver.noteEnd({ ...saver.opened.end, isEnded: true });
    const { prefix, ranges } = saver.acks;
    await measureUnknown(files, segments, ranges);
    const { position, bytes } = await locateStart(files, segments, prefix, saver.opened.hint);
    this.#left = bytes - saver.acks.bytesBeyond;
    this.#reader.startAt(position);
    if (position !== undefined) saver.noteHint(position);
    // The next segment begins after what is lost, so the cursor must cover that before.
    if (saver.acks.end > (end ?? Infinity)) await this.saveAcks(true);
    // A full disk does not prevent reading; the next save tries again.
    if (this.#removable().length > 0 || isLastMissed) await this.saveAcks(true).catch(() => undefined);
    else if (segments.length > 0) await this.#cursorWrites.run(() => saver.reserve()).catch(() => undefined);
  }

  /** Gives up every message that is not in a segment: after that, all before the end of the log are there, or acknowledged. */
  #loseMissing({ segments, damages }: RecoveredSegments): void {
    const saver = this.#saver;
    const { acks, opened } = saver;
    const [first] = segments;
    if (!isWhole(opened) && first !== undefined) saver.add(acks.prefix, first.base, UNKNOWN_BYTES);
    for (const { segment, piece } of damages) this.#lose(segment, piece);
    let expected = segments.reduce((end, { next }) => Math.max(end, next), acks.prefix);
    for (const gap of gapsOf(segments, acks.prefix)) {
      const isNews = saver.add(gap.from, gap.to, UNKNOWN_BYTES) > 0;
      if (isNews) this.#options.onCorruption(corruptionOf(gap.path, gap));
    }
    const missing = missingAtEnd(this.#options, segments, opened.end, acks);
    if (missing !== undefined) {
      saver.add(missing.from, missing.to, UNKNOWN_BYTES);
      this.#options.onCorruption(corruptionOf(missing.path, missing));
      expected = Math.max(expected, missing.to);
    }
    // A power cut may spare an acknowledgement and not its message, unless durability is 'always'.
    saver.add(expected, acks.end, UNKNOWN_BYTES);
    this.#log.skipTo(acks.end);
  }

  // Writing.

  async #write(messages: readonly Uint8Array[]): Promise<AppendResult> {
    this.#isWriting = true;
    const result = await this.#tryToWrite(messages).catch((error: unknown) => ({ appended: 0, error }));
    this.#isWriting = false;
    this.#isDiskFull = isDiskFull(result.error);
    return result;
  }

  async #tryToWrite(messages: readonly Uint8Array[]): Promise<AppendResult> {
    if (!this.#log.fits((messages[0] as Uint8Array).length)) await this.#newSegment();
    return this.#log.append(messages);
  }

  async #newSegment(): Promise<void> {
    const saver = this.#saver;
    await this.#endSegment();
    await this.#cursorWrites.run(() => saver.reserve()); // or a full disk could not be freed by acknowledging
    const { number } = await this.#log.beginSegment();
    // From now on its removal by another program is noticed. A failure to note that is no reason to refuse a message.
    saver.noteEnd({ segment: number, isEnded: false, next: 0 });
    const save = async (): Promise<void> => {
      await saver.savePrefix();
      await saver.cursor.sync();
    };
    await this.#cursorWrites.run(save).catch(() => undefined);
  }

  async #endSegment(): Promise<void> {
    const ended = await this.#log.endSegment();
    if (ended !== undefined) this.#noteEnded(ended);
  }

  #noteEnded({ number, next }: Segment): void {
    this.#saver.noteEnd({ segment: number, isEnded: true, next });
  }

  /** @returns whether the disk may have more space now. */
  async #freeSpace(): Promise<boolean> {
    const before = this.#log.segments.length;
    await this.saveAcks(true).catch(() => undefined);
    return this.#log.segments.length < before;
  }

  // Saving acknowledgements.

  /**
   * Saves the prefix, removes the segments before it, then saves the rest: on a full disk the prefix needs no space, and
   * the rest gets that of the segments.
   */
  async #save(isDurable: boolean): Promise<void> {
    await this.#leaveFullSegment();
    await this.#reader.leaveAcknowledged();
    const removable = this.#removable(); // now: later acknowledgements may not be in the cursor
    const last = removable.at(-1);
    if (last !== undefined) this.#noteEnded(last);
    await this.#saver.savePrefix();
    if (last !== undefined) {
      await this.#saver.cursor.sync();
      await this.#log.remove(removable);
    }
    await this.#saver.saveRanges(isDurable || last !== undefined);
    if (isDurable) await this.#saver.cursor.sync();
  }

  /** On a full disk the segment that is being written is removed too, if all of it is acknowledged. */
  async #leaveFullSegment(): Promise<void> {
    const { written, isSettled } = this.#log;
    if (!this.#isDiskFull || this.#isWriting || written === undefined || !isSettled) return;
    if (written.base < written.next && written.next <= this.#acks.prefix) await this.#log.leaveSegment();
  }

  /** Segments of which every message is acknowledged, and which are neither read nor written. */
  #removable(): Segment[] {
    const { prefix } = this.#acks;
    const { segments, written } = this.#log;
    const [first] = segments;
    if (first === undefined || first.next > prefix) return [];
    const firstUsed = Math.min(this.#reader.segment?.number ?? Infinity, written?.number ?? Infinity);
    return segments.filter(({ next, number }) => next <= prefix && number < firstUsed);
  }

  // Reading.

  /** @returns the message of a piece, unless it is acknowledged. */
  #take(segment: Segment, piece: SegmentPiece): StoredMessage | undefined {
    if (piece.kind === 'record') {
      const { sequence, payload } = piece;
      // A later segment has another message of that sequence, or an earlier process has acknowledged it.
      if (sequence >= segment.next || this.#acks.has(sequence)) return undefined;
      this.#held += payload.length;
      return { sequence, data: Buffer.from(payload) };
    }
    const { from, to = segment.next } = piece;
    const bytes = damagedBytes(segment, piece);
    // The repair that has written a record of lost messages has reported them.
    const lost = piece.kind === 'damage' ? this.#lose(segment, piece) : this.#saver.add(from, to, bytes);
    this.#left -= to > from ? Math.round((bytes * lost) / (to - from)) : bytes;
    return undefined;
  }

  /** @returns how many messages were lost that were not acknowledged. They are as good as acknowledged then. */
  #lose(segment: Segment, piece: DamagePiece): number {
    const { offset, from, to = segment.next } = piece;
    const lost = this.#saver.add(from, to, damagedBytes(segment, piece));
    const place = `${segment.path}:${offset}`;
    const isNews = lost > 0 || (from === to && !this.#reported.has(place));
    if (isNews) this.#options.onCorruption(corruptionOf(segment.path, { ...piece, to }));
    if (from === to) this.#reported.add(place);
    return lost;
  }
}
