import type { FileSystem } from '../file-system.ts';
import type { AckedRange, AckRanges } from '../ack-ranges.ts';
import { CursorFile, type LogPosition } from './cursor-file.ts';
import { isWhole } from './first-expected.ts';

/** How far apart hints are, at least, in bytes: about what is read at once. */
const HINT_DISTANCE_BYTES = 64 * 1024;

/** What is acknowledged, in memory and in the cursor. */
export class AckJournal {
  readonly acks: AckRanges;
  /** What the cursor said when it was opened: where to begin to read. */
  readonly openedHint: LogPosition | undefined;
  /** Whether there was a cursor then, and no damage in it. */
  readonly wasWhole: boolean;
  readonly #cursor: CursorFile;
  /** Acknowledged since the last save. */
  #unsaved: AckedRange[] = [];
  /** Where messages are, ascending; the first is not after the first message that is not acknowledged. */
  #hints: LogPosition[] = [];

  private constructor(
    cursor: CursorFile,
    acks: AckRanges,
    openedHint: LogPosition | undefined,
    wasWhole: boolean,
  ) {
    this.#cursor = cursor;
    this.acks = acks;
    this.openedHint = openedHint;
    this.wasWhole = wasWhole;
  }

  static async open(files: FileSystem, folder: string, name: string): Promise<AckJournal> {
    const cursor = new CursorFile(files, folder, `${folder}/${name}.cursor`);
    const state = await cursor.load();
    return new AckJournal(cursor, state.acks, state.hint, isWhole(state));
  }

  get hasUnsaved(): boolean {
    return this.#unsaved.length > 0 || this.#cursor.isUnsynced;
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

  /** Writes what is new. @param isForced - also if nothing is, so that there is a cursor of this process. */
  async save(isForced: boolean): Promise<void> {
    const mustWrite = this.#cursor.isLong && (isForced || this.#cursor.isUnsynced);
    if (this.#unsaved.length === 0 && !mustWrite) return;
    const saved = this.#unsaved;
    const { prefix } = this.acks;
    this.#unsaved = [];
    try {
      if (this.#cursor.isLong) await this.#cursor.rewrite(this.acks, this.#hint());
      else {
        const beyond = saved.filter(({ to }) => to > prefix);
        await this.#cursor.append(beyond, prefix, this.#hint());
      }
    } catch (error) {
      this.#unsaved = [...saved, ...this.#unsaved];
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

  #dropOldHints(): void {
    while ((this.#hints[1]?.sequence ?? Infinity) <= this.acks.prefix) this.#hints.shift();
  }

  #hint(): LogPosition | undefined {
    this.#dropOldHints();
    const [first] = this.#hints;
    return first !== undefined && first.sequence <= this.acks.prefix ? first : undefined;
  }
}
