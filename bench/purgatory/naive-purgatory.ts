/**
 * The purgatory that one writes without this library: a host timeout for every operation, and a Map of Sets from keys to
 * operations. It removes its entries properly; it leaves out the handling of failures: operations that throw, checks
 * inside checks, closing.
 */
const NO_KEYS: readonly string[] = [];

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

export type NaiveCondition<V> = () => V | undefined | Promise<V | undefined>;

class NaiveWait<V> extends NaiveOperation {
  declare readonly condition: NaiveCondition<V>;
  declare readonly resolve: (value: V) => void;
  declare readonly reject: (reason: unknown) => void;

  constructor(
    condition: NaiveCondition<V>,
    timeoutMs: number,
    resolve: (value: V) => void,
    reject: (reason: unknown) => void,
  ) {
    super(timeoutMs);
    this.condition = condition;
    this.resolve = resolve;
    this.reject = reject;
  }

  tryComplete(): boolean {
    const answer = this.condition();
    if (answer instanceof Promise) {
      answer.then((value) => this.take(value), this.reject);
      return false;
    }
    return this.take(answer);
  }

  take(value: V | undefined): boolean {
    if (value === undefined) return false;
    this.resolve(value);
    return this.forceComplete();
  }

  onComplete(): void {
    // `take` has settled the promise already, or `onExpiration` will.
  }

  onExpiration(): void {
    this.reject(new Error('expired'));
  }
}

export class NaivePurgatory {
  readonly #operations = new Map<string, Set<NaiveOperation>>();
  /** Pending operations, counted once for each of their keys. */
  watched = 0;

  tryCompleteElseWatch(operation: NaiveOperation, keys: readonly string[]): boolean {
    if (operation.tryComplete()) return true;
    operation.purgatory = this;
    operation.keys = keys;
    for (const key of keys) {
      const operations = this.#operations.get(key);
      if (operations === undefined) this.#operations.set(key, new Set([operation]));
      else operations.add(operation);
    }
    this.watched += keys.length;
    if (operation.tryComplete()) return true;
    operation.timeout = setTimeout(expire, operation.delayMs, operation);
    return false;
  }

  checkAndComplete(key: string): number {
    let completed = 0;
    for (const operation of this.#operations.get(key) ?? []) if (operation.tryComplete()) completed++;
    return completed;
  }

  forget(operation: NaiveOperation): void {
    clearTimeout(operation.timeout);
    for (const key of operation.keys) {
      const operations = this.#operations.get(key);
      operations?.delete(operation);
      if (operations?.size === 0) this.#operations.delete(key);
    }
    this.watched -= operation.keys.length;
  }

  /** No signal, no validation of arguments, and checks may overlap. */
  wait<V>(
    keys: readonly string[],
    condition: NaiveCondition<V>,
    { timeoutMs }: { readonly timeoutMs: number },
  ): Promise<V> {
    return new Promise((resolve, reject) => {
      this.tryCompleteElseWatch(new NaiveWait(condition, timeoutMs, resolve, reject), keys);
    });
  }

  /** Completes all pending operations. */
  close(): void {
    for (const operations of [...this.#operations.values()]) {
      for (const operation of operations) operation.forceComplete();
    }
  }
}
