/**
 * Runs asynchronous actions one after another, in the order in which they were added: a lock without an unlock.
 *
 *      run(a) ──► a ──► b ──► c ──► idle          run(b), run(c) while a runs
 *
 * WHY not a queue: a promise chain is one. An action that rejects fails for its caller alone; the next one runs all the same. Costs
 * two promises an action.
 */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs an action after those that were added before. @returns its outcome. */
  run<R>(action: () => Promise<R>): Promise<R> {
    const result = this.#last.then(action);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** As {@link Serial} for each of many keys. A key takes memory only while it has actions. */
export class KeyedSerial {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs an action after those of the same key that were added before: if there are none, inside this call. @returns its outcome. */
  async run<R>(key: string, action: () => Promise<R>): Promise<R> {
    const before = this.#last.get(key);
    const result = before === undefined ? action() : before.then(action, action);
    this.#last.set(key, result);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === result) this.#last.delete(key);
    }
  }
}
