const NO_KEYS: readonly string[] = [];

/**
 * The purgatory one would write without this package: a host timeout for every operation, and a Map of Sets that
 * says who waits for what. It cleans up as it should; what it leaves out is everything that goes wrong: operations
 * that throw, checks inside checks, closing.
 */
export abstract class NaiveOperation {
  declare readonly delayMs: number;
  declare isCompleted: boolean;
  declare purgatory: NaivePurgatory | undefined;
  declare keys: readonly string[];
  declare timeout: NodeJS.Timeout | undefined;

  constructor(delayMs: number) {
    this.delayMs = delayMs;
    this.isCompleted = false;
    this.purgatory = undefined;
    this.keys = NO_KEYS;
    this.timeout = undefined;
  }

  abstract tryComplete(): boolean;
  abstract onComplete(): void;
  abstract onExpiration(): void;

  forceComplete(): boolean {
    if (this.isCompleted) return false;
    this.isCompleted = true;
    this.purgatory?.forget(this);
    this.onComplete();
    return true;
  }
}

function expire(operation: NaiveOperation): void {
  if (operation.forceComplete()) operation.onExpiration();
}

export class NaivePurgatory {
  readonly #operations = new Map<string, Set<NaiveOperation>>();
  #watched = 0;

  /** Operations, once for each key they wait for. */
  get watched(): number {
    return this.#watched;
  }

  tryCompleteElseWatch(operation: NaiveOperation, keys: readonly string[]): boolean {
    if (operation.tryComplete()) return true;
    operation.purgatory = this;
    operation.keys = keys;
    for (const key of keys) {
      const operations = this.#operations.get(key);
      if (operations === undefined) this.#operations.set(key, new Set([operation]));
      else operations.add(operation);
    }
    this.#watched += keys.length;
    if (operation.tryComplete()) return true;
    operation.timeout = setTimeout(expire, operation.delayMs, operation);
    return false;
  }

  checkAndComplete(key: string): number {
    let completed = 0;
    const operations = this.#operations.get(key);
    if (operations === undefined) return 0;
    for (const operation of operations) if (operation.tryComplete()) completed++;
    return completed;
  }

  forget(operation: NaiveOperation): void {
    clearTimeout(operation.timeout);
    for (const key of operation.keys) {
      const operations = this.#operations.get(key);
      operations?.delete(operation);
      if (operations?.size === 0) this.#operations.delete(key);
    }
    this.#watched -= operation.keys.length;
  }

  /** Completes what waits. */
  close(): void {
    for (const operations of [...this.#operations.values()]) {
      for (const operation of operations) operation.forceComplete();
    }
  }
}
