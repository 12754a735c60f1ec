import { isOutOfRoom, type FileSystem } from '../../log/file-system.ts';
import type { AckedRange, AckRanges } from '../ack-ranges.ts';
import { CursorFile } from './cursor-file.ts';
import type { LogPosition } from '../../log/segment.ts';
import { isWhole, laterEnd, type CursorState, type LogEnd } from './cursor-format.ts';

/** How far apart hints are, at least, in bytes: about what is read at once. */
const HINT_DISTANCE_BYTES = 64 * 1024;

/** What is acknowledged, and where the log ends, in memory and in the cursor. */
export class AckJournal {
  readonly acks: AckRanges;
  /** What the cursor said when it was opened: where to begin to read, and where the log ended. */
  readonly openedHint: LogPosition | undefined;
  readonly openedEnd: LogEnd;
  /** Whether there was a cursor then, and no damage in it. */
  readonly wasWhole: boolean;
  readonly #cursor: CursorFile;
  #end: LogEnd;
  /** What the cursor says. */
  #savedPrefix: number;
  #savedEnd: LogEnd;
  /** Acknowledged since the last save. */
  #unsaved: AckedRange[] = [];
  /** There was no room for ranges: they are tried again when there may be, not with every acknowledgement. */
  #lacksRoom = false;
  /** Where messages are, ascending; the first is not after the first message that is not acknowledged. */
  #hints: LogPosition[] = [];

  private constructor(cursor: CursorFile, state: CursorState) {
    this.#cursor = cursor;
    this.acks = state.acks;
    this.openedHint = state.hint;
    this.wasWhole = isWhole(state);
    this.openedEnd = this.#end = this.#savedEnd = state.end;
    this.#savedPrefix = state.acks.prefix;
  }

  static async open(files: FileSystem, folder: string, name: string): Promise<AckJournal> {
    const cursor = new CursorFile(files, folder, `${folder}/${name}.cursor`);
    return new AckJournal(cursor, await cursor.load());
  }

  get hasUnsaved(): boolean {
    return this.acks.prefix > this.#savedPrefix || this.#unsaved.length > 0 || this.#cursor.isUnsynced;
  }

  /** Whether the cursor does not know yet where the log ends. */
  get hasUnsavedEnd(): boolean {
    return this.#savedEnd !== this.#end;
  }

  /**
   * Messages are done with, or will never be seen.
   *
   * @param bytes - of all of them, as `AckRanges.add` has it.
   * @returns how many of them were not before.
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

  /** The log ends there, or later. */
  noteEnd(end: LogEnd): void {
    const { segment, isEnded, next } = laterEnd(this.#end, end);
    const isNew = segment > this.#end.segment || isEnded !== this.#end.isEnded || next > this.#end.next;
    if (isNew) this.#end = { segment, isEnded, next };
  }

  /** Messages of the last segment are on the disk. */
  noteDurable(next: number): void {
    this.noteEnd({ ...this.#end, next });
  }

  /** A message is at that place: opening may begin there. */
  noteHint(position: LogPosition): void {
    const last = this.#hints.at(-1);
    const isNear = last?.segment === position.segment && position.offset - last.offset < HINT_DISTANCE_BYTES;
    if (!isNear) this.#hints.push(position);
    this.#dropOldHints();
  }

  forgetHints(): void {
    this.#hints = [];
  }

  /** Makes sure that there is a cursor with room for what will be saved. */
  async reserve(): Promise<void> {
    if (this.#cursor.isOpen || (await this.#cursor.reuse())) return;
    await this.#rewrite();
  }

  /** Writes the prefix, and where the log ends. It takes no room, once there is a cursor that was reserved. */
  async savePrefix(): Promise<void> {
    await this.reserve();
    const [prefix, end] = [this.acks.prefix, this.#end];
    if (prefix === this.#savedPrefix && end === this.#savedEnd) return;
    await this.#cursor.writePrefix({ prefix, hint: this.#hint(), end });
    this.#savedPrefix = prefix;
    this.#savedEnd = end;
  }

  /** Writes what is acknowledged behind the prefix. @param isForced - also if there was no room for it the last time. */
  async saveRanges(isForced: boolean): Promise<void> {
    if (this.#lacksRoom && !isForced) return;
    this.#unsaved = this.#unsaved.filter(({ to }) => to > this.#savedPrefix);
    if (this.#unsaved.length === 0) return;
    try {
      if (!this.#cursor.isLong || !(await this.#shorten())) await this.#append();
      this.#lacksRoom = false;
    } catch (error) {
      this.#lacksRoom = isOutOfRoom(error);
      throw error;
    }
  }

  /** Makes what was saved durable. */
  async sync(): Promise<void> {
    await this.#cursor.sync();
  }

  async close(): Promise<void> {
    await this.#cursor.close();
  }

  async remove(): Promise<void> {
    await this.#cursor.remove();
  }

  /** First what needs no room, so that all of that is saved if there is none. */
  async #append(): Promise<void> {
    const ranges = this.#unsaved;
    this.#unsaved = [];
    let saved = 0;
    try {
      for (const end of [Math.min(this.#cursor.reservedRanges, ranges.length), ranges.length]) {
        await this.#cursor.append(ranges.slice(saved, end));
        saved = end;
      }
    } finally {
      this.#unsaved = [...ranges.slice(saved), ...this.#unsaved];
    }
  }

  /** @returns false if there is no room for another cursor beside this one. */
  async #shorten(): Promise<boolean> {
    try {
      await this.#rewrite();
      return true;
    } catch (error) {
      if (!this.#cursor.isOpen || !isOutOfRoom(error)) throw error;
      return false;
    }
  }

  async #rewrite(): Promise<void> {
    const saved = this.#unsaved;
    const [prefix, end] = [this.acks.prefix, this.#end];
    this.#unsaved = [];
    try {
      await this.#cursor.rewrite(this.acks, this.#hint(), end);
      this.#savedPrefix = prefix;
      this.#savedEnd = end;
    } catch (error) {
      this.#unsaved = [...saved, ...this.#unsaved];
      throw error;
    }
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
