/** `wait` as one would write it on the naive purgatory: no signal, no checking of arguments, checks may overlap. */
import { NaiveOperation, type NaivePurgatory } from './naive-purgatory.ts';

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
    // It has settled already, unless it expired.
  }

  onExpiration(): void {
    this.reject(new Error('expired'));
  }
}

export function waitNaively<V>(
  purgatory: NaivePurgatory,
  keys: readonly string[],
  condition: NaiveCondition<V>,
  timeoutMs: number,
): Promise<V> {
  return new Promise((resolve, reject) => {
    purgatory.tryCompleteElseWatch(new NaiveWait(condition, timeoutMs, resolve, reject), keys);
  });
}
