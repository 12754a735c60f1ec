/**
 * Group commit as one writes it by hand: what has been asked for is written together, and what is asked for meanwhile
 * is the next batch.
 */
export class Gathered {
  readonly #write: (messages: readonly Uint8Array[]) => Promise<void>;
  #messages: Uint8Array[] = [];
  #resolves: (() => void)[] = [];
  #rejects: ((error: unknown) => void)[] = [];
  #isRunning = false;

  constructor(write: (messages: readonly Uint8Array[]) => Promise<void>) {
    this.#write = write;
  }

  put(message: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#messages.push(message);
      this.#resolves.push(resolve);
      this.#rejects.push(reject);
      if (!this.#isRunning) {
        this.#isRunning = true;
        process.nextTick(() => void this.#run());
      }
    });
  }

  async #run(): Promise<void> {
    while (this.#messages.length > 0) {
      const [messages, resolves, rejects] = [this.#messages, this.#resolves, this.#rejects];
      this.#messages = [];
      this.#resolves = [];
      this.#rejects = [];
      try {
        await this.#write(messages);
        for (const resolve of resolves) resolve();
      } catch (error) {
        for (const reject of rejects) reject(error);
      }
      // Those whose puts have resolved put again before the next batch begins: that is after all microtasks.
      await new Promise<void>((resolve) => {
        process.nextTick(resolve);
      });
    }
    this.#isRunning = false;
  }
}
