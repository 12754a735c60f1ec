/** A message, as the model knows it. */
export interface ModelMessage {
  readonly id: number;
  readonly length: number;
}

/** A queue, as naively as it can be written: arrays, and nothing that is remembered twice. */
export class QueueModel {
  /** Not acknowledged, in order. */
  messages: ModelMessage[] = [];
  /** Of these, those that somebody has. */
  handedOut: ModelMessage[] = [];
  /** All that were put since it was emptied, in order. */
  #put: ModelMessage[] = [];

  get depth(): number {
    return this.messages.length;
  }

  get bytes(): number {
    return this.messages.reduce((sum, { length }) => sum + length, 0);
  }

  /** What nobody has, in order. */
  get ready(): ModelMessage[] {
    return this.messages.filter((message) => !this.handedOut.includes(message));
  }

  put(message: ModelMessage): void {
    this.messages.push(message);
    this.#put.push(message);
  }

  handOut(): ModelMessage | undefined {
    const [message] = this.ready;
    if (message !== undefined) this.handedOut.push(message);
    return message;
  }

  settle(message: ModelMessage, isDone: boolean): void {
    if (!this.handedOut.includes(message)) return;
    this.handedOut = this.handedOut.filter((each) => each !== message);
    if (isDone) this.messages = this.messages.filter((each) => each !== message);
  }

  empty(): void {
    this.messages = [];
    this.#put = [];
    this.handedOut = [];
  }

  /** @param keepsPrefixOnly - whether what was acknowledged behind the first that was not comes again. */
  reopen(keepsPrefixOnly: boolean): void {
    const [first] = this.messages;
    if (keepsPrefixOnly && first !== undefined) this.messages = this.#put.slice(this.#put.indexOf(first));
    this.handedOut = [];
  }
}

/** The bytes of a message: its id, and then bytes that follow from it. */
export function dataOf({ id, length }: ModelMessage): Buffer {
  const data = Buffer.alloc(length, id % 251);
  if (length >= 4) data.writeUInt32LE(id);
  return data;
}
