import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BackendQueue, Delivery } from 'escapement/diskqueue';

interface FakeMessage {
  readonly sequence: number;
  readonly data: Uint8Array;
}

/** A backend in memory with the delays and errors that a test sets. */
export class FakeBackend implements BackendQueue {
  readonly calls: string[] = [];
  /** Turns that the next calls take, one after the other; 0 when there are no more. */
  readonly delays: number[] = [];
  /** Errors of the next calls, by name. */
  readonly failures: ('put' | 'receive' | 'empty' | 'close')[] = [];
  /** What is left, in order. */
  messages: FakeMessage[] = [];
  isClosed = false;
  readonly #handedOut = new Set<FakeMessage>();
  #waiting: (() => void)[] = [];
  #sequence = 0;
  #line: Promise<unknown> = Promise.resolve();

  get depth(): number {
    return this.messages.length;
  }

  put(data: Uint8Array): Promise<void> {
    return this.#inLine('put', () => {
      this.messages.push({ sequence: this.#sequence++, data: Uint8Array.from(data) });
      this.#wake();
    });
  }

  async receive(): Promise<Delivery> {
    await this.#step('receive');
    for (;;) {
      if (this.isClosed) throw new Error('the fake is closed');
      const message = this.messages.find((each) => !this.#handedOut.has(each));
      if (message !== undefined) return this.#deliver(message);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  empty(): Promise<void> {
    return this.#inLine('empty', () => {
      this.messages = [];
      this.#handedOut.clear();
    });
  }

  close(): Promise<void> {
    return this.#inLine('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  async delete(): Promise<void> {
    this.calls.push('delete');
    await this.close();
    this.messages = [];
  }

  #deliver(message: FakeMessage): Delivery {
    this.#handedOut.add(message);
    return {
      data: Uint8Array.from(message.data),
      ack: () => {
        if (!this.#handedOut.delete(message)) throw new Error('settled twice');
        this.messages = this.messages.filter((each) => each !== message);
      },
      nack: () => {
        this.#handedOut.delete(message);
        this.#wake();
      },
    };
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** One after the other, as a queue would. */
  #inLine(name: 'put' | 'empty' | 'close', action: () => void): Promise<void> {
    const done = this.#line.then(() => this.#step(name)).then(action);
    this.#line = done.catch(() => undefined);
    return done;
  }

  async #step(name: 'put' | 'receive' | 'empty' | 'close'): Promise<void> {
    this.calls.push(name);
    const isFailing = this.failures[0] === name;
    if (isFailing) this.failures.shift();
    for (let turns = this.delays.shift() ?? 0; turns > 0; turns--) await nextTurn();
    if (isFailing) throw new Error(`the fake fails to ${name}`);
  }
}
