import { isDeepStrictEqual } from 'node:util';
import { isDiskFull, type FileSystem } from '../../log/file-system.ts';
import type { AckedRange, AckRanges } from '../ack-ranges.ts';
import { CursorFile } from './cursor-file.ts';
import type { LogPosition } from '../../log/segment.ts';
import { laterEnd, type CursorPrefix, type CursorState, type LogEnd } from './cursor-format.ts';

/** Minimum distance of hints, in bytes: about one block of reading. */
const HINT_DISTANCE_BYTES = 64 * 1024;

/** The acknowledgements and the end of the log, in memory, and their saves to the cursor. */
export class AckSaver {
  readonly acks: AckRanges;
  /** The cursor as it was opened; its acknowledgements are those in memory. */
  readonly opened: CursorState;
  readonly cursor: CursorFile;
  #end: LogEnd;
  /** Content of the cursor. */
  #saved: Pick<CursorPrefix, 'prefix' | 'end'>;
  /** Acknowledged since the last save. */
  #unsaved: AckedRange[] = [];
  /** The disk was full when ranges were saved: they are not tried again with each acknowledgement. */
  #isDiskFull = false;
  /** Positions of messages, ascending; the first is not after the first message that is not acknowledged. */
  #hints: LogPosition[] = [];

  private constructor(cursor: CursorFile, state: CursorState) {
    this.cursor = cursor;
    this.opened = state;
    this.acks = state.acks;
    this.#end = state.end;
    this.#saved = { prefix: state.acks.prefix, end: state.end };
  }

  static async open(files: FileSystem, folder: string, name: string): Promise<AckSaver> {
    const cursor = new CursorFile(files, folder, name);
    return new AckSaver(cursor, await cursor.load());
  }

  get hasUnsaved(): boolean {
    return this.acks.prefix > this.#saved.prefix || this.#unsaved.length > 0 || this.cursor.isUnsynced;
  }

  get hasUnsavedEnd(): boolean {
    return !isDeepStrictEqual(this.#saved.end, this.#end);
  }

  /**
   * Adds messages that are acknowledged or lost.
   *
   * @param bytes - of all of them, as in `AckRanges.add`.
   * @returns how many of them were not added before.
   */
  add(from: number, to: number, bytes: number): number {
    const added = this.acks.add(from, to, bytes);
    if (added === 0) return 0;
    const last = this.#unsaved.at(-1);
    if (last?.to === from) {
      last.to = to;
      last.bytes += bytes;
    } else this.#unsaved.push({ from, to, bytes });
    return added;
  }

  /** Notes that the log ends there, or later. */
  noteEnd(end: LogEnd): void {
    this.#end = laterEnd(this.#end, end);
  }

  /** Notes the position of a message: after a reopen, reading may begin there. */
  noteHint(position: LogPosition): void {
    const last = this.#hints.at(-1);
    const isNear = last?.segment === position.segment && position.offset - last.offset < HINT_DISTANCE_BYTES;
    if (!isNear) this.#hints.push(position);
    this.#dropOldHints();
  }

  forgetHints(): void {
    this.#hints = [];
  }

  /** Makes a cursor with space for later saves, if there is none. */
  async reserve(): Promise<void> {
    if (this.cursor.isOpen || (await this.cursor.reuse())) return;
    await this.#rewrite();
  }

  /** Writes the prefix and the end of the log. It needs no space on the disk once there is a cursor. */
  async savePrefix(): Promise<void> {
    await this.reserve();
    const present = this.#present();
    if (present.prefix === this.#saved.prefix && !this.hasUnsavedEnd) return;
    await this.cursor.writePrefix(present);
    this.#saved = present;
  }

  /** Writes the acknowledgements behind the prefix. @param isForced - also if the disk was full the last time. */
  async saveRanges(isForced: boolean): Promise<void> {
    if (this.#isDiskFull && !isForced) return;
    this.#unsaved = this.#unsaved.filter(({ to }) => to > this.#saved.prefix);
    if (this.#unsaved.length === 0) return;
    try {
      if (!this.cursor.isLong || !(await this.#shorten())) await this.#append();
      this.#isDiskFull = false;
    } catch (error) {
      this.#isDiskFull = isDiskFull(error);
      throw error;
    }
  }

  /** Writes to the reserved space first, so that all of it is used if the disk is full. */
  async #append(): Promise<void> {
    const ranges = this.#unsaved;
    this.#unsaved = [];
    let saved = 0;
    try {
      for (const end of [Math.min(this.cursor.reservedRanges, ranges.length), ranges.length]) {
        await this.cursor.append(ranges.slice(saved, end));
        saved = end;
      }
    } finally {
      this.#unsaved = [...ranges.slice(saved), ...this.#unsaved];
    }
  }

  /** @returns false if the disk has no space for a second cursor beside this one. */
  async #shorten(): Promise<boolean> {
    try {
      await this.#rewrite();
      return true;
    } catch (error) {
      if (!this.cursor.isOpen || !isDiskFull(error)) throw error;
      return false;
    }
  }

  async #rewrite(): Promise<void> {
    const saved = this.#unsaved;
    const present = this.#present();
    this.#unsaved = [];
    try {
      await this.cursor.rewrite(this.acks, present.hint, present.end);
      this.#saved = present;
    } catch (error) {
      this.#unsaved = [...saved, ...this.#unsaved];
      throw error;
    }
  }

  #present(): CursorPrefix {
    return { prefix: this.acks.prefix, hint: this.#hint(), end: this.#end };
  }

  #dropOldHints(): void {
    while ((this.#hints[1]?.sequence ?? Infinity) <= this.acks.prefix) this.#hints.shift();
  }

  #hint(): LogPosition | undefined {
    this.#dropOldHints();
    const [first] = this.#hints;
    return first !== undefined && first.sequence <= this.acks.prefix ? first : undefined;
  }
}
