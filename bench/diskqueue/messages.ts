/** Messages of 256 bytes, the stores that keep them, and the callers that put them. */
import { performance } from 'node:perf_hooks';
import { expectCount } from '../lib/part.ts';
import { SeededRandom } from '../lib/random.ts';

export interface MessageStore {
  /** Resolves when the message is as durable as the case requires. The caller may then change the bytes. */
  put(message: Uint8Array): Promise<void>;
  /** Receives `count` messages in order and removes them; waits for those that have not been put yet. */
  take(count: number, handle: (message: Uint8Array) => void): Promise<void>;
  close(): Promise<void>;
}

export type OpenStore = (folder: string) => Promise<MessageStore>;

/** Puts the messages `from` up to `to`. Each caller waits for its put. @param latenciesMs - of each put, by its number. */
export async function putAll(
  store: MessageStore,
  from: number,
  to: number,
  callers: number,
  latenciesMs?: Float64Array,
): Promise<void> {
  let next = from;
  const call = async (): Promise<void> => {
    const message = newMessage();
    while (next < to) {
      const number = next++;
      message.writeUInt32LE(number, 0);
      const startMs = performance.now();
      await store.put(message);
      if (latenciesMs !== undefined) latenciesMs[number - from] = performance.now() - startMs;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
}

export const QUEUE_NAME = 'bench';
export const MESSAGE_BYTES = 256;
const SENT_AT = 8;

const random = new SeededRandom(1);
/** Incompressible bytes, because classic-level compresses. */
const PATTERN = Buffer.from(Array.from({ length: MESSAGE_BYTES }, () => random.nextInt(256)));

/** Makes a message with a number and a timestamp. */
export function newMessage(number = 0, sentAtMs = 0): Buffer {
  const message = Buffer.from(PATTERN);
  message.writeUInt32LE(number, 0);
  message.writeDoubleLE(sentAtMs, SENT_AT);
  return message;
}

export function sentAtOf(message: Uint8Array): number {
  return viewOf(message).getFloat64(SENT_AT, true);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Verifies that messages are received in the order of their numbers: 0, 1, 2, … */
export class OrderCheck {
  readonly #expected: number;
  #seen = 0;
  #problem: string | undefined;

  constructor(expected: number) {
    this.#expected = expected;
  }

  readonly see = (message: Uint8Array): void => {
    const number = message.length < MESSAGE_BYTES ? -1 : viewOf(message).getUint32(0, true);
    if (number !== this.#seen) this.#problem ??= `received message ${number} in place of ${this.#seen}`;
    this.#seen++;
  };

  problem(): string | undefined {
    return this.#problem ?? expectCount(this.#seen, this.#expected, 'messages received');
  }
}
