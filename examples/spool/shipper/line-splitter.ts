const NEWLINE = 0x0a;

/** Cuts bytes that come in pieces into lines. One that is longer than the limit becomes several. */
export class LineSplitter {
  /** Newlines so far: how many lines of the input are complete. */
  completed = 0;
  readonly #maxBytes: number;
  #rest: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns the lines that are complete now, without their newlines. */
  push(piece: Buffer): Buffer[] {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      lines.push(...this.#cut(bytes.subarray(start, end)));
      start = end + 1;
      this.completed++;
    }
    lines.push(...this.#cut(bytes.subarray(start)));
    this.#rest = lines.pop() ?? Buffer.alloc(0); // it may go on
    return lines;
  }

  /** @returns the last line, if no newline ended it. */
  end(): Buffer[] {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    if (rest.length === 0) return [];
    this.completed++;
    return [rest];
  }

  /** At least one part. */
  #cut(line: Buffer): Buffer[] {
    const parts: Buffer[] = [];
    let start = 0;
    for (; line.length - start > this.#maxBytes; start += this.#maxBytes)
      parts.push(line.subarray(start, start + this.#maxBytes));
    return [...parts, line.subarray(start)];
  }
}
