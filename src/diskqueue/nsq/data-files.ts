import { emptyDataFile, type DataFile } from './data-file.ts';
import type { Metadata, Position } from './metadata.ts';
import type { RecoveredQueue } from './recover-queue.ts';

/**
 * The data files of a queue, and its two positions in them.
 *
 *      passed          files                     current
 *      ┌──── 7 ────┐   ┌──── 8 ────┐┌──── 9 ────┐┌──── 10 ──
 *      └───────────┘   └──────▲────┘└───────────┘└──────────▲
 *                             read position                 write position
 *
 * The read position is in the first file, or where the next one will begin. A file that has ended and has no record
 * behind the read position is passed: there is nothing to look for at its end.
 */
export class DataFiles {
  /** With records that are not acknowledged; ascending. */
  readonly #files: DataFile[];
  /** Acknowledged as a whole, and still there. */
  #passed: DataFile[];
  /** Of the read position, in bytes. */
  #offset: number;
  /** The file that is appended to: the last one, or none yet. */
  #current: DataFile | undefined;
  /** Its number, or that of the next file to make. */
  #number: number;
  /** Behind the read position, acknowledged out of order or not at all. */
  #records = 0;

  constructor(found: RecoveredQueue) {
    this.#files = [...found.files];
    this.#passed = [...found.passed];
    this.#offset = found.offset;
    this.#current = found.current;
    this.#number = found.number;
    for (const { unreadRecords } of found.files) this.#records += unreadRecords;
    this.#advance();
  }

  get current(): DataFile | undefined {
    return this.#current;
  }

  get records(): number {
    return this.#records;
  }

  get readPosition(): Position {
    const [first] = this.#files;
    const offset = this.#offset;
    return first === undefined ? { number: this.#number, offset: 0 } : { number: first.number, offset };
  }

  /** Behind what is readable. */
  get writePosition(): Position {
    return { number: this.#number, offset: this.#current?.end ?? 0 };
  }

  /** What the metadata has to say when writing goes on at `write`, and so many more records are readable. */
  metadataAt(write: Position, pending: number): Metadata {
    const [first] = this.#files;
    const isLeft = pending === 0 && this.#files.length === 1 && first?.number !== write.number;
    const isPassed = first === undefined || (isLeft && this.#offset >= first.end);
    return { depth: this.#records + pending, read: isPassed ? write : this.readPosition, write };
  }

  /** The first file with records at or behind a position, and where they begin. */
  firstBehind({ number, offset }: Position): { file: DataFile; offset: number } | undefined {
    for (const file of this.#files) {
      const from = file.number === number ? offset : 0;
      if (file.number >= number && from < file.end) return { file, offset: from };
    }
    return undefined;
  }

  /** The next file, for somebody to make. */
  next(folder: string, queue: string): DataFile {
    return emptyDataFile(folder, queue, this.#number);
  }

  /** It was made. */
  begin(file: DataFile): void {
    this.#files.push(file);
    this.#current = file;
  }

  /** There is a file of this number that nobody knows: it is never written over. */
  skipNumber(): void {
    this.#number++;
  }

  /** Nothing will be appended to the current file any more. */
  endCurrent(): void {
    this.#current = undefined;
    this.#number++;
    this.#advance();
  }

  addRecords(records: number): void {
    this.#records += records;
  }

  /** @param records - how many are before it now that were not. */
  moveReadPosition({ number, offset }: Position, records: number): void {
    for (let [first] = this.#files; first !== undefined && first.number < number; [first] = this.#files) {
      this.#pass(first);
    }
    this.#offset = offset;
    this.#records -= records;
    this.#advance();
  }

  /** All of them are passed, and everything goes on in a file to be made. */
  passAll(number: number): void {
    this.#passed.push(...this.#files);
    this.#files.length = 0;
    this.#current = undefined;
    this.#number = number;
    this.#offset = 0;
    this.#records = 0;
  }

  passedBefore(number: number): DataFile[] {
    return this.#passed.filter((file) => file.number < number);
  }

  /** It is not there any more. */
  forget(file: DataFile): void {
    this.#passed = this.#passed.filter((passed) => passed !== file);
  }

  #advance(): void {
    for (let [first] = this.#files; first !== undefined && first !== this.#current; [first] = this.#files) {
      if (this.#offset < first.end) return;
      this.#pass(first);
    }
  }

  #pass(first: DataFile): void {
    this.#passed.push(first);
    this.#files.shift();
    this.#offset = 0;
  }
}
