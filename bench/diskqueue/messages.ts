/** What is put: 256 bytes, each message with a number of its own, so that every store can be checked. */

export const MESSAGE_BYTES = 256;
const SENT_AT = 8;

/** Bytes that do not compress, as classic-level would. */
const PATTERN = makePattern();

function makePattern(): Buffer {
  const pattern = Buffer.alloc(MESSAGE_BYTES);
  let state = 1;
  for (let i = 0; i < MESSAGE_BYTES; i++) {
    state = Math.imul(state, 1_664_525) + 1_013_904_223;
    pattern[i] = state >>> 24;
  }
  return pattern;
}

export function newMessage(number = 0, sentAtMs = 0): Buffer {
  const message = Buffer.from(PATTERN);
  renumber(message, number);
  message.writeDoubleLE(sentAtMs, SENT_AT);
  return message;
}

/** Makes another message of one that nobody needs any more. */
export function renumber(message: Buffer, number: number): void {
  message.writeUInt32LE(number, 0);
}

export function sentAtOf(message: Uint8Array): number {
  return viewOf(message).getFloat64(SENT_AT, true);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Sees that messages come as they were put: 0, 1, 2, … */
export class OrderCheck {
  readonly #expected: number;
  #seen = 0;
  #problem: string | undefined;

  constructor(expected: number) {
    this.#expected = expected;
  }

  readonly see = (message: Uint8Array): void => {
    const number = message.length < MESSAGE_BYTES ? -1 : viewOf(message).getUint32(0, true);
    if (number !== this.#seen) this.#problem ??= `message ${number} came where ${this.#seen} was due`;
    this.#seen++;
  };

  problem(): string | undefined {
    return this.#seen === this.#expected
      ? this.#problem
      : (this.#problem ?? `${this.#seen} messages came, not ${this.#expected}`);
  }
}
